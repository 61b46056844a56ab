"""scipy.special's functions against SciPy in double precision, over wide domains and at special values."""

import numpy as np
import pytest
from scipy import special

import functorch_like as ft
from functorch_like import lax, primitives
from functorch_like.errors import ArgumentError, DtypeError

S = ft.scipy.special
RNG = np.random.default_rng(0)
LINE = np.concatenate([np.linspace(-20, 20, 401), RNG.normal(size=100) * 3])
HALF = np.concatenate([10 ** RNG.uniform(-6, 2.5, 300), np.linspace(0.1, 5, 50)])
UNIT = np.concatenate([RNG.uniform(0, 1, 200), 10 ** RNG.uniform(-200, 0, 100)])
SPECIAL = np.array([0.0, -0.0, 1.0, 2.0, -1.0, -2.0, 0.5, -0.5, np.inf, -np.inf, np.nan])
ONE = {
    "erf": LINE, "erfc": LINE, "erfinv": UNIT * 2 - 1, "gammaln": HALF, "gamma": LINE[:401], "digamma": HALF,
    "i0": LINE, "i0e": LINE, "i1": LINE, "i1e": LINE, "expit": LINE, "logit": UNIT, "entr": HALF, "ndtr": LINE,
    "log_ndtr": LINE * 5, "ndtri": UNIT,
}  # fmt: skip
TWO = ("gammainc", "gammaincc", "betaln", "xlogy", "xlog1py", "kl_div", "rel_entr")
# Tolerances of functions whose expansions in XLA are short of double precision.
LOOSE = {"erfinv": 1e-9, "gammaln": 1e-9, "digamma": 1e-10, "log_ndtr": 1e-11}


