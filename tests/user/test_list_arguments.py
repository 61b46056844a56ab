"""Functions that take lists of numbers make of them what `fnp.asarray` makes: arrays of default dtypes."""

import numpy as np
import pytest
from scipy import special

import functorch_like as ft
from functorch_like import nn, random

KEY = ft.random.key(0)


LIST = [[1.0, 2.0], [3.0, 5.0]]
X = np.array(LIST)
WANTED = {
    nn.softmax: special.softmax(X, -1),
    nn.log_softmax: special.log_softmax(X, -1),
    nn.logsumexp: special.logsumexp(X),
    nn.logmeanexp: np.log(np.mean(np.exp(X))),
    nn.standardize: (X - X.mean(-1, keepdims=True)) / np.sqrt(X.var(-1, keepdims=True) + 1e-5),
}


@pytest.mark.parametrize("function", WANTED)
def test_lists_of_floats(function):
    result = function(LIST)
    assert result.dtype == "float32"
    np.testing.assert_allclose(result, WANTED[function], rtol=1e-6)
    assert function((1.0, ft.numpy.float32(2))).dtype == "float32"


@pytest.mark.parametrize("function", [random.permutation, random.choice])
def test_lists_to_draw_from(function):
    for values, dtype in (([1, 2, 3], "int32"), ([1.0, 2.0], "float32"), ([True, False], "bool")):
        result = function(KEY, values)
        assert result.dtype == dtype
        assert set(np.ravel(result).tolist()) <= set(values)
    assert function(KEY, np.arange(3)).dtype == "int64"  # NumPy's arrays keep their dtype
