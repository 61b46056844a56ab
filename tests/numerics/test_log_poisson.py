"""Poisson's log probabilities of large numbers, whose terms are far larger than their sum."""

import mpmath
import numpy as np
import pytest

import functorch_like as ft
from functorch_like.scipy.stats import poisson

MEANS = [0.3, 7.0, 30.0, 1e3, 1e5]


def points(mean, dtype):
    rng = np.random.default_rng(0)
    k = np.maximum(np.floor(mean + rng.normal(size=60) * 2 * np.sqrt(mean)), 0)
    k[:3] = 0, np.floor(mean / 10), np.floor(mean * 3)  # far from the mean
    return k.astype(dtype), np.full(60, mean, dtype)


def exact(k, mu):
    with mpmath.workdps(50):
        return [mpmath.mpf(float(a)) * mpmath.log(float(x)) - float(x) - mpmath.loggamma(float(a) + 1)
                for a, x in zip(k, mu, strict=True)]  # fmt: skip


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize(("dtype", "unit"), [("float32", 1.2e-7), ("float64", 2.3e-16)])
def test_log_probabilities_have_the_digits_of_their_dtype(mean, dtype, unit):
    k, mu = points(mean, dtype)
    wanted = np.array([float(v) for v in exact(k, mu)])
    found = np.asarray(ft.jit(lambda k, mu: poisson.logpmf(k, mu))(k, mu), np.float64)
    np.testing.assert_array_less(np.abs(found - wanted), 8 * unit * (1 + np.abs(wanted)))


def test_numbers_of_a_trillion():
    mean = 1e12
    k = np.floor(mean + np.array([-3.0, -0.5, 0.0, 0.1, 2.0]) * np.sqrt(mean))
    wanted = [float(v) for v in exact(k, np.full(5, mean))]
    np.testing.assert_allclose(poisson.logpmf(k, np.full(5, mean)), wanted, rtol=1e-13)
    np.testing.assert_allclose(poisson.pmf(k, np.full(5, mean)), np.exp(wanted), rtol=1e-12)


@pytest.mark.parametrize("mean", MEANS)
def test_derivatives(mean):
    k, mu = points(mean, np.float64)
    by_mu = ft.jit(ft.vmap(ft.grad(lambda mu, k: poisson.logpmf(k, mu))))(mu, k)
    np.testing.assert_allclose(by_mu, k / mu - 1, rtol=1e-12, atol=1e-14)
    twice = ft.jit(ft.vmap(ft.grad(ft.grad(lambda mu, k: poisson.logpmf(k, mu)))))(mu, k)
    np.testing.assert_allclose(twice, -k / mu**2, rtol=1e-12)


def test_ends():
    k = np.array([0.0, 0.0, 3.0, 2.5, -1.0, 1.0, 4.0])
    mu = np.array([0.0, 2.0, 0.0, 3.0, 1.0, np.nan, -1.0])
    wanted = [0, -2, -np.inf, -np.inf, -np.inf, np.nan, np.nan]
    np.testing.assert_allclose(poisson.logpmf(k, mu), wanted, rtol=1e-15)
    np.testing.assert_allclose(ft.vmap(ft.grad(lambda mu: poisson.logpmf(0, mu)))(np.array([0.0, 2.0])), [-1, -1])
