"""Integers divided by one number that the program does not know; XLA multiplies doubles by its reciprocal."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax

#: 1 / 49, 1 / 98, 1 / 103 and 1 / 107 are rounded down, so that 49 * (1 / 49) is below 1.
DIVISORS = (49, 98, 103, 107, 1, 2, 3, 7, 641, 2**30, 2**31 - 1, -1, -49, -107, -(2**31))
ENDS = (2**31 - 1, 2**31 - 2, -(2**31) + 1, 2**30, -(2**30))
R = np.random.default_rng(0)


@pytest.mark.parametrize("d", DIVISORS)
def test_as_numpy(d):
    multiples = d * np.arange(-999, 1000)
    x = np.concatenate([multiples, multiples + 1, multiples - 1, R.integers(-(2**31) + 1, 2**31, 2000), ENDS])
    x = x[np.abs(x) < 2**31].astype("int32")
    shared = np.int32(d)
    np.testing.assert_array_equal(ft.jit(fnp.floor_divide)(x, shared), x.astype("int64") // d)
    np.testing.assert_array_equal(ft.jit(fnp.mod)(x, shared), x.astype("int64") % d)
    rest = np.fmod(x.astype("int64"), d)
    np.testing.assert_array_equal(ft.jit(lambda x, d: lax.rem(x, fnp.full(x.shape, d)))(x, shared), rest)
    quotient = ft.jit(lambda x, d: lax.div(x, fnp.full(x.shape, d)))
    np.testing.assert_array_equal(quotient(x, shared), (x.astype("int64") - rest) // d)
    np.testing.assert_array_equal(quotient(np.full(4, -(2**31), "int32"), np.int32(-1)), -(2**31))


def test_primes_by_a_loop():
    def sieve():
        numbers = fnp.arange(20_000)
        cross_out = lambda i, left: left & ((numbers % i != 0) | (numbers <= i))
        return fnp.sum(lax.fori_loop(2, 142, cross_out, fnp.ones(20_000, bool)))

    assert ft.jit(sieve)() == 2262 + 2  # the primes below 20,000, and 0 and 1
