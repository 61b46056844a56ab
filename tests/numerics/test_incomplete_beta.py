"""The incomplete beta function in double precision, over small and large parameters, and at the ends of their range."""

import mpmath
import numpy as np
import pytest
from scipy import special

import functorch_like as ft
from functorch_like import lax


def points():
    rng = np.random.default_rng(0)
    out = []
    for k in range(120):
        a, b = 10 ** rng.uniform(-2, 2.5 if k % 2 else 1, 2)
        x = rng.uniform() if k % 3 else np.clip(rng.beta(a, b), 1e-9, 1 - 1e-9)
        out.append((a, b, x))
    # Small and of a difference from 1: the value has three digits less than its complement.
    return np.array([*out, (5.01319804986515, 0.022828144522461753, 0.8576950917572453), (0.5, 0.5, 1e-12)]).T


def exact(*operands):
    with mpmath.workdps(60):
        wanted = [mpmath.betainc(a, b, 0, x, regularized=True) for a, b, x in zip(*operands, strict=True)]
    return np.array(list(map(float, wanted)))


def test_values_have_their_digits():
    a, b, x = operands = points()
    found, wanted = ft.jit(lambda *operands: lax.betainc(*operands))(*operands), exact(*operands)
    # What the rounding of x and of 1 - x may change, relative to the value or to its complement.
    size = 2 + np.minimum(a / x, 1e4) * x + b + np.abs(np.log(np.maximum(wanted, 1e-300)))
    np.testing.assert_array_less(np.abs(found - wanted), 2e-15 * size * wanted + 4e-16 * size)
    np.testing.assert_allclose(found[-2:], wanted[-2:], rtol=1e-13)


def around_the_mean(a, b, x):
    """The mean, the standard deviation, the distance of x in units of it, and the leading term, DLMF 8.18.9."""
    with mpmath.workdps(60):
        a, b, x = map(mpmath.mpf, (a, b, x))
        mean = a / (a + b)
        spread = mpmath.sqrt(mean * (1 - mean) / (a + b))
        size = a * mpmath.log(x / mean) + b * mpmath.log((1 - x) / (1 - mean))
        root = mpmath.sqrt(-size) * (1 if x > mean else -1)
        return [float(v) for v in (mean, spread, (x - mean) / spread, mpmath.erfc(-root) / 2)]


@pytest.mark.parametrize("tiers", ["auto", "off"])
@pytest.mark.parametrize(("low", "high"), [(5, 7.9), (8.01, 9), (9, 12), (14, 20)])
def test_large_parameters_around_the_mean(low, high, tiers):
    rng = np.random.default_rng(1)
    a, b = 10 ** rng.uniform(low, high, (2, 40))
    x = a / (a + b) * (1 + np.concatenate([[0], rng.normal(size=39) * 2]) * np.sqrt(b / a / (a + b)))
    mean, spread, steps, normal = np.array([around_the_mean(*p) for p in zip(a, b, x, strict=True)]).T
    betainc = ft.jit(lambda *operands: lax.betainc(*operands))
    slopes = ft.jit(ft.vmap(ft.grad(lambda *operands: lax.betainc(*operands), (0, 1))))
    with ft.backends.compilation.flags(tiers=tiers):
        found, (by_a, by_b) = betainc(a, b, x), slopes(a, b, x)
    # SciPy has NaN for the largest parameters; there it is the normal distribution.
    wanted, error = (special.betainc(a, b, x), 2e-11) if low < 14 else (normal, 1e-7)
    rounded = 1e-16 * (1 + np.abs(steps)) / spread * np.maximum(x, 0.5 * spread)  # of 1 - x, in units of the spread
    np.testing.assert_array_less(np.abs(found - wanted), error + rounded)
    # A parameter moves the value as a move of x does, at the mean: by - (x or 1 - x) / (a + b) times the density.
    density = np.exp(-(steps**2) / 2) / (np.sqrt(2 * np.pi) * spread)
    near = np.abs(steps) < 4
    size = 20 / np.sqrt(np.minimum(a, b)) * (1 + np.abs(steps) ** 3) + 1e-7 + 8 * rounded
    np.testing.assert_array_less(np.abs(by_a / (-(1 - mean) / (a + b) * density) - 1)[near], size[near])
    np.testing.assert_array_less(np.abs(by_b / (mean / (a + b) * density) - 1)[near], size[near])


def test_values_at_the_ends_of_the_range_of_floats():
    a = np.array([1e300, 1.0, 1e8, 1e-300, 1e100, 3.0, 1e-8])
    b = np.array([1.0, 1e300, 1e8, 1e-300, 1e100, 1e8, 5.0])
    x = np.array([0.5, 1e-300, 0.5, 0.3, 0.5, 1e-8, 0.9])
    # 1 - exp(-1) is the limit of 1 - (1 - x)**b; the last two are SciPy's.
    wanted = [0, 1 - np.exp(-1), 0.5, 0.5, 0.5, 0.08030139983049009, 0.9999999999999782]
    np.testing.assert_allclose(ft.jit(lambda *operands: lax.betainc(*operands))(a, b, x), wanted, rtol=1e-11)
