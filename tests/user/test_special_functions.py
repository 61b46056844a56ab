"""Functions of scipy.special that are loaded on demand, against SciPy and mpmath, in double and single precision."""

import inspect

import mpmath
import numpy as np
import pytest
from scipy import special, stats

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.errors import ArgumentError, ConcretizationError, DtypeError, UnsupportedError
from functorch_like.scipy import special as S

RNG = np.random.default_rng(0)
WIDE = np.concatenate([RNG.uniform(-8, 8, 40), 10 ** RNG.uniform(-9, 4, 40), -(10 ** RNG.uniform(-9, 1, 20)),
                       [0.0, 1.0, 4.0, 6.0, 12.0, 48.0, 0.5, 1.5, np.nan]])  # fmt: skip
RIGHT = np.abs(WIDE)
# Arguments, and a bound of the relative error in double precision.
CASES = {
    "gamma": ((np.concatenate([RNG.uniform(-20, 170, 90), np.arange(1.0, 20.0)]),), 2e-14),
    "erfcx": ((WIDE[WIDE > -20],), 6e-15), "dawsn": ((WIDE,), 2e-14), "spence": ((RIGHT,), 3e-15),
    "fresnel": ((np.clip(WIDE, -50, 50),), 5e-15), "sici": ((WIDE,), 1e-12), "gammasgn": ((WIDE,), 0),
    "exp1": ((np.minimum(RIGHT, 600),), 3e-15), "expi": ((np.clip(WIDE, -600, 600),), 1e-13),
    "expn": ((RNG.integers(0, 9, RIGHT.size), np.minimum(RIGHT, 600)), 2e-14),
    "beta": ((RIGHT[:80] % 30 + 0.1, RIGHT[20:100] % 20 + 0.1), 1e-13), "factorial": ((np.arange(-2.0, 171.0),), 1e-15),
    "poch": ((RIGHT[:80] % 30, RIGHT[20:100] % 9), 1e-13),
    "betaln": ((RIGHT[:80] + 0.01, RIGHT[20:100] % 9 + 0.3), 1e-12),
    "comb": ((np.arange(40.0)[:, None], np.arange(-1.0, 40.0)), 1e-13),
    "boxcox": ((RIGHT[:80] + 0.01, RNG.normal(size=80) % 2), 1e-14),
    "boxcox1p": ((RIGHT[:80], np.append(RNG.normal(size=79), 0.0) % 1), 1e-14),
    "owens_t": ((RNG.normal(size=80) * 3, RNG.normal(size=80) * 2), 1e-12),
    "hyp1f1": ((RNG.normal(size=80), np.abs(RNG.normal(size=80)) + 0.2, RNG.normal(size=80) * 8), 1e-10),
    "hyp2f1": ((*RNG.normal(size=(2, 80)), np.abs(RNG.normal(size=80)) + 0.2, RNG.uniform(-3, 1, 80)), 1e-9),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    args, bound = CASES[name]
    args = [np.asarray(a, np.float64) for a in args]
    f, want = getattr(S, name), getattr(special, name)
    for dtype, tolerance in ((np.float64, bound), (np.float32, 1.3e-7)):
        given = [a.astype(dtype) for a in args]
        with np.errstate(all="ignore"):
            exact = want(*(a.astype(np.float64) for a in given))
            pairs = zip(*(v if isinstance(v, tuple) else (v,) for v in (f(*given), exact)), strict=True)
            for got, value in pairs:
                assert got.dtype == dtype
                small = 1e-300 if dtype == np.float64 else 2e-38  # XLA flushes subnormal numbers to zero
                np.testing.assert_allclose(got, value.astype(dtype), rtol=tolerance, atol=small, err_msg=name)


@mpmath.workdps(40)
def test_values_by_mpmath():
    """mpmath gives the expected values where SciPy is less accurate."""
    x = np.array([0.01, 0.3, 1.3, 4.2, 14.3, 35.0])
    root = mpmath.sqrt(mpmath.pi) / 2
    exact = [root * mpmath.exp(-(mpmath.mpf(v) ** 2)) * mpmath.erfi(v) for v in x.tolist()]
    want = [float(v) for v in exact]
    np.testing.assert_allclose(S.dawsn(x), want, rtol=3e-15)
    # Far to the right 1 and 2 x dawsn(x) cancel in the derivative.
    slope = [float(1 - 2 * mpmath.mpf(v) * d) for v, d in zip(x.tolist(), exact, strict=True)]
    np.testing.assert_allclose(ft.vmap(ft.grad(S.dawsn))(x), slope, rtol=1e-14)
    np.testing.assert_allclose(ft.vmap(ft.grad(S.dawsn))(-x.astype(np.float32)), slope, rtol=1e-6)
    z = [0.3 + 0.01j, 5.1 - 2.5j, -1.2 + 6.2j, 1e-3 + 1e-9j, 30 + 0.2j, 6.14 + 1e-12j, -3 - 1j, 1e9 + 1e-3j]
    want = [complex(mpmath.exp(-mpmath.mpc(v) ** 2) * mpmath.erfc(-1j * mpmath.mpc(v))) if abs(v) < 1e3 else
            complex(1j / mpmath.sqrt(mpmath.pi) / mpmath.mpc(v)) for v in z]  # fmt: skip
    got = np.asarray(S.wofz(np.array(z)))
    np.testing.assert_allclose(got, want, rtol=2e-15)
    np.testing.assert_allclose(got.real[:-1], np.real(want)[:-1], rtol=5e-14)
    z = [0.5 + 1j, -3.3 + 0.1j, -3.3 - 0.1j, 40 - 20j, -1e-6 - 1e-6j, -50.5 + 30j, 2.0 + 1e-3j]
    np.testing.assert_allclose(
        S.loggamma(np.array(z)), [complex(mpmath.loggamma(v)) for v in z], rtol=1e-12, atol=1e-14
    )
    x = np.array([9431.873878434573, 123456.789])
    np.testing.assert_allclose(S.fresnel(x)[0], [float(mpmath.fresnels(float(v))) for v in x], rtol=1e-15)
    a, b = np.array([0.18585984806041614, 1e6, 30.0]), np.array([5802.613705826926, 2e6, 1e9])
    want = [float(mpmath.log(mpmath.beta(float(p), float(q)))) for p, q in zip(a, b, strict=True)]
    np.testing.assert_allclose(S.betaln(a, b), want, rtol=2e-13)


@pytest.mark.parametrize(("dtype", "rtol"), [(np.complex64, 6.1e-8), (np.complex128, 4e-14)])
@pytest.mark.parametrize("size", [0.3, 3.0, 9.0, 60.0])
def test_wofz_in_all_quadrants(dtype, rtol, size):
    x, y = np.random.default_rng(7).uniform(-size, size, (2, 3000))
    z = np.concatenate([x + 1j * y, x, 1j * y, x + 1e-12j]).astype(dtype)
    with np.errstate(all="ignore"):
        z = z[np.abs(special.wofz(z.astype(np.complex128))) < 1e30]
    wide = z.astype(np.complex128)
    want = special.wofz(wide)
    got, slope = ft.jvp(S.wofz, (z,), (np.ones_like(z),))
    np.testing.assert_allclose(got, want, rtol=rtol)
    error = np.abs(np.asarray(slope, np.complex128) - 2j / np.sqrt(np.pi) + 2 * wide * want)
    assert np.max(error / (1 + np.abs(wide * want))) < 4 * rtol


@mpmath.workdps(40)
@pytest.mark.parametrize("count", [60, 8192])
def test_digamma_keeps_its_digits_around_its_zero(count):
    """The zero is no number of float64, and XLA adds up the constants that are subtracted one after the other."""
    x = np.resize(np.linspace(1.46163, 1.46164, 60), count)
    want = [float(mpmath.digamma(v)) for v in x[:60].tolist()]
    np.testing.assert_allclose(ft.jit(S.digamma)(x)[:60], want, rtol=1e-15)


def test_ends():
    x = np.array([np.inf, -np.inf, np.nan, 0.0])
    for name in ("gamma", "dawsn", "erfcx", "fresnel", "exp1", "expi", "sici", "gammasgn"):
        got, want = getattr(S, name)(x), getattr(special, name)(x)
        for g, w in zip(*(v if isinstance(v, tuple) else (v,) for v in (got, want)), strict=True):
            keep = [0, 2, 3] if name in ("erfcx", "exp1", "gammasgn", "sici") else [0, 1, 2, 3]
            np.testing.assert_array_equal(np.asarray(g)[keep], w[keep], err_msg=name)
    np.testing.assert_allclose(S.poch(np.array([-3.0, -3.0, 0.0, 2.5]), np.array([3.0, 4.0, 1.0, 0.0])), [-6, 0, 0, 1])
    assert np.isnan(S.loggamma(-0.5)) and S.wofz(1.0).dtype == np.complex64
    np.testing.assert_allclose(S.hyp2f1(0.5, 0.2, 1.5, 1.0), special.hyp2f1(0.5, 0.2, 1.5, 1), rtol=1e-6)
    np.testing.assert_allclose(S.zeta(np.array([2.0, 3.0])), special.zeta([2, 3]), rtol=1e-14)


POINTS = np.array([0.3, 1.7, 5.2])
OPERANDS = {
    **dict.fromkeys(("gamma", "erfcx", "dawsn", "exp1", "expi", "sici", "fresnel", "spence", "factorial"), (POINTS,)),
    **dict.fromkeys(("beta", "betaln", "poch"), (POINTS, POINTS[::-1])),
    "boxcox": (POINTS, np.array([0.0, 1e-9, -0.7])),
    "owens_t": (POINTS, np.array([0.3, 1.4, -2.0])),
    "hyp1f1": (POINTS, POINTS + 0.1, np.array([0.5, -2.0, 3.0])),
    "hyp2f1": (POINTS, POINTS[::-1], POINTS + 0.3, np.array([0.5, -2.0, 0.95])),
}


@pytest.mark.parametrize("name", OPERANDS)
def test_derivatives(name):
    ft.testing.check_grads(getattr(S, name), OPERANDS[name], order=1)


SLOPES = {
    "expn": (lambda x: S.expn(np.array([0.0, 1.0, 4.0]), x), POINTS, 2),
    "hyp1f1": (lambda x: S.hyp1f1(0.5, 1.5, x), POINTS[0], 2),
    "complex": (lambda z: fnp.abs(S.wofz(z)) + fnp.real(S.loggamma(z)), np.array([0.3 + 0.2j, 2 - 1j]), 1),
    "harmonic": (lambda t: fnp.real(S.sph_harm_y(3, 2, t, 0.4)), POINTS[:2], 1),
    "bessel": (lambda z: S.bessel_jn(z, v=3), POINTS, 1),
}


@pytest.mark.parametrize("name", SLOPES)
def test_derivatives_by_one_operand(name):
    f, at, order = SLOPES[name]
    ft.testing.check_grads(f, (at,), order=order)


def test_derivative_where_the_closed_form_cancels():
    # (erfcx)' = 2 x erfcx - 2 / sqrt(pi), at 1e5 about -1 / (sqrt(pi) x**2).
    np.testing.assert_allclose(ft.grad(S.erfcx)(np.float64(1e5)[None][0]), -5.641895835e-11, rtol=1e-6)


def test_transformations_and_refusals():
    x = RIGHT[:6]
    for f in (S.sici, S.dawsn, lambda x: S.expn(2.0, x), lambda x: S.hyp1f1(0.5, 1.5, -x)):
        ft.testing.check_vmap(f, (x,))
    assert S.erfcx(fnp.zeros((0, 2))).shape == (0, 2) and S.hyp1f1(1.0, 2.0, fnp.zeros(0)).shape == (0,)
    assert S.dawsn(fnp.ones(2, fnp.bfloat16)).dtype == fnp.bfloat16 and S.exp1(1).dtype == np.float32
    with pytest.raises(DtypeError, match="real"):
        S.dawsn(1j)
    with pytest.raises(ArgumentError, match="missing a required argument: 'm'"):
        S.poch(1.0)


def test_tables_and_sums():
    np.testing.assert_allclose(S.bernoulli(40), special.bernoulli(40), rtol=2e-7)
    assert S.bernoulli(0).tolist() == [1.0] and S.bernoulli(1).tolist() == [1.0, -0.5]
    np.testing.assert_allclose(S.multigammaln(np.array([2.5, 7.0]), 3), special.multigammaln([2.5, 7.0], 3), rtol=1e-12)
    assert S.comb(5, 3, repetition=True) == special.comb(5, 3, repetition=True)
    with pytest.raises(UnsupportedError, match="exact"):
        S.comb(5, 3, exact=True)
    z = np.array([0.0, 0.1, -3.0, 20.0, 49.0])
    np.testing.assert_allclose(S.bessel_jn(z, v=9), special.jv(np.arange(10)[:, None], z), rtol=1e-10, atol=1e-14)
    n, m = RNG.integers(0, 9, 60), RNG.integers(-9, 10, 60)
    theta, phi = RNG.uniform(0, np.pi, 60), RNG.uniform(0, 6, 60)
    want = special.sph_harm_y(n, m, theta, phi)
    np.testing.assert_allclose(S.sph_harm_y(n, m, theta, phi), want, rtol=1e-11, atol=1e-13)
    got = ft.jit(lambda n: S.sph_harm_y(n, m, theta, phi, n_max=8))(n)
    np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-13)
    with pytest.raises(ConcretizationError, match="n_max"):
        ft.jit(lambda n: S.sph_harm_y(n, m, theta, phi))(n)


