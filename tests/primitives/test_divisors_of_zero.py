"""Constant integers divided by 0 in compiled programs: XLA's results, where jaxlib's folding ends the process."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax

DTYPES = ("int8", "int32", "int64", "uint8", "uint32", fnp.int4, fnp.uint4)


@pytest.mark.parametrize("dtype", DTYPES)
def test_constants_divided_by_zero(dtype):
    x, y = np.array([5, 7, 6], dtype), np.array([0, 2, 0], dtype)
    ones = np.array(-1).astype(dtype)  # all bits are set
    np.testing.assert_array_equal(ft.jit(lambda: lax.div(x, y))(), [ones, 3, ones])
    np.testing.assert_array_equal(ft.jit(lambda: lax.rem(x, y))(), [5, 1, 6])
    np.testing.assert_array_equal(ft.jit(lambda: lax.div(x[0], y[0]))(), ones)
    np.testing.assert_array_equal(ft.jit(lambda: lax.rem(x[0], y[0]))(), 5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_divisors_that_fold_to_zero(dtype):
    def f():
        zero = lax.sub(np.ones(3, dtype), np.ones(3, dtype))
        counts = fnp.arange(3, dtype=dtype)
        return lax.div(np.full(3, 6, dtype), counts), lax.rem(np.full(3, 6, dtype), zero)

    quotients, rests = ft.jit(f)()
    np.testing.assert_array_equal(quotients, [np.array(-1).astype(dtype), 6, 3])
    np.testing.assert_array_equal(rests, [6, 6, 6])


def test_constant_divisors_without_zeros_make_no_test():
    text = ft.jit(lambda x: lax.div(x, np.int16(3)) + lax.rem(x, np.array([1, 2], np.int16))).lower(
        np.ones(2, np.int16)
    )
    assert "select" not in text.as_text()


def test_means_of_nothing_in_integers():
    x = fnp.zeros((2, 0))
    assert fnp.mean(x, axis=1, dtype="int8").shape == (2,)
    assert fnp.mean(x, dtype="int32").dtype == np.int32


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", ["div", "rem"])
def test_nothing_is_divided(op, dtype):
    x, form = np.ones((0, 3), dtype), getattr(lax, op)
    for result in (form(x, x), ft.jit(lambda x: form(x, x))(x), ft.jit(lambda: form(x, x))()):
        assert result.shape == (0, 3)
        assert result.dtype == dtype


@pytest.mark.parametrize("op", ["div", "rem"])
@pytest.mark.parametrize("dtype", [fnp.int4, fnp.uint4])
def test_integers_of_four_bits(dtype, op):
    x, y = (v.ravel() for v in np.meshgrid(np.arange(8), np.arange(1, 8)))
    expected = x // y if op == "div" else x % y
    x, y, form = x.astype(dtype), y.astype(dtype), getattr(lax, op)
    for result in (form(x, y), ft.jit(lambda x, y: form(x, y))(x, y), ft.jit(lambda x: form(x, y))(x)):
        np.testing.assert_array_equal(np.asarray(result).astype(int), expected)
