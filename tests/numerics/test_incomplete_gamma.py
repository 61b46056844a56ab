"""The incomplete gamma functions in double precision: each region, their borders, derivatives by a, and the series."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

import functorch_like as ft
from functorch_like.primitives.elementwise.incomplete_gamma import igamma, igamma_grad_a, igammac, random_gamma_grad
from functorch_like.primitives.formulas.temme import GAMMA_STAR, TEMME

POINTS = [
    # x small, P near 1 and not
    (1e-3, 0.02), (1e-3, 1.4999), (0.05, 1.2), (0.3, 1.5), (0.9, 1.499), (2.5, 0.1), (7.0, 1.0),
    # the sum and the fraction, up to the border between them
    (0.01, 1.5), (0.5, 1.5), (0.5, 3.0), (1.0, 2.0), (1.0, 1.999), (3.0, 4.0), (3.0, 3.99), (19.9, 20.8), (19.9, 20.95),
    (20.0, 21.0), (12.0, 2.0), (2.0, 12.0), (0.2, 90.0), (15.0, 200.0),
    # the series in 1/a, and its borders
    (20.001, 20.0), (20.001, 10.1), (20.001, 33.9), (20.001, 34.1), (20.001, 9.99), (75.0, 75.0), (75.0, 76.5),
    (300.0, 260.0), (300.0, 340.0), (300.0, 150.0), (300.0, 149.9), (300.0, 510.1),
]  # fmt: skip
A, X = np.array(POINTS).T


def exact(a, x):
    """P, Q, the derivative of P by a, and of a sample by a, by the series of P with 300 digits."""
    with mpmath.workdps(300):
        a, x = mpmath.mpf(a), mpmath.mpf(x)
        term = total = mpmath.mpf(1)
        slope = change = mpmath.mpf(0)
        k = 0
        while x > a + k or term > total * mpmath.mpf(10) ** -295:
            k += 1
            term, slope = term * x / (a + k), slope - 1 / (a + k)
            total, change = total + term, change + term * slope
        front = mpmath.exp(a * mpmath.log(x) - x - mpmath.loggamma(a + 1))
        by_a = front * (total * (mpmath.log(x) - mpmath.digamma(a + 1)) + change)
        return [float(v) for v in (front * total, 1 - front * total, by_a, -by_a * x / (front * a))]


@pytest.fixture(scope="module")
def wanted():
    return np.array([exact(a, x) for a, x in POINTS]).T


FUNCTIONS = [igamma, igammac, igamma_grad_a, random_gamma_grad]


@pytest.mark.parametrize("which", range(4), ids=[f.name for f in FUNCTIONS])
def test_values_have_their_digits_in_every_region(which, wanted):
    found = ft.jit(lambda a, x: FUNCTIONS[which](a, x))(A, X)
    # What the rounding of the operands may change: D has the exponent a log(x / a) + a - x.
    size = 1 + np.abs(A * np.log(X / A)) + np.abs(A - X)
    np.testing.assert_array_less(np.abs(found / wanted[which] - 1), 3e-15 * size)


@pytest.mark.parametrize("which", range(4), ids=[f.name for f in FUNCTIONS])
def test_values_in_single_precision_are_rounded_once(which, wanted):
    a, x = A.astype(np.float32), X.astype(np.float32)
    narrow = np.array([exact(float(p), float(q))[which] for p, q in zip(a, x, strict=True)])
    found = ft.jit(lambda a, x: FUNCTIONS[which](a, x))(a, x)
    np.testing.assert_allclose(found, narrow, rtol=1e-7, atol=1e-37)


def test_an_element_does_not_depend_on_those_beside_it(wanted):
    alone = [float(ft.jit(lambda a, x: igammac(a, x))(np.float64(a), np.float64(x))) for a, x in POINTS[::5]]
    np.testing.assert_allclose(alone, wanted[1][::5], rtol=1e-12)


def test_a_sample_far_from_a_large_shape_moves_as_in_the_limit():
    # -P_a / p goes to r log(r) / (r - 1) for r = x / a; from the series with 3500 digits.
    found = random_gamma_grad(np.array([6000.0, 5000.0]), np.array([2000.0, 2500.0]))
    np.testing.assert_allclose(found, [0.54932081448978454, 0.69316992196851998], rtol=1e-4)
    ends = random_gamma_grad(np.array([2.0, 2.0, 1e9]), np.array([0.0, np.inf, 5e8]))
    np.testing.assert_allclose(ends, [0, np.inf, np.log(2)], rtol=1e-6)


def _bernoulli(count):
    values = [Fraction(1)]
    for n in range(1, count):
        total = Fraction(0)
        choose = 1
        for k, b in enumerate(values):
            total += choose * b
            choose = choose * (n + 1 - k) // (k + 1)
        values.append(-total / (n + 1))
    return values


def test_the_series_in_one_over_a_is_that_of_the_recurrence():
    rows, most = len(TEMME), 45
    mu = [Fraction(0), Fraction(1)]  # in eta: mu mu' = eta (1 + mu)
    for n in range(2, most):
        mu.append((mu[n - 1] - sum(mu[i] * (n + 1 - i) * mu[n + 1 - i] for i in range(2, n))) / (n + 1))
    inverse = [Fraction(1)]  # of mu / eta
    for n in range(1, most - 1):
        inverse.append(-sum(mu[i + 1] * inverse[n - i] for i in range(1, n + 1)))
    numbers = _bernoulli(rows + 3)
    stirling = [Fraction(0)] + [numbers[k + 1] / (k * (k + 1)) for k in range(1, rows + 1)]
    star = [Fraction(1)]
    for n in range(1, rows + 1):
        star.append(sum(i * stirling[i] * star[n - i] for i in range(1, n + 1)) / n)
    np.testing.assert_allclose(GAMMA_STAR, [float(c) for c in star[: len(GAMMA_STAR)]], rtol=1e-15)
    row = inverse[1:]
    for k, coefficients in enumerate(TEMME):
        if k:
            sign = (-1) ** k * star[k]
            row = [(i + 2) * row[i + 2] + sign * inverse[i + 1] for i in range(len(row) - 2)]
        np.testing.assert_allclose(coefficients, [float(c) for c in row[: len(coefficients)]], rtol=1e-15)
