"""Extremes of large arrays are NaN where an element is, as in NumPy, whichever library folds them."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import backends, lax

RNG = np.random.default_rng(0)
FOLDS = {
    "max": (fnp.max, np.max),
    "min": (fnp.min, np.min),
    "max of an expression": (
        lambda x, axis: fnp.max(2 * fnp.abs(x) + 1, axis),
        lambda x, axis: np.max(2 * np.abs(x) + 1, axis),
    ),
    "ptp": (fnp.ptp, np.ptp),
    "norm": (
        lambda x, axis: fnp.linalg.norm(fnp.ravel(x), np.inf),
        lambda x, axis: np.linalg.norm(np.ravel(x), np.inf),
    ),
}  # fmt: skip
SHAPES = [((20_000,), 0), ((128, 128), 1), ((128, 128), 0), ((100, 257), 1), ((3, 40, 50), (0, 2)), ((512, 2), 0)]


def special(shape, dtype):
    """NaN of both signs in some places, infinities of both signs in others, and both in one row."""
    x = RNG.normal(size=shape).astype(dtype)
    for value in (np.nan, -np.nan, np.inf, -np.inf):
        x[RNG.uniform(size=shape) < 0.002] = value
    x[(0,) * len(shape)] = np.nan
    return x


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", FOLDS)
def test_values(name, dtype, fast):
    ours, numpys = FOLDS[name]
    for shape, axis in SHAPES:
        f = ft.jit(lambda x, axis=axis: ours(x, axis=axis))
        for x in (special(shape, dtype), RNG.normal(size=shape).astype(dtype)):
            with backends.flags({"cpu.fast_lowerings": fast}), np.errstate(invalid="ignore"):
                np.testing.assert_allclose(f(x), numpys(x, axis=axis), rtol=1e-3)


def test_infinities_that_cancel_are_no_nan():
    x = np.zeros((40, 50), np.float32)
    x[:, 3], x[:, 40] = np.inf, -np.inf
    np.testing.assert_array_equal(ft.jit(lambda x: fnp.max(x, 1))(x), np.inf)
    np.testing.assert_array_equal(ft.jit(lambda x: fnp.min(x, 1))(x), -np.inf)
    np.testing.assert_array_equal(ft.jit(lambda x: fnp.max(x))(np.full((60, 60), 3e38, np.float32)), np.float32(3e38))


def test_under_transformations():
    x = special((8, 40, 40), "float32")
    best = lambda x: fnp.max(x)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(ft.jit(ft.vmap(best))(x), x.max((1, 2)))
        step = lambda c, x: (c, fnp.max(x))
        np.testing.assert_array_equal(ft.jit(lambda x: ft.lax.scan(step, 0.0, x)[1])(x), x.max((1, 2)))
    y = RNG.normal(size=(64, 64)).astype(np.float32)
    np.testing.assert_array_equal(ft.jit(ft.grad(best))(y), y == y.max())


def test_softmax_of_nan():
    x = RNG.normal(size=(64, 64)).astype(np.float32)
    x[5, 7] = np.nan
    wrong = np.isnan(np.asarray(ft.jit(lambda x: ft.nn.softmax(x, -1))(x)))
    assert wrong[5].all() and wrong.sum() == 64
    assert np.isnan(np.asarray(ft.jit(lambda x: ft.nn.logsumexp(x, -1))(x)))[5]


TERMS = {
    "maximum of a constant": (lambda x, y: fnp.maximum(x, 0), lambda x, y: np.maximum(x, 0)),
    "minimum of a constant": (lambda x, y: fnp.minimum(1, 2 * x), lambda x, y: np.minimum(1, 2 * x)),
    "maximum": (lambda x, y: fnp.maximum(x, y), np.maximum),
    "minimum, multiplied": (lambda x, y: y * fnp.minimum(y, x), lambda x, y: y * np.minimum(y, x)),
    "hinge loss": (lambda x, y: fnp.maximum(0, 1 - x * y) ** 2, lambda x, y: np.maximum(0, 1 - x * y) ** 2),
    "clip": (lambda x, y: fnp.clip(x, -1, 1), lambda x, y: np.clip(x, -1, 1)),
    "both": (
        lambda x, y: fnp.minimum(fnp.maximum(x, 0), 1) - y,
        lambda x, y: np.minimum(np.maximum(x, 0), 1) - y,
    ),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", TERMS)
def test_sums_of_extremes_of_two_arrays(name, dtype):
    ours, numpys = TERMS[name]
    x, y = np.zeros((96, 80), dtype), RNG.normal(size=(96, 80)).astype(dtype)
    x[:, 3] = RNG.normal(size=96)
    x[1, 4], x[2, 70], x[3, 0], x[4, 1], x[5, 2] = np.nan, -np.nan, np.inf, -np.inf, 0.0
    y[7, 7] = np.nan
    for axis in (0, 1, None):
        got = ft.jit(lambda x, y, axis=axis: fnp.sum(ours(x, y), axis))(x, y)
        with np.errstate(invalid="ignore"):
            want = np.sum(numpys(x.astype("d"), y.astype("d")), axis)
        np.testing.assert_allclose(
            got, want, rtol=1e-2 if dtype == "float16" else 1e-4, atol=0.05 if dtype == "float16" else 1e-4
        )


def test_extremes_of_zeros_have_the_right_sign():
    zeros, negative = np.zeros(5000, np.float32), np.full(5000, -0.0, np.float32)
    for x, y in ((zeros, negative), (negative, zeros), (negative, negative)):
        assert not np.signbit(ft.jit(fnp.maximum)(x, y)).any() or x is y
        assert np.signbit(ft.jit(fnp.minimum)(x, y)).all()


@pytest.mark.parametrize("computation", [fnp.maximum, lambda a, b: fnp.maximum(b, a), lax.max])
def test_reductions_by_a_function(computation):
    x = special((128, 128), "float32")
    for axes in ((0,), (1,), (0, 1)):
        got = ft.jit(lambda x, axes=axes: lax.reduce(x, np.float32(-np.inf), computation, axes))(x)
        np.testing.assert_array_equal(got, x.max(axes))


WINDOWS = [
    ((128, 128), (128, 1), (1, 1), "VALID"),
    ((128, 128), (128, 128), (1, 1), "VALID"),
    ((128, 128), (64, 1), (64, 1), "VALID"),
    ((130, 128), (64, 1), (64, 1), "VALID"),
    ((128, 128), (100, 1), (100, 1), "VALID"),
    ((128, 128), (127, 1), (1, 1), "VALID"),
    ((128, 128), (129, 1), (1, 1), ((1, 0), (0, 0))),
    ((2, 64, 64, 3), (1, 64, 64, 1), (1, 64, 64, 1), "VALID"),
    ((2, 64, 64, 3), (1, 16, 32, 1), (1, 16, 32, 1), "VALID"),
    ((2, 64, 64, 3), (1, 3, 3, 1), (1, 2, 2, 1), "VALID"),
]


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize(("shape", "window", "strides", "padding"), WINDOWS)
def test_windows(shape, window, strides, padding, fast):
    x = special(shape, "float32")
    pads = ((0, 0),) * len(shape) if padding == "VALID" else padding
    steps, inner = tuple(slice(None, None, s) for s in strides), tuple(range(len(shape), 2 * len(shape)))
    for computation, fold, start in ((lax.max, np.max, -np.inf), (lax.min, np.min, np.inf)):
        views = np.lib.stride_tricks.sliding_window_view(np.pad(x, pads, constant_values=start), window)
        f = ft.jit(lambda x, c=computation, s=start: lax.reduce_window(x, s, c, window, strides, padding))
        with backends.flags({"cpu.fast_lowerings": fast}):
            np.testing.assert_array_equal(f(x), fold(views[steps], inner))
