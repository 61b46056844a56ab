"""Derivatives of the Hurwitz zeta function, and second derivatives of the gamma family, against mpmath."""

import mpmath as mp
import numpy as np
import pytest

import functorch_like as ft
from functorch_like.scipy import special

RNG = np.random.default_rng(0)
X = np.concatenate([1 + 10.0 ** RNG.uniform(-6, 1, 20), RNG.uniform(1.1, 30, 10)])
Q = np.concatenate([np.ones(8), 10.0 ** RNG.uniform(-2, 2, 22)])


def derivative(order, x, q):
    with mp.workdps(60 + int(max(0, x * np.log10(q)))):
        return float(mp.zeta(mp.mpf(float(x)), mp.mpf(float(q)), order))


@pytest.mark.parametrize(("dtype", "rtol"), [("float32", 3e-7), ("float64", 2e-14)])
@pytest.mark.parametrize("order", [1, 2])
def test_derivatives_by_x(dtype, rtol, order):
    x, q = np.maximum(X.astype(dtype), np.nextafter(np.float32(1), np.float32(2))).astype(dtype), Q.astype(dtype)
    f = special.zeta
    for _ in range(order):
        f = ft.grad(f)
    expected = np.array([derivative(order, *at) for at in zip(x, q, strict=True)])
    with np.errstate(over="ignore"):
        expected = expected.astype(dtype)
    result = ft.jit(ft.vmap(f))(x, q)
    assert result.dtype == dtype
    kept = np.abs(expected) > np.finfo(dtype).tiny
    np.testing.assert_allclose(np.asarray(result)[kept], expected[kept], rtol=rtol)


def test_mixed_derivatives():
    x, q = np.float64(2.5), np.float64(1.7)
    by_both = ft.grad(ft.grad(special.zeta, 0), 1)(x, q)  # the derivative of -x zeta(x + 1, q) by x
    expected = -float(mp.zeta(3.5, 1.7)) - 2.5 * derivative(1, 3.5, 1.7)
    np.testing.assert_allclose(by_both, expected, rtol=1e-14)
    np.testing.assert_allclose(ft.grad(ft.grad(special.zeta, 1), 0)(x, q), expected, rtol=1e-14)


def test_ends_of_the_domain():
    slope = ft.vmap(ft.grad(special.zeta))
    x = np.array([1.0, np.inf, 3.0, 0.5, 2.5, np.nan])
    q = np.array([2.0, 2.0, np.inf, 1.0, -0.5, 1.0])
    np.testing.assert_array_equal(slope(x, q), [-np.inf, 0, 0, np.nan, np.nan, np.nan])


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_second_derivatives_by_the_shape_are_as_exact_as_float32(name):
    f = ft.grad(ft.grad(getattr(special, name)))
    sign = 1 if name == "gammainc" else -1
    lower = lambda a, x: mp.gammainc(a, 0, x, regularized=True)
    for a, x in ((0.5, 0.7), (2.25, 1.5), (6.0, 9.0)):
        with mp.workdps(30):
            expected = sign * float(mp.diff(lambda v, x=x: lower(v, x), a, 2))
        np.testing.assert_allclose(f(np.float32(a), np.float32(x)), expected, rtol=2e-6)
        np.testing.assert_allclose(f(np.float64(a), np.float64(x)), expected, rtol=1e-9)


def test_riemanns_function_left_of_1_and_at_the_ends():
    x = np.concatenate([np.linspace(-30.3, 1.4, 60), [0, 0.5, 1 - 1e-9, 1 + 1e-9, 30.0]])
    expected = [float(mp.zeta(mp.mpf(float(v)))) for v in x]
    np.testing.assert_allclose(special.zeta(ft.numpy.asarray(x)), expected, rtol=1e-13)
    ends = ft.numpy.asarray([-2.0, -40.0, 1.0, np.inf, np.nan])
    np.testing.assert_array_equal(special.zeta(ends), [0, 0, np.inf, 1, np.nan])
    assert np.isnan(special.zeta(-2.5, 1.0))  # Hurwitz's function, as in SciPy
    at = np.asarray([-3.3, -0.5, 0.3, 0.9, 2.5])
    slopes = ft.vmap(ft.grad(special.zeta))(ft.numpy.asarray(at))
    np.testing.assert_allclose(slopes, [float(mp.zeta(mp.mpf(float(v)), 1, 1)) for v in at], rtol=1e-12)