def close(got, want, rtol=1e-12):
    np.testing.assert_allclose(np.asarray(got), want, rtol=rtol, atol=1e-14)


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_array(name):
    f, theirs = getattr(S, name), getattr(special, name)
    close(f(ONE[name]), theirs(ONE[name]), LOOSE.get(name, 1e-12))
    single = np.float32(ONE[name])
    single = single[(np.abs(single) > 1e-37) | (single == 0)]  # XLA flushes smaller ones to 0
    with np.errstate(all="ignore"):
        want = np.float32(theirs(np.float64(single)))
    assert f(single).dtype == np.float32
    np.testing.assert_allclose(np.asarray(ft.jit(f)(single)), want, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", [n for n in ONE if n != "gammaln"])
def test_special_values_of_one_array(name):
    with np.errstate(all="ignore"):
        close(getattr(S, name)(SPECIAL), getattr(special, name)(SPECIAL), 1e-9)


def test_gammaln_at_special_values():
    x = np.array([0.0, 1, 2, -1, -2.5, np.inf, np.nan])
    close(S.gammaln(x), special.gammaln(x), 1e-10)


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_arrays(name):
    x, y = 10 ** RNG.uniform(-3, 2.5, (2, 400))
    y = np.where(RNG.random(400) < 0.5, x * np.exp(RNG.normal(size=400) * 0.3), y)
    tolerance = 1e-8 if name == "betaln" else 1e-10
    want = getattr(special, name)(x, y)
    np.testing.assert_allclose(np.asarray(getattr(S, name)(x, y)), want, rtol=tolerance, atol=1e-12)
    few = np.array([0.0, 0.5, 1.0, 2.0, np.inf, np.nan])
    if name != "betaln":
        with np.errstate(all="ignore"):
            close(getattr(S, name)(few[:, None], few), getattr(special, name)(few[:, None], few), 1e-10)


def test_betainc():
    a, b = 10 ** RNG.uniform(-2, 3.5, (2, 500))
    x = np.where(RNG.random(500) < 0.5, RNG.beta(a, b), RNG.random(500))
    want = special.betainc(a, b, x)
    np.testing.assert_allclose(np.asarray(S.betainc(a, b, x)), want, rtol=1e-9, atol=1e-12)
    a, b, x = (v.ravel() for v in np.meshgrid([0, 0.5, 3, np.inf, -1], [0, 2, np.inf], [0, 0.25, 1, np.nan, 1.5]))
    close(S.betainc(a, b, x), special.betainc(a, b, x))


def test_zeta_and_polygamma():
    x, q = RNG.uniform(1.1, 30, 300), 10 ** RNG.uniform(-2, 2, 300)
    close(S.zeta(x, q), special.zeta(x, q), 1e-11)
    for n in (0, 1, 2, 5):
        close(S.polygamma(n, q), special.polygamma(n, q), 1e-10)
    n = RNG.integers(0, 6, 300)
    close(S.polygamma(n, q), special.polygamma(n, q), 1e-10)


@pytest.mark.parametrize("polygamma", [S.polygamma, ft.lax.polygamma])
def test_polygamma_of_an_order_that_is_an_array_in_float32(polygamma):
    """In float32, m! overflows at m = 35, and its logarithm has too few digits long before."""
    m = np.array([0, 1, 2, 5, 9, 17, 25, 30], np.float32)
    x = np.array([0.3, 1.5, 2.5, 3.5, 7, 20, 30, 50], np.float32)
    wanted = special.polygamma(m.astype(int), x.astype(float))
    np.testing.assert_allclose(polygamma(m, x), wanted, rtol=2e-7)
    m, x = m[1:6], x[1:6]
    value = lambda n: (-1) ** (m + 1) * special.gamma(n + 1) * special.zeta(n + 1, x.astype(float))
    slope = difference(value, m.astype(float), 1e-4)
    by_order = ft.vmap(ft.grad(polygamma))(m, x)
    np.testing.assert_allclose(by_order, slope, rtol=1e-6)


def test_shapes_of_gamma_and_beta_that_are_large():
    """The expected values come from mpmath, because SciPy's sums end too early there."""
    close(primitives.igamma(np.float64(8029849.352442082), np.float64(8016408.837731663)), 1.0392895840286e-06, 1e-9)
    close(S.gammainc(1e6, np.float64(1e6)), 0.50013298076, 1e-9)


def difference(f, x, h):
    return (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h)


def test_derivatives_by_shapes():
    a = RNG.uniform(0.3, 40, 60)
    x = a * np.exp(RNG.normal(size=60) * 0.4)
    by_a = ft.vmap(ft.grad(S.gammainc))(a, x)
    np.testing.assert_allclose(by_a, difference(lambda v: special.gammainc(v, x), a, 1e-3), rtol=1e-6, atol=1e-9)
    b, z = RNG.uniform(0.3, 40, 60), RNG.uniform(0.05, 0.95, 60)
    grads = ft.vmap(ft.grad(S.betainc, argnums=(0, 1, 2)))(a, b, z)
    for got, f, at in (
        (grads[0], lambda v: special.betainc(v, b, z), a),
        (grads[1], lambda v: special.betainc(a, v, z), b),
        (grads[2], lambda v: special.betainc(a, b, v), z),
    ):
        np.testing.assert_allclose(got, difference(f, at, 1e-4), rtol=1e-6, atol=1e-7)


def test_samples_of_the_gamma_distribution_move_with_their_shape():
    a, u = RNG.uniform(0.2, 50, 60), RNG.uniform(0.01, 0.99, 60)
    want = difference(lambda v: special.gammaincinv(v, u), a, 1e-3)
    x = special.gammaincinv(a, u)
    np.testing.assert_allclose(lax.random_gamma_grad(a, x), want, rtol=1e-6)


def test_derivatives_stay_finite_where_zero_meets_a_logarithm():
    for f in (S.xlogy, S.xlog1py):
        assert all(np.isfinite(ft.grad(f, argnums=(0, 1))(0.0, 0.5)))
        assert float(ft.grad(f, argnums=1)(0.0, 0.0)) == 0


def test_promotion_and_refusals():
    assert S.gammainc(1, np.ones((3, 1), np.float32)).shape == (3, 1)
    assert S.erf(1).dtype == np.float32 and S.i0e(np.float16(1) * np.ones(2, np.float16)).dtype == np.float16
    with pytest.raises(DtypeError, match="real"):
        S.gammainc(1j, 1.0)
    with pytest.raises(ArgumentError, match="missing a required argument: 'x'"):
        S.gammainc(1.0)


@pytest.mark.parametrize("name", ["igamma", "igammac", "zeta", "random_gamma_grad", "igamma_grad_a"])
def test_lax_takes_numbers(name):
    f, x = getattr(lax, name), np.array([1.5, 2.0])
    np.testing.assert_allclose(f(2.0, x), ft.jit(f)(np.full(2, 2.0), x), rtol=1e-12)
    assert lax.betainc(1.0, 1.0, x / 4).dtype == np.float64


def test_log_sums():
    x = RNG.normal(size=(3, 4))
    close(S.logsumexp(x, axis=1), special.logsumexp(x, axis=1))
    close(S.softmax(x, axis=0), special.softmax(x, axis=0))
    close(S.softmax(x), special.softmax(x))
    close(S.log_softmax(x), special.log_softmax(x))
    close(S.log_softmax(x, axis=1), special.log_softmax(x, axis=1))


def test_functions_of_the_normal_distribution_keep_their_digits():
    p = np.concatenate([RNG.uniform(0, 1, 200), 10 ** RNG.uniform(-30, -1, 50)]).astype(np.float32)
    close(S.ndtri(p), special.ndtri(p.astype(np.float64)), rtol=2e-7)
    x = np.concatenate([RNG.normal(size=200) * 3, -(10 ** RNG.uniform(-3, 3, 50)), [0.0, 9.0]]).astype(np.float32)
    close(S.log_ndtr(x), special.log_ndtr(x.astype(np.float64)), rtol=7e-7)
    slope = ft.vmap(ft.grad(ft.grad(S.log_ndtr)))
    near = np.array([-30.0, -6.0, -2.0, 0.0, 0.5, 4.0])
    close(slope(near.astype(np.float32)), slope(near), rtol=1e-5)


def test_logit_keeps_its_digits_near_its_zero():
    off = np.float32(2.0) ** -np.arange(1.0, 24.0)
    x = np.concatenate([0.5 + off / 2, 0.5 - off / 2])[1:].astype(np.float32)
    close(S.logit(x[x > 0]), special.logit(x[x > 0].astype(np.float64)), rtol=3e-7)


def test_bessel_functions_of_large_and_signed_operands():
    x = np.array([0.0, -0.0, np.inf, -np.inf, 3e38, -3e38, 1e-30, np.nan], np.float32)
    close(S.i0e(x), special.i0e(x.astype(np.float64)), rtol=2e-7)
    close(S.i1e(x), special.i1e(x.astype(np.float64)), rtol=2e-7)
    np.testing.assert_array_equal(np.signbit(S.i1e(x))[:-1], [0, 1, 0, 1, 0, 1, 0])
