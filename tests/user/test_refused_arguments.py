"""Arguments that NumPy refuses, which were taken without a word; and edge cases of dtypes and sizes, as in NumPy."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp

X = np.arange(6.0).reshape(2, 3)
REFUSED = {
    "a sign of complex infinities": lambda np: np.isposinf(X * 1j),
    "another sign of complex infinities": lambda np: np.isneginf(X * 1j),
    "fields of sort": lambda np: np.sort(X, order="x"),
    "fields of argsort": lambda np: np.argsort(X, order="x"),
    "a mask as positions": lambda np: np.take_along_axis(X, X > 2, 1),
    "a dtype of nothing": lambda np: np.result_type(),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    with pytest.raises((ValueError, TypeError, IndexError)) as theirs:
        REFUSED[case](np)
    with pytest.raises(theirs.type):
        REFUSED[case](fnp)


def test_spaces_of_no_elements():
    assert np.isnan(np.linspace(0, 1, 0, retstep=True)[1])
    assert np.isnan(fnp.linspace(0, 1, 0, retstep=True)[1])
    assert fnp.linspace(0, 1, 0, endpoint=False, retstep=True)[0].shape == (0,)


@pytest.mark.parametrize("name", ["add", "multiply"])
def test_running_folds_of_booleans_are_integers(name):
    x = np.array([[True, True, False], [True, True, True]])
    ours, theirs = getattr(fnp, name), getattr(np, name)
    for a, b in (
        (ours.accumulate(x, axis=1), theirs.accumulate(x, axis=1)),
        (ours.reduceat(x, np.array([0, 2]), axis=1), theirs.reduceat(x, [0, 2], axis=1)),
    ):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == fnp.asarray(1).dtype
    assert ours.accumulate(x, dtype=bool).dtype == bool


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint32", "int64"])
def test_positions_of_any_integer_dtype_in_a_program(dtype):
    x = fnp.arange(600.0).reshape(300, 2)
    i, j = np.array(120, dtype), fnp.asarray(1, dtype)
    for position in (i, fnp.asarray(i)):
        np.testing.assert_array_equal(ft.jit(lambda: x[position])(), [240, 241])  # noqa: B023
        assert ft.jit(lambda: x[position, j])() == 241  # noqa: B023
        assert ft.jit(lambda k: x[position, k])(j) == 241  # noqa: B023
