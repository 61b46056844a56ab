"""Functions that take lists of numbers make of them what `fnp.asarray` makes: arrays of default dtypes."""

import numpy as np
import pytest

import functorch_like as ft
from functorch_like import nn, random

KEY = ft.random.key(0)


@pytest.mark.parametrize("function", [nn.softmax, nn.log_softmax, nn.logsumexp, nn.logmeanexp, nn.standardize])
def test_lists_of_floats(function):
    want = np.asarray(function(np.array([[1.0, 2.0], [3.0, 5.0]])))
    result = function([[1.0, 2.0], [3.0, 5.0]])
    assert result.dtype == "float32"
    np.testing.assert_allclose(result, want, rtol=1e-6)
    assert function((1.0, ft.numpy.float32(2))).dtype == "float32"


@pytest.mark.parametrize("function", [random.permutation, random.choice])
def test_lists_to_draw_from(function):
    for values, dtype in (([1, 2, 3], "int32"), ([1.0, 2.0], "float32"), ([True, False], "bool")):
        result = function(KEY, values)
        assert result.dtype == dtype
        assert set(np.ravel(result).tolist()) <= set(values)
    assert function(KEY, np.arange(3)).dtype == "int64"  # NumPy's arrays keep their dtype
