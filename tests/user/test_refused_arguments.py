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
    "floats as positions": lambda np: np.insert(X[0], np.asarray([1.5]), 0),
    "a number of bins below 0": lambda np: np.bincount(np.asarray([1, 2]), minlength=-1),
    "counts that are not whole": lambda np: np.cov(X, fweights=np.asarray([1.5, 1.0, 1.0])),
    "counts below 0": lambda np: np.cov(X, fweights=np.asarray([-1, 1, 1])),
    "weights below 0": lambda np: np.cov(X, aweights=np.asarray([-1.0, 1.0, 1.0])),
    "edges that decrease": lambda np: np.histogram(X, [1, 3, 1]),
    "edges that decrease in a dimension": lambda np: np.histogramdd(X, [2, 2, [1, 2, -3]]),
    "a range without an end": lambda np: np.histogram(X, 3, (0, np.inf)),
    "a range of no numbers": lambda np: np.histogram(X, 3, (np.nan, 1)),
    "two numbers to subtract": lambda np: np.var(X, ddof=1, correction=1),
    "two other numbers to subtract": lambda np: np.nanstd(X, ddof=1, correction=0),
    "another kind of search": lambda np: np.isin(X, X, kind="tree"),
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


@pytest.mark.parametrize("name", ["quantile", "nanquantile", "percentile", "nanpercentile"])
def test_quantiles_at_positions_in_a_list(name):
    scale = 100 if "percent" in name else 1
    for places in ([0.25 * scale, 0.75 * scale], (0, 0.5 * scale, scale), [[0.1 * scale], [scale]]):
        expected = getattr(np, name)(X, places, axis=1)
        np.testing.assert_allclose(getattr(fnp, name)(fnp.asarray(X), places, axis=1), expected, rtol=1e-14)
        np.testing.assert_allclose(ft.jit(lambda x, q=places: getattr(fnp, name)(x, q, 1))(X), expected, rtol=1e-14)


@pytest.mark.parametrize("call", [
    lambda: fnp.roll(fnp.arange(3), np.array([1.5])), lambda: fnp.split(fnp.arange(3), np.array([1.5])),
    lambda: fnp.argpartition(fnp.arange(3), np.array([1.0])), lambda: fnp.diag_indices(2.5),  # type: ignore[arg-type]
])  # fmt: skip
def test_floats_in_the_place_of_integers(call):
    with pytest.raises(ft.errors.ArgumentError, match="not an int"):
        call()
