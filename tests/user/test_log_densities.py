"""Logarithms of densities for parameters from small to large, and their derivatives, against mpmath.

Errors are counted in roundings of the value, or of 1 where the value is smaller: an error of a logarithm is a relative
error of the density.
"""

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.scipy import stats as S

COUNT = 40
LARGEST = {"float32": 6.5, "float64": 11.0}  # of powers of ten among the parameters


def log_gamma(z):
    return mp.loggamma(z)


def times_log(a, x):
    return mp.mpf(0) if a == 0 else a * mp.log(x)


def gamma(x, a):
    return times_log(a - 1, x) - x - log_gamma(a)


def gamma_slopes(x, a):
    return (a - 1) / x - 1, mp.log(x) - mp.digamma(a)


def beta(x, a, b):
    return times_log(a - 1, x) + times_log(b - 1, 1 - x) - log_beta(a, b)


def log_beta(a, b):
    return log_gamma(a) + log_gamma(b) - log_gamma(a + b)


def beta_slopes(x, a, b):
    whole = mp.digamma(a + b)
    by_a, by_b = mp.log(x) + whole - mp.digamma(a), mp.log(1 - x) + whole - mp.digamma(b)
    return (a - 1) / x - (b - 1) / (1 - x), by_a, by_b


def log_choose(n, k):
    return log_gamma(n + 1) - log_gamma(k + 1) - log_gamma(n - k + 1)


def student(x, n):
    return log_gamma((n + 1) / 2) - log_gamma(n / 2) - mp.log(n * mp.pi) / 2 - (n + 1) / 2 * mp.log(1 + x * x / n)


def student_slopes(x, n):
    rest = mp.digamma((n + 1) / 2) - mp.digamma(n / 2) - 1 / n - mp.log(1 + x * x / n)
    return -(n + 1) * x / (n + x * x), (rest + (n + 1) * x * x / n / (n + x * x)) / 2


#: For each distribution its logarithm, and derivatives by arguments, None for those that are not checked.
FORMULAS = {
    "gamma": (gamma, gamma_slopes),
    "chi2": (lambda x, d: gamma(x / 2, d / 2) - mp.log(2), lambda x, d: [g / 2 for g in gamma_slopes(x / 2, d / 2)]),
    "beta": (beta, beta_slopes),
    "t": (student, student_slopes),
    "poisson": (lambda k, mu: times_log(k, mu) - mu - log_gamma(k + 1), lambda k, mu: (None, k / mu - 1)),
    "binom": (
        lambda k, n, p: log_choose(n, k) + times_log(k, p) + times_log(n - k, 1 - p),
        lambda k, n, p: (None, None, k / p - (n - k) / (1 - p)),
    ),
    "nbinom": (
        lambda k, n, p: log_gamma(n + k) - log_gamma(k + 1) - log_gamma(n) + n * mp.log(p) + times_log(k, 1 - p),
        lambda k, n, p: (None, mp.digamma(n + k) - mp.digamma(n) + mp.log(p), n / p - k / (1 - p)),
    ),
    "betabinom": (
        lambda k, n, a, b: log_choose(n, k) + log_beta(k + a, n - k + b) - log_beta(a, b),
        lambda k, n, a, b: (None, None, None, None),
    ),
    "gennorm": (lambda x, b: mp.log(b / 2) - log_gamma(1 / b) - abs(x) ** b, lambda x, b: (None, None)),
}  # fmt: skip


def arguments(name, dtype):
    """Arguments whose densities are neither all 0 nor all large: some deviations from the mean, and a few from afar."""
    rng, top = np.random.default_rng(3), LARGEST[dtype]
    sizes = lambda low=-2.0, high=top: 10 ** rng.uniform(low, high, COUNT)
    off, a = 2 * rng.normal(size=COUNT), sizes()
    far = np.arange(COUNT) % 5 == 0
    near = np.where(far, sizes(), np.abs(a + off * np.sqrt(a)) + 1e-3)
    p = np.where(far, 10 ** rng.uniform(-5, -1, COUNT), rng.uniform(0.02, 0.98, COUNT))
    n, whole = np.floor(sizes(0)), np.floor(a)
    counts = np.clip(np.round(n * p + off * np.sqrt(n * p * (1 - p))), 0, n)
    b = a * sizes(-1.5, 1.5)
    mean = a / (a + b)
    share = np.clip(mean + off * np.sqrt(mean * (1 - mean) / (a + b + 1)), 1e-4, 1 - 1e-4)
    failures = np.abs(np.round(a * (1 - p) / p + off * np.sqrt(a * (1 - p)) / p))
    out = {
        "gamma": (near, a), "chi2": (near, a), "poisson": (near, np.abs(near + off)), "beta": (share, a, b),
        "t": (rng.normal(size=COUNT) * sizes(-1, 3), a), "binom": (counts, n, p), "nbinom": (failures, a, p),
        "betabinom": (np.round(share * n), n, a, b), "gennorm": (3 * rng.normal(size=COUNT), sizes(-2, 1.5)),
    }[name]  # fmt: skip
    out = (whole, near) if name == "poisson" else out
    return [x.astype(dtype) for x in out]


