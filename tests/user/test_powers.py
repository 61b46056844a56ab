"""Powers of float32 numbers: the special values of IEEE's pow, and errors against double precision, in both tiers."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp

SPECIAL = np.array(
    [0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, np.inf, -np.inf, np.nan, 3e38, -3e38, 2e-38, 2**24, 2**24 + 2, -7, 1.5,
     -1.5, 0.99999994, 1.0000001, 1e10, 150, -150],
    np.float32,
)  # fmt: skip
TINY = float(np.finfo(np.float32).tiny)


def both_tiers(f, *xs):
    f = ft.jit(f)
    quick = f(*xs)
    f.optimised()
    return np.asarray(quick), np.asarray(f(*xs))


def exact(x, y):
    with np.errstate(all="ignore"):
        return np.power(np.asarray(x, np.float64), np.asarray(y, np.float64))


def test_special_values():
    x, y = (v.ravel() for v in np.meshgrid(SPECIAL, SPECIAL))
    with np.errstate(all="ignore"):
        want = exact(x, y).astype(np.float32)
    normal = ~((want != 0) & (np.abs(want) < TINY))  # subnormal results may count as zeros
    for got in both_tiers(lambda x, y: x**y, x, y):
        np.testing.assert_allclose(got[normal], want[normal], rtol=1.3e-7)
        zeros = normal & (want == 0)
        np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(want[zeros]))


@pytest.mark.parametrize(
    ("bases", "exponents"),
    [((0, 5), (-10, 10)), ((0.9, 1.1), (-200, 200)), ((0, 1e10), (-3, 3)), ((0.99999, 1.00001), (-1e6, 1e6))],
)
def test_errors_are_half_of_a_digit(bases, exponents):
    rng = np.random.default_rng(0)
    x, y = (rng.uniform(*ends, 20_000).astype(np.float32) for ends in (bases, exponents))
    want = exact(x, y)
    inside = (want > 2 * TINY) & (want < 3e38)
    for got in both_tiers(lambda x, y: x**y, x, y):
        error = np.abs(got - want)[inside] / np.spacing(want[inside].astype(np.float32))
        assert error.max() < 0.54
        assert (np.isinf(got) == (want > 3.5e38))[want > 3.5e38].all()


def test_derivatives_and_exponents_for_all_elements():
    x = np.linspace(0.1, 3, 500, dtype=np.float32)
    for power in (1.7, -0.3, np.float32(2.2)):
        got = ft.vmap(ft.grad(lambda x, power=power: x**power))(x)
        np.testing.assert_allclose(got, power * exact(x, power - 1), rtol=5e-7)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("k", [200, -200, 1100, -1100, 30, -30])
def test_ldexp_by_a_constant_whose_power_is_out_of_range(dtype, k):
    """XLA multiplies constants with one another first: 0 * 2**200 and 1e-38 * 2**200 must not become infinite."""
    info = np.finfo(dtype)
    x = np.array([0.0, -0.0, 1.0, info.tiny, -info.max, np.inf, np.nan, 3.0], dtype)
    with np.errstate(all="ignore"):
        expected = np.ldexp(x, k)
    normal = np.abs(expected) >= info.tiny
    expected = np.where(normal | (expected == 0) | np.isnan(expected), expected, np.copysign(dtype(0), expected))
    for result in (ft.jit(lambda x: fnp.ldexp(x, k))(x), fnp.ldexp(fnp.asarray(x), k)):
        result = np.asarray(result)
        result = np.where(np.abs(result) < info.tiny, np.copysign(dtype(0), result), result)  # subnormal: flushed
        np.testing.assert_array_equal(result, expected)
        np.testing.assert_array_equal(np.signbit(result), np.signbit(expected))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_second_derivatives_of_sinc_at_large_numbers(dtype):
    """The series for small angles must not add NaN to derivatives where its powers are out of range."""
    x = np.array([127.5, 250.25, 0.0, 0.001, 0.5])
    angle = np.pi * x
    with np.errstate(all="ignore"):
        exact = np.pi**2 * ((2 - angle**2) * np.sin(angle) - 2 * angle * np.cos(angle)) / angle**3
    expected = np.where(x < 0.01, -(np.pi**2) / 3 + np.pi**4 * x**2 / 10, exact)
    out = ft.vmap(ft.grad(ft.grad(fnp.sinc)))(fnp.asarray(x).astype(dtype))
    rtol, atol = {"float16": (0.05, 5e-3), "float32": (3e-4, 0), "float64": (1e-9, 0)}[dtype]
    np.testing.assert_allclose(out, expected, rtol=rtol, atol=atol)
    assert np.isfinite(ft.grad(fnp.sinc)(fnp.asarray(2e4 if dtype == "float16" else 1e25, dtype)))
