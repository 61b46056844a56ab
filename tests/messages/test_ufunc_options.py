"""NumPy's options of elementwise functions: refused with the remedy, unless they have NumPy's default values."""

import inspect

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.errors import UnsupportedArgumentError

X = fnp.asarray([0.0, 1.0, 4.0])


def refused(work):
    with pytest.raises(UnsupportedArgumentError) as e:
        work()
    assert __file__ in e.value.at
    return e.value


@pytest.mark.parametrize(
    "work",
    [
        lambda: fnp.sin(X, out=np.zeros(3)),
        lambda: fnp.sin(X, np.zeros(3)),
        lambda: fnp.add(X, X, out=np.zeros(3)),
        lambda: fnp.add(X, X, np.zeros(3)),
        lambda: ft.jit(lambda x: fnp.add(x, x, out=x))(X),
    ],
)
def test_out(work):
    error = refused(work)
    assert "got out=" in error.reason and "immutable" in error.reason and "use the result" in error.fix


def test_where():
    fix = refused(lambda: fnp.log(X, where=X > 0)).fix
    assert "fnp.where(where, fnp.log(x), other)" in fix
    fix = refused(lambda: fnp.divide(X, X, out=np.zeros(3), where=X != 0)).fix
    assert "fnp.where(where, fnp.divide(x1, x2), out)" in fix


def test_dtype_and_casting():
    assert "fnp.add(x1, x2).astype(dtype)" in refused(lambda: fnp.add(X, X, dtype="float64")).fix
    assert "fnp.isnan(x).astype(dtype)" in refused(lambda: fnp.isnan(X, dtype=bool)).fix
    assert "astype" in refused(lambda: fnp.exp(X, casting="unsafe")).fix


def test_default_values_of_numpy_change_nothing():
    for options in ({"out": None}, {"where": True}, {"dtype": None}, {"casting": "same_kind"}):
        np.testing.assert_allclose(fnp.sqrt(X, **options), np.sqrt(np.asarray(X), **options), rtol=1e-6)
        np.testing.assert_allclose(fnp.multiply(X, X, **options), np.asarray(X) ** 2, rtol=1e-6)


def test_signatures_have_the_operands_alone():
    assert list(inspect.signature(fnp.sin).parameters) == ["x"]
    assert list(inspect.signature(fnp.add).parameters) == ["x1", "x2"]
    with pytest.raises(TypeError, match="unexpected keyword argument 'axis'"):
        fnp.sin(X, axis=0)
