"""Extremes and order of complex numbers as in NumPy, also with NaN; their derivatives and batches."""

import itertools

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp

NAN, INF = np.nan, np.inf
PARTS = [0.0, -0.0, 1.0, -2.0, INF, -INF, NAN]
Z = np.array([complex(a, b) for a, b in itertools.product(PARTS, PARTS)])
RNG = np.random.default_rng(0)
ROWS = RNG.integers(-2, 3, size=(4, 5, 6)) + 1j * RNG.integers(-2, 3, size=(4, 5, 6))


def same(got, want) -> None:
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype.kind == want.dtype.kind and got.shape == want.shape
    np.testing.assert_array_equal(got, want)
    if want.dtype.kind == "c":  # the same part is NaN
        np.testing.assert_array_equal(np.isnan(got.real), np.isnan(want.real))


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
def test_two(name):
    x, y = (a.ravel() for a in np.meshgrid(Z, Z))
    with np.errstate(invalid="ignore"):
        want = getattr(np, name)(x, y)
    same(getattr(fnp, name)(x, y), want)
    same(ft.jit(getattr(fnp, name))(x.astype("complex64"), y.astype("complex64")), want.astype("complex64"))
    same(getattr(fnp, name)(ROWS, 0.5), getattr(np, name)(ROWS, 0.5))
    same(ft.vmap(getattr(fnp, name), in_axes=(1, None))(ROWS, 1j), np.moveaxis(getattr(np, name)(ROWS, 1j), 1, 0))


def shuffled(n):
    return [RNG.permutation(Z)[:n] for _ in range(8)]


@pytest.mark.parametrize(
    "name", ["max", "min", "argmax", "argmin", "sort", "argsort", "median", "ptp", "nanmax", "nanmin"]
)
def test_along_an_axis(name):
    ours, theirs = getattr(fnp, name), getattr(np, name)
    for axis in (0, 1, -1, None):
        if axis is not None or "sort" not in name:
            options = {"kind": "stable"} if "sort" in name else {}
            same(ours(ROWS, axis=axis), theirs(ROWS, axis=axis, **options))
    same(ft.jit(lambda v: ours(v, axis=1))(ROWS.astype("complex64")), ours(ROWS, axis=1).astype(
        "complex64" if "arg" not in name else "int32"))  # fmt: skip
    batched = ft.vmap(lambda v: ours(v, axis=0), in_axes=1)(ROWS)
    same(batched, np.stack([theirs(ROWS[:, k], axis=0) for k in range(5)]) if "argsort" not in name else
         np.stack([theirs(ROWS[:, k], axis=0, kind="stable") for k in range(5)]))  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "name", ["max", "min", "argmax", "argmin", "sort", "nanmax", "nanmin", "nanargmax", "nanargmin"]
)
def test_with_nan(name):
    for values in [*shuffled(6), *shuffled(49), Z[:6], np.array([complex(NAN, 1), complex(2, NAN), 1 + 1j])]:
        if "nan" in name and np.isnan(values).all():
            continue
        same(getattr(fnp, name)(values), getattr(np, name)(values))


def test_the_order_with_nan():
    values = np.array(
        [2 + 1j, complex(1, NAN), complex(NAN, 3), complex(NAN, NAN), 1 + 2j, complex(-2, NAN), complex(NAN, -1)]
    )
    same(fnp.sort(values), np.sort(values))
    same(fnp.argsort(values), np.argsort(values, kind="stable"))
    same(fnp.lexsort((values,)), np.lexsort((values,)))
    assert fnp.lexsort((1, 2)) == np.lexsort((1, 2)) and fnp.lexsort(fnp.arange(3)) == np.lexsort(np.arange(3))
    inside = np.sort(values)
    for side in ("left", "right"):
        same(fnp.searchsorted(inside, values, side), np.searchsorted(inside, values, side))
    assert np.isnan(fnp.median(values)) and fnp.median(values[[0, 4]]) == np.median(values[[0, 4]])


def test_options_of_reductions():
    where = RNG.random(ROWS.shape) > 0.4
    for name, start in (("max", -9 - 9j), ("min", 9 + 9j), ("max", 1j)):
        ours, theirs = getattr(fnp, name), getattr(np, name)
        for axis in ((0, 2), 1, None):
            same(
                ours(ROWS, axis=axis, keepdims=True, initial=start, where=where),
                theirs(ROWS, axis=axis, keepdims=True, initial=start, where=where),
            )
        same(ours(ROWS[:0], axis=0, initial=start), theirs(ROWS[:0], axis=0, initial=start))
        with pytest.raises(ft.errors.ShapeError, match="initial="):
            ours(ROWS[:0], axis=0)
    same(fnp.argmax(ROWS, axis=1, keepdims=True), np.argmax(ROWS, axis=1, keepdims=True))
    same(fnp.median(ROWS, axis=(0, 2), keepdims=True), np.median(ROWS, axis=(0, 2), keepdims=True))


@pytest.mark.parametrize(
    ("function", "numpys"),
    [
        (lambda z: fnp.max(z, axis=1), lambda z: np.max(z, axis=1)),
        (fnp.min, np.min),
        (lambda z: fnp.maximum(z, 0.1), lambda z: np.maximum(z, 0.1)),
        (lambda z: fnp.minimum(z, z[::-1]), lambda z: np.minimum(z, z[::-1])),
        (lambda z: fnp.sort(z, axis=0), lambda z: np.sort(z, axis=0)),
        (fnp.median, np.median),
    ],
)
def test_derivatives(function, numpys):
    z = RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4))
    v = RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4))
    step = 1e-6
    want = (numpys(z + step * v) - numpys(z - step * v)) / (2 * step)
    _, tangent = ft.jvp(function, (z,), (v,))
    np.testing.assert_allclose(tangent, want, rtol=1e-6, atol=1e-8)
    length = lambda z: fnp.sum(fnp.abs(function(z)) ** 2)
    in_numpy = lambda z: np.sum(abs(numpys(z)) ** 2)
    gradient = ft.jit(ft.grad(length))(z)
    slope = (in_numpy(z + step * v) - in_numpy(z - step * v)) / (2 * step)
    np.testing.assert_allclose(np.real(np.sum(np.asarray(gradient) * v)), slope, rtol=1e-6)


def test_numbers_that_tie_share_the_derivative():
    z = np.array([1 + 1j, 2.0])
    _, tangent = ft.jvp(fnp.maximum, (z, z), (np.ones(2, complex), np.zeros(2, complex)))
    assert tangent.tolist() == [0.5, 0.5]
