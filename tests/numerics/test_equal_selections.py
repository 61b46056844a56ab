"""Selections between equal operands: XLA ended the process where they were transposes of one batched product."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("tiers", ["auto", "off"])
def test_transposes_of_one_batched_product(dtype, tiers):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 2, 2, 3)).astype(dtype)
    which = rng.normal(size=(2, 2, 2)) > 0

    def f(a, b, which):
        c = lax.dot_general(a, b, (((2,), (2,)), ((0,), (0,)))).transpose(2, 0, 1)
        return fnp.where(which, c, c).transpose(1, 0, 2), c.transpose(1, 0, 2)

    with ft.backends.compilation.flags(tiers=tiers):
        got = ft.jit(f)(a, b, which)
    want = np.einsum("bij,bkj->bki", a.astype(np.float64), b.astype(np.float64))
    for each in got:
        np.testing.assert_allclose(each, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("cases", [1, 2, 3])
def test_one_operand_for_all_cases(cases):
    x, which = np.array([1.0, -0.0, np.nan]), np.array([0, 5, -1], "int32")
    f = ft.jit(
        lambda which, x: lax.select_n(which, *[x * 2] * cases) if cases != 2 else fnp.where(which > 0, x * 2, x * 2)
    )
    got = np.asarray(f(which, x))
    np.testing.assert_array_equal(got, x * 2)
    np.testing.assert_array_equal(np.signbit(got[:2]), [False, True])
    assert "select" not in f.lower(which, x).as_text()
