"""Functions of large float64 arrays: accuracy, special values and derivatives; polygamma of any size."""

# Other compile options: the quick tier has the forms of small arrays.

import math
from typing import Any

import mpmath
import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.backends import compilation
from functorch_like.testing.accuracy import ulps

COUNT = 20000  # enough for the forms of large arrays
special = ft.scipy.special


@pytest.fixture(autouse=True)
def optimised():
    with compilation.flags(tiers="off"):
        yield


def magnitudes(low, high, count=400):
    return 10 ** np.random.default_rng(1).uniform(low, high, count)


def between(low, high, count=400):
    return np.random.default_rng(2).uniform(low, high, count)


def signed_cbrt(x):
    return mpmath.sign(x) * mpmath.cbrt(abs(x))


QUARTERS = np.pi / 2 * np.arange(1, 400)
CASES = {
    "exp": (fnp.exp, mpmath.exp, 1.1, [between(-700, 700), between(-1, 1), magnitudes(-300, 0)]),
    "log": (fnp.log, mpmath.log, 0.8, [magnitudes(-300, 300), between(0.5, 2)]),
    "tan": (fnp.tan, mpmath.tan, 0.85, [between(-1.6, 1.6), between(-1e6, 1e6), magnitudes(-300, 0), QUARTERS]),
    "arctan": (fnp.arctan, mpmath.atan, 0.6, [magnitudes(-300, 300), -between(0, 3)]),
    "cbrt": (fnp.cbrt, signed_cbrt, 0.51, [magnitudes(-307, 308), -magnitudes(-307, 308), between(-9, 9)]),
    "arcsinh": (fnp.arcsinh, mpmath.asinh, 1.6, [magnitudes(-300, 300), -magnitudes(-3, 3), between(0, 2)]),
    "arccosh": (fnp.arccosh, mpmath.acosh, 2.3, [1 + magnitudes(-15, 300), between(1, 9)]),
    "arctanh": (fnp.arctanh, mpmath.atanh, 1.6, [between(-1, 1), magnitudes(-300, 0), 1 - magnitudes(-15, 0)]),
    "erf": (special.erf, mpmath.erf, 0.85, [between(-6, 6), magnitudes(-300, 0), -between(0.7, 2.1)]),
    "erfcx": (special.erfcx, lambda x: mpmath.exp(x * x) * mpmath.erfc(x), 4, [between(-5, 26), magnitudes(-30, 2)]),
}


def errors(function, exact, x, size=COUNT):
    compiled: Any = ft.jit(function)
    got = np.asarray(compiled(np.resize(x, size)))[: x.size]
    with mpmath.workprec(200):
        values = [exact(mpmath.mpf(float(v))) for v in x]
        heads, rests = (np.array([f(v) for v in values], np.longdouble) for f in (float, lambda v: float(v - float(v))))
    return ulps(got, heads + rests, np.dtype(np.float64))


@pytest.mark.parametrize("name", CASES)
def test_errors_are_small(name):
    function, exact, most, parts = CASES[name]
    x = np.concatenate(parts)
    found = errors(function, exact, x)
    assert found.max() <= most, x[found.argmax()]


@pytest.mark.parametrize("name", ["exp", "log", "tan", "arctan", "cbrt", "arcsinh", "arccosh", "arctanh"])
def test_special_values_are_those_of_numpy(name):
    info = np.finfo(np.float64)
    sizes = [0, 1, 0.5, 2, 8, 27, 709.782712893384, 709.79, 708.3964185322641, 708.3965, 1e9, 1.1e9, 2.0**20, math.pi]
    sizes += [math.inf, float(info.max), float(info.smallest_normal), 2.0**-900, 1e-300, 1 + 2e-16, 1 - 2e-16]
    x = np.array([*sizes, *(-v for v in sizes), math.nan])
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x)
        want = np.where(abs(want) < info.smallest_normal, np.copysign(0, want), want)  # XLA takes these for zero
    compiled: Any = ft.jit(getattr(fnp, name))
    got = np.asarray(compiled(np.resize(x, COUNT)))[: x.size]
    np.testing.assert_allclose(got, want, rtol=5e-16)
    known = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(want[known]))


def test_special_values_of_erf_and_erfcx():
    x = np.resize([0.0, -0.0, math.inf, -math.inf, math.nan, 6, -7, 1e300, 1e308], COUNT)
    got = np.asarray(ft.jit(special.erf)(x))[:9]
    np.testing.assert_array_equal(got, [0, 0, 1, -1, math.nan, 1, -1, 1, 1])
    assert np.signbit(got[1]) and not np.signbit(got[0])
    got = np.asarray(ft.jit(special.erfcx)(x))[:9]
    want = [1, 1, 0, math.inf, math.nan, 0.09277656780053836, 2 * math.exp(49), 5.641895835477563e-301, 0]
    np.testing.assert_allclose(got, want, rtol=1e-14, atol=1e-305)


@pytest.mark.parametrize("name", ["exp", "tan", "cbrt", "arcsinh", "arctanh"])
def test_derivatives(name):
    function = getattr(fnp, name)
    x = between(0.2, 0.9, COUNT)
    got = ft.jit(ft.grad(lambda x: fnp.sum(function(x))))(x)
    step = 1e-6
    want = (getattr(np, name)(x + step) - getattr(np, name)(x - step)) / (2 * step)
    np.testing.assert_allclose(got, want, rtol=1e-7)


@pytest.mark.parametrize("size", [60, COUNT])
@pytest.mark.parametrize("m", [1, 2, 5, 12, 13, 16])
def test_polygamma_on_both_sides_of_zero(m, size):
    exact = lambda x: mpmath.polygamma(m, x)
    right = np.concatenate([magnitudes(-2, 3, 30), between(0.5, 20, 30)])
    assert errors(lambda x: special.polygamma(m, x), exact, right, size).max() <= 5 + m
    x = -between(0.05, 8, 60)
    got = np.asarray(ft.jit(lambda x: special.polygamma(m, x))(np.resize(x, size)))[:60]
    # Zeros of even orders are between the poles.
    scale = np.array([float(abs(exact(v))) for v in x]) + math.factorial(m)
    want = np.array([float(exact(mpmath.mpf(float(v)))) for v in x])
    assert (abs(got - want) / scale).max() < 1e-14 * (1 + m)
