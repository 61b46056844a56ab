"""scipy.stats: distributions, against SciPy in double precision; samples, density estimates."""

import importlib

import numpy as np
import pytest
from scipy import special, stats

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import random
from functorch_like.errors import ArgumentError, DtypeError, ShapeError
from functorch_like.scipy import stats as S

RNG = np.random.default_rng(0)
FUNCTIONS = ("pdf", "logpdf", "pmf", "logpmf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf")
X = np.concatenate([RNG.normal(size=12) * 2, RNG.uniform(size=8), [0.0, 1.0, -1.0, 1.5, 7.0, 12.0, 25.0]])
Q = np.concatenate([RNG.uniform(size=6), [1e-12, 1e-3, 0.5, 0.999, 0.25, 0.75]])
K = np.concatenate([np.arange(-1.0, 9.0), [0.5, 40.0]])
CONTINUOUS = {
    "norm": [()], "logistic": [()], "cauchy": [()], "laplace": [()], "expon": [()], "uniform": [()], "gumbel_r": [()],
    "gumbel_l": [()], "pareto": [(1.5,), (0.3,)], "gamma": [(0.3,), (1.0,), (20.0,)], "chi2": [(1.0,), (2.0,), (30.0,)],
    "beta": [(0.5, 0.5), (1.0, 3.0), (20.0, 200.0)], "t": [(1.0,), (2.5,), (1e6,)], "gennorm": [(0.7,), (2.0,), (5.0,)],
    "vonmises": [(0.1,), (3.0,), (500.0,)], "wrapcauchy": [(0.3,), (0.999,)],
    "truncnorm": [(-1.0, 2.0), (0.5, 9.0), (-20.0, -3.0), (3.0, 40.0)],
}  # fmt: skip
DISCRETE = {
    "bernoulli": [(0.3,), (0.0,), (1.0,)], "binom": [(5, 0.3), (40, 0.9), (0, 0.5)], "geom": [(0.3,), (1.0,)],
    "betabinom": [(5, 2.0, 3.0), (40, 0.5, 30.0)], "nbinom": [(3, 0.4), (2.5, 0.9)],
    "poisson": [(0.0,), (3.0,), (30.0,)],
}  # fmt: skip


def functions(name):
    module = importlib.import_module(f"functorch_like.scipy.stats.{name}")
    return {f: getattr(module, f) for f in FUNCTIONS if hasattr(module, f)}


def test_what_there_is():
    assert {"norm", "gaussian_kde", "rankdata"} <= set(dir(S))
    for name in ("norm", "cauchy", "logistic", "laplace", "uniform", "gumbel_r", "gumbel_l", "expon", "pareto"):
        assert set(functions(name)) == set(FUNCTIONS) - {"pmf", "logpmf"}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name):
    ours, theirs = functions(name), getattr(stats, name)
    angles = np.concatenate([RNG.uniform(0, np.pi, 9), [0.0, 1e-3]])
    x = angles if name in ("vonmises", "wrapcauchy") else X
    every = ft.jit(lambda x, q, *shapes: {f: g(q if f in ("ppf", "isf") else x, *shapes) for f, g in ours.items()})
    for shapes in CONTINUOUS[name]:
        for loc, scale in ((0.0, 1.0), (0.5, 2.0)):
            got = every(x, Q, *shapes, loc, scale)
            for f, value in got.items():
                with np.errstate(all="ignore"):
                    want = getattr(theirs, f)(Q if f in ("ppf", "isf") else x, *shapes, loc, scale)
                np.testing.assert_allclose(value, want, rtol=2e-10, atol=1e-14, err_msg=f"{name}.{f}{shapes}")
                assert value.dtype == np.float64
    assert np.isnan([g(0.5, *CONTINUOUS[name][0], 0.0, -1.0) for g in ours.values()]).all()


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete(name):
    ours, theirs = functions(name), getattr(stats, name)
    every = ft.jit(lambda k, q, *shapes: {f: g(q if f == "ppf" else k, *shapes) for f, g in ours.items()})
    for shapes in DISCRETE[name]:
        for f, value in every(K, Q, *map(float, shapes), 1.0).items():
            with np.errstate(all="ignore"):
                want = getattr(theirs, f)(Q if f == "ppf" else K, *shapes, loc=1)
            want = want - 1 if f == "ppf" else want
            value = value - 1 if f == "ppf" else value
            np.testing.assert_allclose(value, want, rtol=2e-10, atol=1e-14, err_msg=f"{name}.{f}{shapes}")