def exact(function, args):
    with mp.workdps(50):
        rows = [function(*(mp.mpf(float(v)) for v in row)) for row in zip(*args, strict=True)]
        to_float = lambda v: np.nan if v is None else float(mp.re(v))
        return np.array([[to_float(v) for v in r] if isinstance(r, (tuple, list)) else to_float(r) for r in rows])


def roundings(got, want, dtype, floor):
    return np.abs(np.asarray(got, np.float64) - want) / (np.finfo(dtype).eps * np.maximum(np.abs(want), floor))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FORMULAS)
def test_logarithms_keep_their_digits(name, dtype):
    module, (value, slopes) = getattr(S, name), FORMULAS[name]
    function = module.logpmf if hasattr(module, "logpmf") else module.logpdf
    args = arguments(name, dtype)
    got = ft.jit(function)(*args)
    assert got.dtype == dtype
    found = roundings(got, exact(value, args), dtype, 1)
    assert found.max() < 40 and np.median(found) < 4, found.max()
    want = exact(slopes, args)
    wrt = tuple(i for i in range(len(args)) if not np.isnan(want[:, i]).any())
    if wrt:
        gradients = ft.jit(ft.grad(lambda *xs: fnp.sum(function(*xs)), wrt))(*args)
        for i, gradient in zip(wrt, gradients, strict=True):
            found = roundings(gradient, want[:, i], dtype, 1e-300)  # derivatives are small beside their terms at zeros
            assert np.median(found) < 4 and np.quantile(found, 0.9) < 300, (i, np.sort(found))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_logarithms_of_vectors_keep_their_digits(dtype):
    rng = np.random.default_rng(4)
    sizes = 10 ** rng.uniform(-1, LARGEST[dtype], 12)
    alpha = (sizes[:, None] * 10 ** rng.uniform(-1, 1, (12, 4))).astype(dtype)
    x = rng.gamma(np.maximum(alpha, 0.3))
    x = (x / x.sum(1, keepdims=True)).astype(dtype)

    def dirichlet(*row):
        x, alpha = row[:4], row[4:]
        return log_gamma(sum(alpha)) + sum(times_log(a - 1, v) - log_gamma(a) for a, v in zip(alpha, x, strict=True))

    def by_alpha(*row):
        return [mp.digamma(sum(row[4:])) - mp.digamma(a) + mp.log(v) for a, v in zip(row[4:], row[:4], strict=True)]

    got, gradient = ft.jit(ft.vmap(ft.value_and_grad(S.dirichlet.logpdf, 1)))(x, alpha)
    columns = [*x.T, *alpha.T]
    assert roundings(got, exact(dirichlet, columns), dtype, 1).max() < 20
    assert roundings(gradient, exact(by_alpha, columns), dtype, 1e-300).max() < 300

    p = rng.dirichlet([1, 2, 3, 4], 12).astype(dtype)
    counts = np.stack([rng.multinomial(int(n), w / w.sum()) for n, w in zip(sizes, p.astype(float), strict=True)])

    def multinomial(*row):
        x, p = row[:4], row[4:]
        return log_gamma(sum(x) + 1) + sum(times_log(k, q) - log_gamma(k + 1) for k, q in zip(x, p, strict=True))

    counts = counts.astype(dtype)
    got = ft.jit(S.multinomial.logpmf)(counts, counts.sum(1), p)
    assert roundings(got, exact(multinomial, [*counts.T, *p.T]), dtype, 1).max() < 20


def test_ends_of_the_support():
    inf = np.inf
    np.testing.assert_array_equal(S.beta.logpdf([0.0, 0.0, 1.0, 1.0], [0.5, 2.0, 2.0, 2.0], [2.0, 2.0, 0.5, 2.0]),
                                  [inf, -inf, inf, -inf])  # fmt: skip
    x, a, b = np.array([0.0, 1.0, 0.3]), np.array([1.0, 2.5, 1.0]), np.array([2.5, 1.0, 1.0])
    np.testing.assert_allclose(S.beta.logpdf(x, a, b), stats.beta.logpdf(x, a, b), rtol=1e-14, atol=1e-14)
    slopes = ft.grad(lambda x: fnp.sum(S.beta.logpdf(x, a, b)))(x)
    np.testing.assert_allclose(slopes, [-1.5, 1.5, 0.0], rtol=1e-14)
    np.testing.assert_allclose(S.gamma.logpdf(np.zeros(3), np.array([0.5, 1.0, 2.0])), [inf, 0, -inf], atol=1e-15)
    k, n, p = np.array([0.0, 4, 0, 4, 0, 0]), np.array([4.0, 4, 4, 4, 0, 4]), np.array([0.0, 1, 1, 0, 0.5, 0.25])
    np.testing.assert_allclose(S.binom.logpmf(k, n, p), stats.binom.logpmf(k, n, p), rtol=1e-14, atol=1e-14)
    slopes = ft.grad(lambda p: fnp.sum(S.binom.logpmf(k[[0, 1, 4]], n[[0, 1, 4]], p)))(p[[0, 1, 4]])
    np.testing.assert_allclose(slopes, [-4, 4, 0], rtol=1e-14)
    np.testing.assert_allclose(S.multinomial.logpmf([0, 3], 3, [0.0, 1.0]), 0, atol=1e-6)
    certain = S.binom.logpmf([0, 7, 0], [7, 7, 0], [0.0, 1.0, 0.3]), S.nbinom.logpmf(0.0, 2.0, 1.0)
    np.testing.assert_array_equal(np.hstack(certain), np.zeros(4))
    # Where x**2 is no number of float32.
    big = np.float32(1e25)
    np.testing.assert_allclose(S.t.logpdf(big, np.float32(2.5)), stats.t.logpdf(1e25, 2.5), rtol=1e-6)
    np.testing.assert_allclose(ft.grad(S.t.logpdf)(big, np.float32(2.5)), -3.5e-25, rtol=1e-6)
    # Shares that do not add up to 1 exactly count as they are.
    share, size = 0.5 + 1e-14, mp.mpf(1e12)
    with mp.workdps(50):
        want = log_gamma(2 * size) - 2 * log_gamma(size) + (size - 1) * (mp.log(0.5) + mp.log(share))
    got = S.dirichlet.logpdf(np.array([0.5, share]), np.full(2, 1e12))
    np.testing.assert_allclose(got, float(want), rtol=1e-13)