def test_arguments_are_given_by_name_too():
    assert float(S.beta(a=2.0, b=3.0)) == float(S.beta(2.0, b=3.0)) == float(S.beta(2.0, 3.0))
    assert list(inspect.signature(S.betainc).parameters) == ["a", "b", "x"]
    for wrong, reason in (
        (lambda: S.beta(1.0), "missing a required argument: 'b'"),
        (lambda: S.beta(1.0, c=2.0), "missing a required argument: 'b'|unexpected keyword argument 'c'"),
        (lambda: S.beta(1.0, 2.0, b=3.0), "multiple values for argument 'b'"),
    ):
        with pytest.raises(ArgumentError, match=reason):
            wrong()


@pytest.mark.parametrize("name", ["beta", "betaln", "poch", "zeta", "xlogy", "gammainc", "rel_entr", "kl_div"])
def test_a_result_is_as_strongly_typed_as_the_arrays(name):
    function, x = getattr(S, name), np.ones(3, np.float32)
    assert not function(2.0, x).weak_type and not function(x, 2.0).weak_type
    assert (function(2.0, x) * fnp.ones(3, "bfloat16")).dtype == "float32"


@pytest.mark.parametrize("name", ["xlogy", "xlog1py"])
def test_products_with_logarithms_of_complex_numbers(name):
    f, expected = getattr(S, name), getattr(special, name)
    x, y = RNG.normal(size=(2, 40)) + 3j * RNG.normal(size=(2, 40))
    x[0] = 0
    np.testing.assert_allclose(f(x, y), expected(x, y), rtol=1e-13)
    np.testing.assert_allclose(ft.jit(f)(x.astype("complex64"), y), expected(x, y), rtol=1e-5)
    slope = (expected(2 + 1j, 1 - 2j + 1e-6) - expected(2 + 1j, 1 - 2j - 1e-6)) / 2e-6
    np.testing.assert_allclose(ft.grad(f, 1, holomorphic=True)(2 + 1j, 1 - 2j), slope, rtol=1e-4)


