"""Distributions with parameters: samples, derivatives by parameters, the same stream everywhere."""

import numpy as np
import pytest
from scipy import special, stats

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import random
from functorch_like.errors import ArgumentError, DtypeError, ShapeError

KEY = random.key(7)
MANY = 20_000
#: Bound of p-values. Seeds are fixed; a correct generator falls below it in one of ten thousand tests.
ALPHA = 1e-4


def fits(sample, distribution):
    cdf = distribution if isinstance(distribution, str) else distribution.cdf
    return stats.kstest(np.asarray(sample, np.float64).ravel(), cdf).pvalue > ALPHA


def counts_fit(sample, distribution):
    x = np.asarray(sample).astype(int)
    k = np.arange(x.max() + 2)
    expected = np.append(distribution.pmf(k), distribution.sf(k[-1])) * x.size
    counts = np.append(np.bincount(x, minlength=k.size), 0)
    likely = expected > 5
    if likely.sum() < 2:
        return (counts[~likely] <= 30).all()
    rest = lambda v: np.append(v[likely], v[~likely].sum())
    return stats.chisquare(rest(counts), rest(expected) * x.size / expected.sum() + 1e-300).pvalue > ALPHA


CONTINUOUS = {
    "beta": ((0.3, 2.0), stats.beta(0.3, 2.0)),
    "chisquare": ((3.0,), stats.chi2(3.0)),
    "f": ((3.0, 5.0), stats.f(3.0, 5.0)),
    "generalized_normal": ((1.5,), stats.gennorm(1.5)),
    "lognormal": ((0.7,), stats.lognorm(0.7)),
    "pareto": ((3.0,), stats.pareto(3.0)),
    "rayleigh": ((3.0,), stats.rayleigh(scale=3.0)),
    "t": ((3.0,), stats.t(3.0)),
    "triangular": ((1.0, 2.0, 5.0), stats.triang(0.25, loc=1.0, scale=4.0)),
    "wald": ((2.0,), stats.invgauss(2.0)),
    "weibull_min": ((3.0, 0.7), stats.weibull_min(0.7, scale=3.0)),
    "maxwell": ((), stats.maxwell),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions(name):
    parameters, wanted = CONTINUOUS[name]
    dtype = "float64" if len(name) % 2 else "float32"
    sample = getattr(random, name)(KEY, *parameters, shape=(MANY,), dtype=dtype)
    assert sample.dtype == dtype and sample.shape == (MANY,)
    assert fits(sample, wanted)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gamma(dtype):
    shapes = np.array([0.02, 0.3, 1.0, 2.5, 50.0, 1e6])
    x = random.gamma(KEY, shapes, (MANY, 6), dtype)
    logs = random.loggamma(KEY, shapes, (MANY, 6), dtype)
    assert x.dtype == logs.dtype == dtype and np.isfinite(logs).all()
    for i, a in enumerate(shapes):
        if i or dtype == "float64":  # half of these samples are too small for float32
            assert fits(x[:, i], stats.gamma(a))
        assert fits(np.exp(np.asarray(logs[:, i], np.float64)), stats.gamma(a))
    assert random.gamma(KEY, np.array([0.0, -1.0, np.inf, np.nan])).tolist()[::2] == [0.0, np.inf]
    assert np.isnan(random.gamma(KEY, np.array([-1.0, np.nan]))).all()
    assert random.gamma(KEY, 2.0, (3,), "bfloat16").dtype == "bfloat16"
    assert random.gamma(KEY, np.zeros((0, 2))).shape == (0, 2)


def test_derivatives_of_gamma_numbers_hold_the_quantile():
    of = lambda draw: ft.jit(lambda a: ft.jvp(lambda a: draw(KEY, a, (50,), "float64"), (a,), (1.0,)))
    gamma, loggamma = of(random.gamma), of(random.loggamma)
    for a in (0.05, 0.7, 4.0, 300.0):
        x, slope = gamma(np.float64(a))
        quantile, h = special.gammainc(a, x), a * 1e-5
        inside = (quantile < 0.999) & (np.asarray(x) > 1e-250)
        wanted = (special.gammaincinv(a + h, quantile) - special.gammaincinv(a - h, quantile)) / (2 * h)
        np.testing.assert_allclose(np.asarray(slope)[inside], wanted[inside], rtol=1e-5)
        log, log_slope = loggamma(np.float64(a))
        np.testing.assert_allclose(log[inside], np.log(x)[inside], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(np.asarray(log_slope)[inside], (wanted / np.asarray(x))[inside], rtol=1e-5)


SLOPES = {
    "beta": (lambda a: random.beta(KEY, a, 2.0, (MANY,)), 3.0, 2 / 25),
    "t": (lambda a: random.t(KEY, a, (MANY,)) ** 2, 9.0, -2 / 49),
    "f": (lambda a: random.f(KEY, 3.0, a, (MANY,)), 12.0, -2 / 100),
    "dirichlet": (lambda a: random.dirichlet(KEY, fnp.stack([a, 1.0, 2.0]), (MANY,))[:, 0], 3.0, 3 / 36),
    "triangular": (lambda a: random.triangular(KEY, 1.0, a, 5.0, (MANY,)), 1.0, 1 / 3),
    "lognormal": (lambda a: random.lognormal(KEY, a, (MANY,)), 0.5, 0.5 * np.exp(0.125)),
}


@pytest.mark.parametrize("name", SLOPES)
def test_derivatives_of_means(name):
    """The mean of a derivative is the derivative of the mean."""
    f, at, wanted = SLOPES[name]
    values, tangents = ft.jvp(f, (at,), (1.0,))
    error = np.asarray(tangents).std() / np.sqrt(MANY)
    assert abs(tangents.mean().item() - wanted) < 5 * error + 1e-6
    assert np.isfinite(values).all() and np.isfinite(tangents).all()


def test_gradients_pass_in_reverse_and_twice():
    f = lambda a: random.gamma(KEY, a, (4,), "float64").sum()
    a, h = np.float64(2.5), 1e-5
    np.testing.assert_allclose(ft.grad(f)(a), ft.jvp(f, (a,), (1.0,))[1], rtol=1e-12)
    second = (ft.grad(f)(a + h) - ft.grad(f)(a - h)) / (2 * h)
    assert np.isfinite(ft.grad(ft.grad(f))(a)) and np.isfinite(second)
    batched = ft.vmap(ft.grad(lambda a, k: random.gamma(k, a)), (0, None))(np.array([1.0, 2.0], np.float32), KEY)
    assert batched.shape == (2,) and (np.asarray(batched) > 0).all()


# -------------------------------------------------------------------------------------------------------------- counts
def test_poisson():
    means = [0.0, 0.1, 3.0, 9.99, 10.0, 25.0, 1000.0]
    x = random.poisson(KEY, np.array(means), (MANY, len(means)))
    assert x.dtype == np.int32
    for i, mean in enumerate(means):
        assert counts_fit(x[:, i], stats.poisson(mean)), mean
    large = np.asarray(random.poisson(KEY, 1e8, (MANY,), "int64"))
    assert fits((large - 1e8) / 1e4, "norm")
    edges = random.poisson(KEY, np.array([-1.0, np.nan, np.inf, 1e12, 0.0]))
    assert edges.tolist() == [-1, -1, 2**31 - 1, 2**31 - 1, 0]
    assert random.poisson(KEY, np.inf, (), "int64").item() > 2**62 and random.poisson(KEY, np.zeros(0)).shape == (0,)


def test_binomial():
    cases = [(5, 0.3), (5, 0.0), (5, 1.0), (100, 0.05), (100, 0.5), (100, 0.9), (1000, 0.3), (30, 0.99), (0, 0.5)]
    n, p = map(np.array, zip(*cases, strict=True))
    x = random.binomial(KEY, n, p, (MANY, len(cases)))
    assert x.dtype == np.float32
    for i, case in enumerate(cases):
        assert counts_fit(x[:, i], stats.binom(*case)), case
    assert np.isnan(random.binomial(KEY, np.array([-1.0, 3.0, 4.0, np.nan]), np.array([0.5, -1.0, 2.0, 0.5]))).all()


def test_multinomial():
    p = np.array([0.2, 0.0, 0.3, 0.5])
    x = np.asarray(random.multinomial(KEY, 20, p, shape=(500, 4)))
    assert (x.sum(-1) == 20).all() and not x[:, 1].any()
    for i in (0, 2, 3):
        assert counts_fit(x[:, i], stats.binom(20, p[i]))
    np.testing.assert_allclose(np.cov(x.T), 20 * (np.diag(p) - np.outer(p, p)), atol=1)
    assert random.multinomial(KEY, np.array([3, 0]), 2 * p).sum(-1).tolist() == [3.0, 0.0]
    assert random.multinomial(KEY, 3, p, unroll=True).tolist() == random.multinomial(KEY, 3, p).tolist()
    whole = random.multinomial(KEY, 20, p, dtype="int32")
    assert whole.dtype == np.int32 and whole.tolist() == random.multinomial(KEY, 20, p).tolist()


def test_geometric():
    for p in (0.01, 0.5):
        assert counts_fit(random.geometric(KEY, p, (MANY,)), stats.geom(p)), p
    assert random.geometric(KEY, np.array([0.0, -1.0, 2.0])).tolist() == [-1, -1, -1]
    assert random.geometric(KEY, 1e-30).item() == 2**31 - 1 and random.geometric(KEY, 0.5, (), "uint8").dtype == "uint8"


# ------------------------------------------------------------------------------------------------------------- vectors
def test_dirichlet_and_ball():
    x = np.asarray(random.dirichlet(KEY, np.array([0.5, 1.0, 2.0]), (MANY,)))
    np.testing.assert_allclose(x.sum(-1), 1, rtol=1e-5)
    assert fits(x[:, 0], stats.beta(0.5, 3.0)) and fits(x[:, 2], stats.beta(2.0, 1.5))
    small = np.asarray(random.dirichlet(KEY, np.full((3, 2), 1e-4)))
    np.testing.assert_allclose(small.sum(-1), 1, rtol=1e-6)
    point = np.asarray(random.ball(KEY, 3, shape=(MANY,)), np.float64)
    assert fits(np.linalg.norm(point, axis=-1) ** 3, "uniform") and abs(point.mean(0)).max() < 0.02
    diamond = np.asarray(random.ball(KEY, 2, 1, (250,)), np.float64)
    assert fits(abs(diamond).sum(-1) ** 2, "uniform")


def test_double_sided_maxwell():
    x = np.asarray(random.double_sided_maxwell(KEY, 1.0, 2.0, (MANY,)), np.float64)
    assert fits(abs(x - 1) / 2, stats.maxwell) and abs((x > 1).mean() - 0.5) < 0.02


@pytest.mark.parametrize("method", ["cholesky", "eigh", "svd"])
def test_multivariate_normal(method):
    cov = np.array([[2.0, 0.5], [0.5, 1.0]])
    x = random.multivariate_normal(KEY, np.array([1.0, 2.0]), cov, (MANY,), method=method)
    white = np.linalg.solve(np.linalg.cholesky(cov), (np.asarray(x, np.float64) - [1, 2]).T)
    assert fits(white[0], "norm") and fits(white[1], "norm") and abs(np.corrcoef(white)[0, 1]) < 0.05
    stacked = random.multivariate_normal(KEY, np.zeros((3, 1, 2)), np.stack([cov] * 4), dtype="float64", method=method)
    assert stacked.shape == (3, 4, 2) and stacked.dtype == np.float64


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_orthogonal(dtype):
    for n, m in ((3, 3), (4, 2), (2, 4)):
        q = np.asarray(random.orthogonal(KEY, n, (5,), dtype, m))
        assert q.shape == (5, n, m) and q.dtype == dtype
        product = q @ np.conj(np.swapaxes(q, -1, -2)) if n < m else np.conj(np.swapaxes(q, -1, -2)) @ q
        np.testing.assert_allclose(product, np.broadcast_to(np.eye(min(n, m)), product.shape), atol=1e-5)
    first = np.asarray(random.orthogonal(KEY, 3, (2000,), dtype))[:, 0, 0]
    assert fits(first.real, stats.uniform(-1, 2)) if dtype == "float32" else fits(abs(first) ** 2, stats.beta(1, 2))


def test_complex_normal_numbers():
    x = np.asarray(random.normal(KEY, (MANY,), "complex64"))
    assert x.dtype == np.complex64
    assert fits(x.real * np.sqrt(2), "norm") and fits(x.imag * np.sqrt(2), "norm")
    assert abs(np.corrcoef(x.real, x.imag)[0, 1]) < 0.04


# ------------------------------------------------------------------------------------------------------------- streams
FUNCTIONS = {
    "gamma": lambda k: random.gamma(k, np.array([0.5, 2.0], np.float32)),
    "many gammas": lambda k: random.gamma(k, 0.5, (1001,)),
    "poisson": lambda k: random.poisson(k, np.array([2.0, 20.0], np.float32)),
    "binomial": lambda k: random.binomial(k, 100, np.array([0.05, 0.5], np.float32)),
    "many binomials": lambda k: random.binomial(k, 100, 0.5, (600,)),
    "multinomial": lambda k: random.multinomial(k, 30, np.array([0.5, 0.5], np.float32)),
    "wald": lambda k: random.wald(k, 2.0, (3,)),
    "ball": lambda k: random.ball(k, 2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_stream_is_the_same_everywhere(name):
    f, keys = FUNCTIONS[name], random.split(KEY, 3)
    eager = np.stack([np.asarray(f(k)) for k in keys])
    assert len(np.unique(eager.reshape(3, -1), axis=0)) == 3
    np.testing.assert_allclose(ft.jit(ft.vmap(f))(keys), eager, rtol=1e-5)
    np.testing.assert_allclose(ft.jit(f)(keys[0]), eager[0], rtol=1e-5)


def test_one_key_for_all_elements():
    f = lambda a: random.gamma(KEY, a)
    at = np.ones(3, np.float32)
    with pytest.raises(ArgumentError, match="randomness"):
        ft.vmap(f, randomness="error")(at)
    assert len(set(ft.vmap(f, randomness="different")(at).tolist())) == 3
    assert len(set(ft.vmap(f, randomness="same")(at).tolist())) == 1


def test_keys_by_other_names():
    assert random.clone(KEY).tolist() == random.wrap_key_data(random.key_data(KEY)).tolist() == KEY.tolist()
    assert random.key_impl(KEY) == "threefry2x32"
    with pytest.raises(ArgumentError, match="rbg"):
        random.wrap_key_data(KEY, impl="rbg")


def test_wrong_arguments():
    with pytest.raises(DtypeError, match=r"random\.gamma needs a key"):
        random.gamma(0, 1.0)
    with pytest.raises(ShapeError, match="not broadcast"):
        random.gamma(KEY, np.ones(3), (2,))
    with pytest.raises(DtypeError, match="int32"):
        random.gamma(KEY, 1.0, (2,), "int32")
    with pytest.raises(DtypeError, match="gives integers"):
        random.poisson(KEY, 1.0, (2,), "float32")
    with pytest.raises(ShapeError, match="vector"):
        random.dirichlet(KEY, 1.0)
    with pytest.raises(ArgumentError, match="lu"):
        random.multivariate_normal(KEY, np.zeros(2), np.eye(2), method="lu")
    with pytest.raises(ShapeError, match=r"\(\.\.\., n, n\)"):
        random.multivariate_normal(KEY, np.zeros(2), np.eye(3))