def test_second_derivatives():
    for name, args in (
        ("gamma", (2.3, 1.7)),
        ("beta", (0.3, 2.5, 4.0)),
        ("t", (0.7, 3.5)),
        ("nbinom", (3.0, 2.5, 0.4)),
    ):
        module = getattr(S, name)
        function = module.logpmf if hasattr(module, "logpmf") else module.logpdf
        wrt = len(args) - 1
        tail = tuple(map(np.float64, args[:wrt]))
        ft.testing.check_grads(lambda q, f=function, tail=tail: f(*tail, q), (np.float64(args[wrt]),), order=2)


def log_lower_gamma(a, x):
    return a * mp.log(x) - x - log_gamma(a + 1) + mp.log(mp.hyp1f1(1, a + 1, x))


def log_lower_beta(a, b, x):
    series = mp.log(mp.hyp2f1(a + b, 1, a + 1, x))
    return a * mp.log(x) + b * mp.log(1 - x) - mp.log(a) - log_beta(a, b) + series


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_logarithms_of_tiny_probabilities(dtype):
    """Some of them are so small that the probability is no number."""
    a, x = np.array([[5000, 3000], [5000, 4200], [1e4, 2e3], [300, 1.0], [80, 1e-5], [2e3, 10], [7, 5]], dtype).T
    want = exact(log_lower_gamma, (a, x))
    got, gradient = ft.jit(ft.vmap(ft.value_and_grad(S.gamma.logcdf)))(x, a)
    assert roundings(got, want, dtype, 0).max() < 100
    slope = exact(lambda a, x: mp.exp((a - 1) * mp.log(x) - x - log_gamma(a) - log_lower_gamma(a, x)), (a, x))
    np.testing.assert_allclose(gradient, slope, rtol=5e4 * np.finfo(dtype).eps)

    rows = [[48, 1100, 4e-4], [600, 13, 0.3], [0.5, 3, 0.2], [2, 3e3, 1e-30], [4e3, 4e3, 0.25], [5e3, 4e5, 0.0118]]
    a, b, x = np.array(rows, dtype).T
    want = exact(log_lower_beta, (a, b, x))
    logs = ft.jit(S.beta.logcdf)
    np.testing.assert_allclose(logs(x, a, b), want, rtol=3e3 * np.finfo(dtype).eps)
    # 1 - x of float32 has roundings; those of what it is the complement of do not count.
    above, far = (
        (1 - x).astype(dtype),
        exact(lambda a, b, y: log_lower_beta(a, b, 1 - y), (a, b, (1 - x).astype(dtype))),
    )
    np.testing.assert_allclose(ft.jit(S.beta.logsf)(above, b, a), far, rtol=3e3 * np.finfo(dtype).eps)
    np.testing.assert_allclose(ft.jit(S.beta.sf)(above, b, a)[2:3], np.exp(far[2:3]), rtol=3e2 * np.finfo(dtype).eps)
    ends = np.array([0.0, 1.0], dtype)
    np.testing.assert_array_equal(logs(ends, a[0], b[0]), [-np.inf, 0])
    np.testing.assert_array_equal(ft.jit(S.beta.logsf)(ends, a[0], b[0]), [0, -np.inf])
    np.testing.assert_array_equal(
        ft.jit(S.gamma.logcdf)(np.array([-1.0, 0.0, np.inf], dtype), a[0]), [-np.inf] * 2 + [0]
    )
    np.testing.assert_array_equal(ft.jit(S.gamma.logsf)(np.array([-1.0, 0.0, np.inf], dtype), a[0]), [0, 0, -np.inf])