@pytest.mark.parametrize("name", ["beta", "poch", "betaln"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_maps_of_functions_that_choose_their_form_for_all_elements(name, dtype):
    """Some elements need the general form, and others not; a map does not make one choice for each element."""
    f, expected = getattr(S, name), getattr(special, name)
    x, y = (RNG.uniform(0.2, 4, size=(3, 5)).astype(dtype) for _ in range(2))
    odd = x.copy()
    odd[1, 2] = -0.5
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    for a in (x, odd):
        np.testing.assert_allclose(ft.jit(ft.vmap(f))(a, y), expected(a, y), rtol=tolerance, atol=tolerance)
        mapped = ft.vmap(f, (1, None), 1)(a, y[:, 0])
        np.testing.assert_allclose(mapped, expected(a, y[:, :1]), rtol=tolerance, atol=tolerance)
        slopes = ft.vmap(ft.vmap(ft.grad(f, (0, 1))))(a, y)
        tangents = ft.vmap(lambda u, v: ft.jvp(f, (u, v), (fnp.ones_like(u), fnp.ones_like(v)))[1])(a, y)
        np.testing.assert_allclose(tangents, slopes[0] + slopes[1], rtol=1e2 * tolerance, atol=10 * tolerance)
    text = ft.jit(ft.vmap(f)).lower(x, y).as_text()
    assert "stablehlo.case" in text or "stablehlo.if" in text or (name == "betaln" and dtype == "float64")


def test_beta_and_poch_keep_their_digits():
    x, y = RNG.uniform(0.1, 5, size=(2, 100))
    with mpmath.workdps(40):
        numbers = [(mpmath.mpf(a), mpmath.mpf(b)) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
        beta, poch = ([float(f(a, b)) for a, b in numbers] for f in (mpmath.beta, mpmath.rf))
    np.testing.assert_allclose(S.beta(x, y), beta, rtol=20 * 2.3e-16)
    np.testing.assert_allclose(S.poch(x, y), poch, rtol=20 * 2.3e-16)


def test_derivatives_at_zero_and_far_to_the_left():
    x = np.array([-np.inf, -40.0, -1.0, -0.0, 0.0, 0.7, 30.0, np.inf])
    root = 2 / np.sqrt(np.pi)
    near = slice(2, 6)
    with np.errstate(invalid="ignore"):
        erfcx, dawsn = 2 * x * special.erfcx(x) - root, 1 - 2 * x * special.dawsn(x)
    for dtype, rtol in ((np.float64, 1e-14), (np.float32, 3e-7)):
        given = fnp.asarray(x, dtype)
        for f, expected in ((S.erfcx, erfcx), (S.dawsn, dawsn)):
            forward, reverse = ft.jvp(f, (given,), (fnp.ones_like(given),))[1], ft.vmap(ft.grad(f))(given)
            np.testing.assert_allclose(forward[near], expected[near], rtol=rtol)
            np.testing.assert_allclose(forward, reverse, rtol=rtol)
        np.testing.assert_array_equal(forward[np.array([0, 7])], 0)  # of dawsn
        np.testing.assert_array_equal(ft.vmap(ft.grad(S.erfcx))(given[:2]), -np.inf)
        np.testing.assert_allclose(
            ft.vmap(ft.grad(S.erfcx))(given[6:]), [-root / 2 / 900 * (1 - 1.5 / 900), 0], rtol=1e-5
        )
        slope = ft.jvp(S.wofz, (given[near],), (fnp.ones(4, dtype),))[1]
        np.testing.assert_allclose(slope, -2 * x[near] * special.wofz(x[near]) + 1j * root, rtol=rtol)
    for f in (S.dawsn, S.factorial):
        assert np.isnan(ft.jvp(f, (np.nan,), (1.0,))[1])


def test_derivatives_of_hypergeometric_series_where_others_are_not_finite():
    x = np.array([-1.5, 0.3, 0.95, 2.0])  # at 2 all is infinite
    slope = ft.vmap(ft.grad(lambda x: S.hyp2f1(0.5, 1.5, 2.5, x)))(fnp.asarray(x))
    np.testing.assert_allclose(slope[:3], 0.5 * 1.5 / 2.5 * special.hyp2f1(1.5, 2.5, 3.5, x[:3]), rtol=1e-6)


def test_complex_arguments():
    z = np.array([1 + 2j, -1.5 + 0.5j, 4.0, 0.3 - 8j, -20.2 + 1e-3j])
    for dtype, rtol in ((np.complex128, 2e-14), (np.complex64, 3e-7)):
        rounded = z.astype(dtype).astype(complex)
        np.testing.assert_allclose(S.gamma(z.astype(dtype)), special.gamma(rounded), rtol=rtol)
        np.testing.assert_allclose(S.erfcx(z[:4].astype(dtype)), special.erfcx(rounded[:4]), rtol=rtol)
        for rate in (0.0, 1e-9, -1.5, 0.5 + 1j):
            power = (lambda w, r=rate: np.log(w) if r == 0 else np.expm1(r * np.log(w)) / r)  # fmt: skip
            np.testing.assert_allclose(S.boxcox(z.astype(dtype), rate), power(rounded), rtol=4 * rtol)
            np.testing.assert_allclose(S.boxcox1p(z.astype(dtype), rate), power(1 + rounded), rtol=4 * rtol)
    assert np.isnan(S.gamma(np.array([0j, -2]))).all()
    step = 1e-6
    for f in (special.gamma, special.erfcx):
        slope = ft.grad(getattr(S, f.__name__), holomorphic=True)(z[0])
        np.testing.assert_allclose(slope, (f(z[0] + step) - f(z[0] - step)) / (2 * step), rtol=1e-8)


def test_signs_of_sums_that_are_zero():
    for x in ([-np.inf, -np.inf], [np.nan, 1.0], [1.0, 2.0]):
        expected = special.logsumexp(x, return_sign=True)
        np.testing.assert_array_equal(S.logsumexp(np.array(x), return_sign=True)[1], expected[1])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_derivatives_of_distribution_functions_at_the_ends_are_densities(dtype):
    """At an end where a power is 0**0 the product of its exponent and logarithm is 0 times infinity."""
    at = lambda x: fnp.asarray(x, dtype)
    slope = lambda f: lambda x: float(ft.jit(ft.grad(f))(at(x)))
    for a in (0.5, 1.0, 2.0, 3.5):
        p, q = slope(lambda x, a=a: S.gammainc(at(a), x)), slope(lambda x, a=a: S.gammaincc(at(a), x))
        for x in (0.0, 0.7, np.inf):
            want = stats.gamma.pdf(x, a) if x < np.inf else 0.0
            np.testing.assert_allclose([p(x), q(x)], [want, -want], rtol=1e-5)
        by_a = ft.grad(lambda a, x: S.gammainc(a, x), 0)
        assert float(ft.grad(by_a, 1)(at(a), at(np.inf))) == 0
    assert slope(lambda x: ft.grad(lambda x: S.gammainc(at(1), x))(x))(0.0) == -1
    for a, b in ((1.0, 1.0), (1.0, 2.5), (2.5, 1.0), (0.5, 0.5), (3.0, 2.0)):
        p = slope(lambda x, a=a, b=b: S.betainc(at(a), at(b), x))
        for x in (0.0, 0.3, 1.0):
            np.testing.assert_allclose(p(x), stats.beta.pdf(x, a, b), rtol=1e-5)


def test_mixed_derivatives_of_distribution_functions_at_the_ends():
    """Densities that are 0 there outweigh the logarithm that a derivative by the shape multiplies them by."""
    nested = lambda f, i, k: lambda *x: float(ft.jit(ft.grad(ft.grad(f, i), k))(*map(np.float64, x)))
    mixed = lambda f, k: lambda *x: nested(f, k, len(x) - 1)(*x)
    turned = lambda f, k: lambda *x: nested(f, len(x) - 1, k)(*x)  # by x first, then by the shape
    for a in (1.5, 2.0, 4.0):
        want = mpmath.diff(lambda a, x: mpmath.gammainc(a, 0, x, regularized=True), (a, 0.3), (1, 1))
        for f, sign in ((S.gammainc, 1), (S.gammaincc, -1)):
            assert mixed(f, 0)(a, 0) == turned(f, 0)(a, 0) == turned(f, 0)(a, np.inf) == 0
            np.testing.assert_allclose(turned(f, 0)(a, 0.3), sign * float(want), rtol=1e-8)
            np.testing.assert_allclose(mixed(f, 0)(a, 0.3), sign * float(want), rtol=1e-8)
        for b in (1.0, 2.5):
            for order in (mixed, turned):
                assert order(S.betainc, 0)(a, b, 0) == order(S.betainc, 1)(b, a, 1) == 0
            want = mpmath.diff(lambda a, b, x: mpmath.betainc(a, b, 0, x, regularized=True), (a, b, 0.3), (1, 0, 1))
            np.testing.assert_allclose(mixed(S.betainc, 0)(a, b, 0.3), float(want), rtol=1e-8)
            np.testing.assert_allclose(mixed(S.betainc, 1)(b, a, 0.7), float(want), rtol=1e-8)
    assert mixed(S.gammainc, 0)(1, 0) == mixed(S.betainc, 0)(1, 2, 0) == -np.inf


def test_slopes_of_densities_at_the_ends():
    """The derivative of a power whose base is 0 is the power's, also where the density itself is 0."""
    twice = lambda f: lambda x: float(ft.jit(ft.grad(ft.grad(f)))(np.float64(x)))
    for a, want in ((1.0, -1.0), (1.5, np.inf), (2.0, 1.0), (3.0, 0.0)):
        np.testing.assert_allclose(twice(lambda x, a=a: S.gammainc(a, x))(0), want, rtol=1e-12)
        np.testing.assert_allclose(twice(lambda x, a=a: S.gammaincc(a, x))(0), -want, rtol=1e-12)
    for a, b in ((1, 1), (2, 3), (3, 1), (1, 2), (2, 2), (4, 3)):
        x = np.polynomial.Polynomial([0.0, 1.0])
        slope = (x ** (a - 1) * (1 - x) ** (b - 1)).deriv() / special.beta(a, b)
        for end in (0.0, 1.0):
            p = twice(lambda x, a=a, b=b: S.betainc(float(a), float(b), x))(end)
            np.testing.assert_allclose(p, slope(end), rtol=1e-10)


def test_ends_and_near_equals():
    """A choice among nothing, quotients whose dividend overflows, infinite arguments: SciPy has values of them."""
    np.testing.assert_array_equal(S.comb(np.array([0.0, 5.0, 0.0]), np.array([0, 0, 1.0]), repetition=True), [1, 1, 0])
    x, rate = np.array([100, 0.01, 2.0, 0.5]), np.array([155.0, -155.0, 70.0, -70.0])
    np.testing.assert_allclose(S.boxcox(x, rate), special.boxcox(x, rate), rtol=1e-13)
    near = np.array([1.0, 0.5, 3.0, 2.0])
    other = near * (1 + np.array([1e-9, 1e-5, 0.3, 2.0]))
    with mpmath.workdps(40):
        pairs = [(mpmath.mpf(float(a)), mpmath.mpf(float(b))) for a, b in zip(near, other, strict=True)]
        exact = [float(a * mpmath.log(a / b)) for a, b in pairs]
        gaps = [float(a * mpmath.log(a / b) - a + b) for a, b in pairs]
    np.testing.assert_allclose(S.rel_entr(near, other), exact, rtol=1e-15)
    np.testing.assert_allclose(S.kl_div(near, other), gaps, rtol=1e-15, atol=1e-16)
    z = np.array([complex(a, b) for a in (-np.inf, 0, 1, np.inf) for b in (0, 1, np.inf)] + [complex(0, -np.inf)])
    np.testing.assert_allclose(S.wofz(z), special.wofz(z), rtol=1e-14)


def test_sides_of_the_cut_of_loggamma():
    for real in (-3.4, -0.5, 0.3):
        for imaginary in (0.0, -0.0):
            z = np.array(complex(real, imaginary))
            np.testing.assert_allclose(S.loggamma(z), special.loggamma(z), rtol=1e-14)


def test_hyp1f1_far_to_the_left() -> None:
    """Kummer's factors exp(x) and 1F1(b - a, b, -x) leave the range of float64 there."""
    x = np.asarray([-599.0, -601.0, -707.0, -708.5, -709.7827128934, -745.0, -1000.0, -1e4, -1e8])
    for a, b in ((0.5, 1.5), (1.0, 0.3), (-0.7, -0.9), (3.25, 12.0), (2.5, 0.5), (10.0, 2.0)):
        got = np.asarray(S.hyp1f1(a, b, x))
        for value, at in zip(got, x, strict=True):
            expected = float(mpmath.hyp1f1(a, b, at))
            np.testing.assert_allclose(value, expected, rtol=1e-11, atol=1e-300)
        slope = ft.vmap(ft.grad(lambda x, a=a, b=b: S.hyp1f1(a, b, x)))(x)
        for value, at in zip(np.asarray(slope), x, strict=True):
            np.testing.assert_allclose(value, float(a / b * mpmath.hyp1f1(a + 1, b + 1, at)), rtol=1e-9, atol=1e-290)
    assert np.isnan(S.hyp1f1(40.0, 0.3, np.float64(-1000.0)))  # neither series has digits


@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivatives_of_bessel_functions_near_zero(order: int) -> None:
    """Series of I1: 1/2 x + 1/16 x**3 + ...; of exp(-x) I1: 1/2 x - 1/2 x**2 + 5/16 x**3 + ..."""
    x = np.asarray([1e-300, 1e-20, 1e-12, 1e-9])
    plain, scaled = S.i1, S.i1e
    for _ in range(order):
        plain, scaled = ft.grad(plain), ft.grad(scaled)
    expected = {1: 0.5 + x * 0, 2: 0.375 * x, 3: 0.375 + x * 0}[order]
    np.testing.assert_allclose(ft.vmap(plain)(x), expected, rtol=1e-8, atol=1e-15)
    np.testing.assert_allclose(ft.vmap(scaled)(x), {1: 0.5 - x, 2: 1.875 * x - 1, 3: 1.875 - 7 * x}[order], rtol=1e-8)
    middle = np.asarray([0.3, 0.999999, 1.000001, 5.0, -0.7])
    expected = [float(mpmath.diff(lambda t: mpmath.besseli(1, t), t, order)) for t in middle]
    np.testing.assert_allclose(ft.vmap(plain)(middle), expected, rtol=1e-8)
