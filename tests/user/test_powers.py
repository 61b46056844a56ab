"""Powers of float32 numbers: the special values of IEEE's pow, and errors against double precision, in both tiers."""

import numpy as np
import pytest

import functorch_like as ft

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