def test_tails_keep_their_digits():
    far = np.array([5.0, 30.0, 1e3, 1e5])
    for name in ("norm", "logistic", "expon", "cauchy"):
        np.testing.assert_allclose(getattr(S, name).logsf(far), getattr(stats, name).logsf(far), rtol=1e-12)
    np.testing.assert_allclose(S.gumbel_r.logsf(far)[2:], -far[2:])
    # Log of the regularized upper incomplete gamma function, by mpmath.
    want = [-787.321423727823380, -4983.658360797738134]
    np.testing.assert_allclose(S.gamma.logsf(np.array([800.0, 5000.0]), 3.0), want, rtol=1e-12)
    assert np.isfinite(S.gamma.logsf(200.0, 3.0))
    np.testing.assert_allclose(
        S.truncnorm.logsf(np.array([31.0, 39.0]), 30.0, 40.0), stats.truncnorm.logsf([31, 39], 30, 40)
    )
    np.testing.assert_allclose(S.norm.logcdf(-1e3), stats.norm.logcdf(-1e3), rtol=1e-6)
    big = np.array([1e5, 1e9, 1e12])
    np.testing.assert_allclose(S.t.logpdf(0.7, big), stats.norm.logpdf(0.7), rtol=1e-5)


SHAPES = {
    "norm": (), "cauchy": (), "logistic": (), "gumbel_r": (), "gamma": (2.5,), "beta": (2.0, 3.0), "t": (3.0,),
    "pareto": (0.7,), "truncnorm": (-1.0, 4.0), "vonmises": (2.0,), "wrapcauchy": (0.4,), "gennorm": (1.7,),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_derivatives_of_log_densities(name):
    x = np.array([0.3, 0.6]) if name != "pareto" else np.array([1.3, 2.0])
    ft.testing.check_grads(getattr(S, name).logpdf, (x, *map(np.asarray, SHAPES[name])), order=1)


def test_other_derivatives():
    for f in (S.norm.logsf, S.norm.ppf, S.gumbel_l.logcdf, S.laplace.isf):
        ft.testing.check_grads(f, (np.array([0.3, 0.6]),), order=1)
    # Derivatives outside of the support are not NaN.
    for name, shapes in (("gamma", (2.0,)), ("beta", (2.0, 2.0)), ("expon", ()), ("pareto", (1.0,)), ("uniform", ())):
        assert float(ft.grad(getattr(S, name).logpdf)(-1.0, *shapes)) in (0.0, -1.0)


def test_promotion_and_refusals():
    assert S.norm.logpdf(0).dtype == np.float32 and S.norm.cdf(fnp.ones(2, fnp.bfloat16)).dtype == fnp.bfloat16
    assert S.beta.pdf(np.ones((3, 1)) / 2, 2.0, np.ones(4)).shape == (3, 4)
    assert S.norm.pdf(fnp.zeros((0, 2))).shape == (0, 2)
    assert np.isnan(S.gamma.cdf(1.0, -1.0)) and np.isnan(S.norm.ppf(1.5)) and np.isnan(S.binom.pmf(1, 2.5, 0.5))
    assert float(S.norm.pdf(x=1.0, scale=2.0)) == pytest.approx(stats.norm.pdf(1, scale=2))
    with pytest.raises(ArgumentError, match=r"norm\.pdf"):
        S.norm.pdf(1.0, 2.0, 3.0, 4.0)
    with pytest.raises(DtypeError, match="real"):
        S.norm.pdf(1j)
    ft.testing.check_vmap(S.gamma.logpdf, (X[:3], np.ones(3)))


def test_entropy():
    mu = np.array([0.0, 0.1, 3.0, 30.0, 49.0, 51.0, 500.0])
    want = [stats.poisson.entropy(m) if m else 0.0 for m in mu]
    np.testing.assert_allclose(S.poisson.entropy(mu), want, rtol=1e-6)
    means = np.array([0.1, 5, 20, 35, 49.9, 50.1, 500])
    narrow = S.poisson.entropy(fnp.asarray(means, "float32"))
    assert narrow.dtype == "float32"
    np.testing.assert_allclose(narrow, [stats.poisson.entropy(m) for m in means], rtol=3e-7)


#: Parameters, and points at which formulas change or the density ends.
SLOPES = {
    "beta": [(0.5, 1.0), (2.0, 3.0)], "cauchy": [()], "expon": [()], "gamma": [(1.0,), (2.0,)],
    "gennorm": [(1.0,), (2.5,)], "gumbel_l": [()], "gumbel_r": [()], "laplace": [()], "logistic": [()], "norm": [()],
}  # fmt: skip


@pytest.mark.parametrize(("name", "shapes"), [(name, shapes) for name, each in SLOPES.items() for shapes in each])
def test_slopes_of_probabilities_are_densities_at_special_points(name, shapes):
    x = np.array([-30, -3, -1, -0.5, -1e-8, 0, 1e-8, 0.25, 0.5, 1, 2, 5])
    ours, scipys = getattr(S, name), getattr(stats, name)(*shapes)
    x = x[np.isfinite(scipys.pdf(x)) & ~((x == 0) & (scipys.pdf(-1e-9) == 0))]  # one-sided slopes are a convention
    slope = lambda f: ft.vmap(ft.grad(lambda x: f(x, *shapes)))(x)
    density = scipys.pdf(x)
    np.testing.assert_allclose(slope(ours.cdf), density, rtol=1e-7)
    np.testing.assert_allclose(slope(ours.sf), -density, rtol=1e-7)
    with np.errstate(invalid="ignore", divide="ignore"):
        wanted = {"logcdf": density / scipys.cdf(x), "logsf": -density / scipys.sf(x)}
    for kind, want in wanted.items():
        if hasattr(ours, kind):
            known = np.isfinite(want)
            np.testing.assert_allclose(slope(getattr(ours, kind))[known], want[known], rtol=1e-7)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gennorm_where_the_power_underflows(dtype):
    x = np.array([-0.9, -0.1, -1e-3, 0.0, 1e-5, 0.16, 0.5], dtype)
    beta = np.array([[2.0], [89.0], [500.0], [1e4]], dtype)
    want = stats.gennorm.cdf(np.float64(x), np.float64(beta))
    # Of SciPy's values those that underflow, too, follow from the density, which is flat there.
    want = np.where(np.abs(np.float64(x)) ** beta == 0, 0.5 + x / (2 * special.gamma(1 + 1 / np.float64(beta))), want)
    tolerance = {"float32": 3e-7, "float64": 3e-14}[dtype]
    np.testing.assert_allclose(S.gennorm.cdf(x, beta), want, rtol=tolerance)
    np.testing.assert_allclose(S.gennorm.sf(x, beta), 1 - want, rtol=tolerance * 3)
    slopes = ft.vmap(ft.vmap(ft.grad(S.gennorm.cdf), (0, None)), (None, 0))(x, beta[:, 0])
    np.testing.assert_allclose(slopes, stats.gennorm.pdf(np.float64(x), np.float64(beta)), rtol=tolerance * 10)
    assert np.isfinite(ft.grad(S.gennorm.cdf, 1)(x[5], beta[1, 0]))


def test_vectors():
    alpha, x = np.array([0.5, 2.0, 3.0]), RNG.dirichlet([1, 1, 1], 4).T
    np.testing.assert_allclose(S.dirichlet.logpdf(x, alpha), stats.dirichlet.logpdf(x, alpha), rtol=1e-10)
    np.testing.assert_allclose(S.dirichlet.pdf(x[:2], alpha), stats.dirichlet.pdf(x, alpha), rtol=1e-10)
    assert float(S.dirichlet.logpdf([0.5, 0.6], [1.0, 1.0])) == -np.inf
    counts, p = np.array([[1, 2, 0], [3, 0, 0], [1, 1, 2]]), np.array([0.2, 0.3, 0.5])
    np.testing.assert_allclose(S.multinomial.logpmf(counts, 3, p), stats.multinomial.logpmf(counts, 3, p), rtol=1e-10)
    mean, root = RNG.normal(size=3), 2 * np.eye(3) + 0.5 * RNG.normal(size=(3, 3))
    cov, points = root @ root.T, RNG.normal(size=(5, 3))
    want = stats.multivariate_normal.logpdf(points, mean, cov)
    np.testing.assert_allclose(S.multivariate_normal.logpdf(points, mean, cov), want, rtol=1e-10)
    np.testing.assert_allclose(S.multivariate_normal.logpdf(points, mean, cov, allow_singular=True), want, rtol=1e-10)
    np.testing.assert_allclose(
        S.multivariate_normal.pdf(points, mean, 2.0), stats.multivariate_normal.pdf(points, mean, 2.0), rtol=1e-10
    )
    flat = np.diag([1.0, 2.0, 0.0])
    at = np.array([[1.0, 2.0, 0.0], [1.0, 2.0, 0.5]])
    want = stats.multivariate_normal.logpdf(at, np.zeros(3), flat, allow_singular=True)
    np.testing.assert_allclose(S.multivariate_normal.logpdf(at, np.zeros(3), flat, True), want, rtol=1e-10)
    np.testing.assert_allclose(
        S.multivariate_normal.logpdf(0.3, 0.1, 2.0), stats.norm.logpdf(0.3, 0.1, 2**0.5), rtol=1e-6
    )
    ft.testing.check_grads(lambda m, r: S.multivariate_normal.logpdf(points, m, r @ r.T), (mean, root), order=1)
    covs = np.stack([cov, cov + np.eye(3)])
    want = np.stack([stats.multivariate_normal.logpdf(points, mean, c) for c in covs], 1)
    np.testing.assert_allclose(S.multivariate_normal.logpdf(points[:, None], mean, covs), want, rtol=1e-10)
    np.testing.assert_allclose(S.multivariate_normal.logpdf(points[:2], mean, covs), np.diag(want[:2]), rtol=1e-10)
    with pytest.raises(ShapeError, match="multivariate_normal"):
        S.multivariate_normal.logpdf(points, np.zeros(2), cov)


# ------------------------------------------------------------------------------------------------------------- samples
@pytest.mark.parametrize("axis", [0, 1, None])
def test_samples(axis):
    a = RNG.integers(0, 4, size=(5, 6)).astype(float)
    holes = np.where(RNG.uniform(size=a.shape) < 0.2, np.nan, a)
    for x in (a, holes):
        for policy in ("propagate", "omit"):
            got, want = S.mode(x, axis, policy), stats.mode(x, axis, nan_policy=policy)
            np.testing.assert_array_equal(got.mode, want.mode)
            np.testing.assert_array_equal(got.count, want.count)
            got, want = S.sem(x, axis, nan_policy=policy), stats.sem(x, axis, nan_policy=policy)
            np.testing.assert_allclose(got, want, rtol=1e-10)
            for method in ("average", "min", "max", "dense", "ordinal") if policy == "propagate" else ("min",):
                got = S.rankdata(x, method, axis=axis, nan_policy=policy)
                np.testing.assert_array_equal(got, stats.rankdata(x, method, axis=axis, nan_policy=policy))
                assert not got.weak_type
    assert S.mode(a, axis, keepdims=True).mode.shape == stats.mode(a, axis, keepdims=True).mode.shape
    with pytest.raises(ArgumentError, match="nan_policy"):
        S.mode(a, nan_policy="raise")


@pytest.mark.parametrize("width", [None, "silverman", 0.3, lambda kde: kde.n**-0.2])
def test_density_estimates(width):
    for data, points in (
        (RNG.normal(size=30), np.linspace(-1, 1, 4)),
        (RNG.normal(size=(2, 30)), RNG.normal(size=(2, 4))),
    ):
        weights = RNG.uniform(size=30)
        for w in (None, weights):
            got, want = S.gaussian_kde(data, width, w), stats.gaussian_kde(data, width, w)
            np.testing.assert_allclose(got(points), want(points), rtol=1e-9)
            np.testing.assert_allclose(got.logpdf(points), want.logpdf(points), rtol=1e-9)
            np.testing.assert_allclose(got.integrate_kde(got), want.integrate_kde(want), rtol=1e-9)
            mean, cov = np.zeros(want.d), np.eye(want.d)
            np.testing.assert_allclose(got.integrate_gaussian(mean, cov), want.integrate_gaussian(mean, cov), rtol=1e-9)
    assert got.resample(random.key(0) if hasattr(random, "key") else random.PRNGKey(0), (7,)).shape == (2, 7)


def test_density_estimates_under_transformations():
    data = RNG.normal(size=20)
    got, want = S.gaussian_kde(data), stats.gaussian_kde(data)
    np.testing.assert_allclose(got.integrate_box_1d(-1.0, 0.5), want.integrate_box_1d(-1.0, 0.5), rtol=1e-9)
    np.testing.assert_allclose(ft.jit(lambda kde, x: kde(x))(got, data), want(data), rtol=1e-9)
    ft.testing.check_grads(lambda d: S.gaussian_kde(d)(np.array([0.1])), (data[:5],), order=1)
    with pytest.raises(ShapeError, match="two samples"):
        S.gaussian_kde(np.zeros(1))


@pytest.mark.parametrize(
    ("name", "shapes"),
    [("bernoulli", (0.3,)), ("bernoulli", (0.0,)), ("poisson", (2.0,)), ("poisson", (0.0,)), ("geom", (0.3,)),
     ("binom", (3, 0.5)), ("gamma", (np.inf,)), ("chi2", (np.inf,)), ("pareto", (np.inf,)), ("beta", (np.inf, 2.0))],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # of SciPy
def test_values_at_infinity_and_of_infinite_shapes(name, shapes):
    x = np.array([np.nan, -np.inf, -1.0, 0.0, 1e-30, 0.5, 1.0, 3.0])
    discrete = name in DISCRETE
    if discrete:
        x = np.append(x, np.inf)
    for f, ours in functions(name).items():
        if f in ("ppf", "isf"):
            expected = getattr(getattr(stats, name), f)([0.0, 0.3, 1.0], *shapes)
            np.testing.assert_array_equal(ours([0.0, 0.3, 1.0], *shapes), expected, err_msg=f)
            continue
        if name == "pareto" and f in ("pdf", "logpdf"):
            expected = getattr(getattr(stats, name), f)(x[:-2], *shapes)  # at 1 the density is infinite
            np.testing.assert_allclose(ours(x[:-2], *shapes), expected, rtol=1e-12, err_msg=f)
            continue
        expected, result = getattr(getattr(stats, name), f)(x, *shapes), np.asarray(ours(x, *shapes))
        known = ~np.isnan(expected)  # SciPy gives NaN for some densities of large x, which are 0
        assert known.sum() >= (3 if name == "beta" and f in ("pdf", "logpdf") else len(x) - 3)
        np.testing.assert_allclose(result[known], expected[known], rtol=1e-12, err_msg=f)
        if name != "beta":
            np.testing.assert_array_equal(np.isnan(result)[1:], False, err_msg=f)


FAR = ("norm", "cauchy", "laplace", "logistic", "gumbel_l", "gumbel_r", "expon", "uniform")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning", "ignore:overflow:RuntimeWarning")  # of SciPy
def test_derivatives_far_outside_and_at_infinity(dtype):
    """Those of probabilities are densities, and those of their logarithms are finite wherever they have limits."""
    x = np.array([-np.inf, -1e12, -100, -2.5, 0.25, 3, 100, 1e12, np.inf], dtype)
    wide = x.astype(float)
    slopes = lambda f: ft.vmap(ft.grad(f))
    kinds = ("pdf", "cdf", "sf", "logcdf", "logsf")
    results = ft.jit(lambda x: {n: {f: slopes(getattr(getattr(S, n), f))(x) for f in kinds} for n in FAR})(x)
    for name, found in results.items():
        density = getattr(stats, name).pdf(wide)
        density[np.isnan(density)] = 0  # where SciPy subtracts infinities
        rtol, atol = (1e-4, 1e-37) if dtype == "float32" else (1e-9, 1e-40)
        np.testing.assert_allclose(found["cdf"], density, rtol=rtol, atol=atol, err_msg=name)
        np.testing.assert_allclose(found["sf"], -density, rtol=rtol, atol=atol, err_msg=name)
        for f in ("pdf", "logcdf", "logsf"):
            assert not np.isnan(found[f]).any(), (name, f)
        ends = {"logcdf": -1, "logsf": 0}  # the probability is 1 there
        assert all(found[f][end] == 0 for f, end in ends.items()), name
    cauchy = ft.jit(lambda x: {f: slopes(getattr(S.cauchy, f))(x) for f in ("logpdf", "logcdf")})(x)
    np.testing.assert_allclose(cauchy["logpdf"], np.where(np.isinf(x), 0, -2 * wide / (1 + wide**2)), rtol=1e-5)
    np.testing.assert_allclose(cauchy["logcdf"][:2], [0, 1e-12], rtol=1e-5)


@pytest.mark.parametrize(("name", "shapes"), [("expon", ()), ("uniform", ()), ("pareto", (2.0,)), ("gamma", (2.0,))])
def test_impossible_values_have_no_derivative_by_the_scale(name, shapes):
    density = getattr(S, name).logpdf
    slope = lambda x: ft.grad(lambda s: density(x, *shapes, 0.0, s))(np.float64(2))
    outside, inside = np.float64(-3), np.float64(3 if name == "pareto" else 1.5)
    assert density(outside, *shapes, 0.0, 2.0) == -np.inf and slope(outside) == 0
    h = 1e-6
    near = [getattr(stats, name).logpdf(inside, *shapes, 0.0, 2 + d) for d in (h, -h)]
    np.testing.assert_allclose(slope(inside), (near[0] - near[1]) / (2 * h), rtol=1e-7)


def test_mixed_derivatives_at_flat_densities():
    x = np.float64(0.25)
    mixed = lambda f, a: ft.grad(lambda a: ft.grad(f, 1)(a, x))(np.float64(a))
    np.testing.assert_allclose(mixed(lambda a, x: S.gamma.logpdf(x, a), 1), 1 / x, rtol=1e-12)
    for b in (1.0, 3.0):
        np.testing.assert_allclose(mixed(lambda a, x, b=b: S.beta.logpdf(x, a, b), 1), 1 / x, rtol=1e-12)
        np.testing.assert_allclose(mixed(lambda a, x, b=b: S.beta.logpdf(x, b, a), 1), -1 / (1 - x), rtol=1e-12)
    np.testing.assert_allclose(ft.grad(lambda x: S.gamma.logpdf(x, 1.0))(np.float64(1e-30)), -1)
    np.testing.assert_allclose(ft.grad(lambda x: S.beta.logpdf(x, 1.0, 3.0))(np.float64(1e-30)), -2)
