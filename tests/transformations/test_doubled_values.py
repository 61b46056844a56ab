"""Floats added to themselves, which programs for CPUs multiply by 2."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import backends
from functorch_like.compiler.doubled_values import without_doubling

SPECIAL = np.array([0.0, -0.0, 1.5, -3e38, 3e38, np.inf, -np.inf, np.nan], np.float32)


@pytest.mark.parametrize("on", [True, False], ids=["fast", "standard"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16", "int32"])
def test_values(dtype, on):
    with np.errstate(all="ignore"):
        x = np.array([0, -5, 2**30 + 1]).astype(dtype) if dtype == "int32" else SPECIAL.astype(fnp.dtype(dtype))
        want = x + x
    with backends.flags({"cpu.fast_lowerings": on}):
        got = np.asarray(ft.jit(lambda x: x + x)(x))
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got.astype("float64"), want.astype("float64"))
    np.testing.assert_array_equal(np.signbit(got.astype("float64")), np.signbit(want.astype("float64")))


def test_the_gradient_of_a_square_has_one_product():
    square = ft.grad(lambda x: (fnp.sin(x) ** 2).sum())
    x = np.ones((3, 2), np.float32)
    assert "stablehlo.add" not in ft.jit(square).lower(x).as_text()
    np.testing.assert_allclose(ft.jit(square)(x), np.sin(2 * x), rtol=1e-6)


def test_a_program_without_such_sums_is_the_same():
    for fun in (lambda x: x + 1, lambda x: x * 2):
        jaxpr = ft.make_jaxpr(fun)(SPECIAL)
        assert without_doubling(jaxpr) is jaxpr
