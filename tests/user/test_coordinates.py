"""Coordinates in whole numbers: differences that do not wrap around, and keep the digits of large numbers."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp

KINDS = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]
VALUES = np.asarray([1.0, 4.0, 2.0, 8.0], "float32")
NANOSECONDS = 1_700_000_000_000_000_000 + np.asarray([0, 100, 250, 1000])


@pytest.mark.parametrize("kind", KINDS[1:])
def test_integrals_and_gradients_where_coordinates_fall(kind: str) -> None:
    x = np.asarray([9, 6, 2, 1], kind)
    real = x.astype("float64")
    np.testing.assert_allclose(fnp.trapezoid(VALUES, fnp.asarray(x)), np.trapezoid(VALUES, real), rtol=1e-6)
    rows = fnp.asarray(np.stack([x, x]))
    np.testing.assert_allclose(fnp.trapezoid(VALUES, rows), [np.trapezoid(VALUES, real)] * 2, rtol=1e-6)
    for order in (1, 2):
        slopes = fnp.gradient(VALUES, fnp.asarray(x), edge_order=order)
        np.testing.assert_allclose(slopes, np.gradient(VALUES, real, edge_order=order), rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS[1:])
def test_differences_of_the_ends_of_a_range(kind: str) -> None:
    info = np.iinfo(kind)
    x = np.asarray([info.min, info.max], kind)
    width = float(int(info.max) - int(info.min))
    np.testing.assert_allclose(fnp.trapezoid(fnp.ones(2), fnp.asarray(x)), width, rtol=1e-6)
    np.testing.assert_allclose(fnp.gradient(fnp.asarray(x)), [width] * 2, rtol=1e-6)
    np.testing.assert_allclose(fnp.gradient(fnp.asarray([0.0, 1.0]), fnp.asarray(x)), [1 / width] * 2, rtol=1e-6)
    middle = fnp.asarray(int(info.max) // 2 + int(info.min) // 2, kind)
    np.testing.assert_allclose(fnp.interp(middle, fnp.asarray(x), fnp.asarray([0.0, 1.0])), 0.5, atol=0.01)


def test_times_in_nanoseconds() -> None:
    steps = (NANOSECONDS - NANOSECONDS[0]).astype("float64")
    times = fnp.asarray(NANOSECONDS)
    np.testing.assert_allclose(fnp.trapezoid(VALUES, times), np.trapezoid(VALUES, steps), rtol=1e-6)
    np.testing.assert_allclose(fnp.gradient(VALUES, times), np.gradient(VALUES, steps), rtol=1e-5)
    np.testing.assert_allclose(fnp.gradient(times), np.gradient(steps), rtol=1e-6)
    at = NANOSECONDS[0] + np.asarray([-5, 0, 30, 100, 175, 999, 1000, 2000])
    expected = np.interp(at - NANOSECONDS[0], steps, VALUES)
    out = fnp.interp(fnp.asarray(at), times, VALUES)
    assert out.dtype == "float32"
    np.testing.assert_allclose(out, expected, rtol=1e-6)


@pytest.mark.parametrize("kind", ["uint8", "float16", "float32"])
def test_interpolation_has_the_digits_of_its_values(kind: str) -> None:
    x, xp, fp = np.asarray([2, 250], kind), np.asarray([100, 255], kind), np.asarray([1.0, 2.0])
    out = fnp.interp(*map(fnp.asarray, (x, xp, fp)))
    assert out.dtype == "float64"
    np.testing.assert_allclose(out, np.interp(x, xp, fp), rtol=1e-15)
    out = fnp.interp(fnp.asarray(x), fnp.asarray(xp), fnp.asarray(fp * (1 + 2j)))
    np.testing.assert_allclose(out, np.interp(x, xp, fp * (1 + 2j)), rtol=1e-15)


def test_interpolation_with_a_period_of_whole_numbers() -> None:
    x, xp, fp = np.asarray([-3, 0, 5, 12, 370]), np.asarray([350, 10, 100]), np.asarray([5.0, 2.0, 9.0])
    np.testing.assert_allclose(fnp.interp(x, xp, fp, period=360), np.interp(x, xp, fp, period=360), rtol=1e-6)


@pytest.mark.parametrize("axis", [(0, 1), (1, 0), (2, 0), (-1, 1), (2, 1, 0)])
def test_weights_in_the_order_of_the_axes(axis: tuple[int, ...]) -> None:
    data = np.arange(24.0).reshape(2, 3, 4)
    weights = np.random.default_rng(0).uniform(0.5, 1, [data.shape[d] for d in axis])
    expected = np.average(data, axis, weights)
    np.testing.assert_allclose(fnp.average(fnp.asarray(data), axis, fnp.asarray(weights)), expected, rtol=1e-14)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_points_beside_values_that_are_not_finite(value: float) -> None:
    x, xp, fp = np.asarray([1, 2, 2.5, 3, 3.5, 4, 5]), np.asarray([1.0, 2.0, 3.0, 4.0]), np.asarray([1, 2, value, 4])
    for function in (fnp.interp, ft.jit(fnp.interp)):
        np.testing.assert_allclose(function(x, xp, fp), np.interp(x, xp, fp))
