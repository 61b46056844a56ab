"""Transposes of one product that XLA finds equal, which used to end the process; selections of equal operands."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax

#: Extents of the free and contracted dimensions, on both sides of the limits within which XLA:CPU writes plain loops.
EXTENTS = [
    (2, 2, 2),
    (2, 3, 2),
    (3, 3, 3),
    (2, 7, 3),
    (6, 2, 5),
    (7, 3, 7),
    (8, 2, 2),
    (4, 4, 4),
    (9, 9, 9),
    (64, 3, 3),
]


@pytest.mark.parametrize(("operands", "result"), [
    ("float32", "float32"), ("float64", "float64"), ("bfloat16", "float32"), ("int8", "int8"), ("int8", "int32"),
    ("int32", "int32"), ("int64", "int64"), ("uint16", "uint16"), ("complex64", "complex64"),
])  # fmt: skip
@pytest.mark.parametrize("tiers", ["auto", "off"])
def test_transposes_that_only_xla_finds_equal(operands, result, tiers):
    rng = np.random.default_rng(0)
    pairs = [
        (rng.integers(-3, 4, (2, m, k)) % 5, rng.integers(-3, 4, (2, n, k)) % 5) for m, k, n in EXTENTS
    ]  # whole numbers from 0 to 4: sums of their products are exact, except in 8 bits, which wrap in NumPy too

    def f(a, b):
        dims = ((2,), (2,)), ((0,), (0,))
        c = lax.dot_general(a, b, dims, preferred_element_type=result)
        return c.transpose(0, 2, 1), c.transpose(2, 0, 1).transpose(1, 0, 2), fnp.maximum(c, c).transpose(0, 2, 1)

    with ft.backends.compilation.flags(tiers=tiers):
        got = ft.jit(lambda pairs: [f(a, b) for a, b in pairs])(ft.tree.map(lambda x: fnp.asarray(x, operands), pairs))
    for (a, b), results in zip(pairs, got, strict=True):
        want = np.einsum("bij,bkj->bki", a, b).astype(result)
        for each in results:
            np.testing.assert_array_equal(each, want)


@pytest.mark.parametrize("tiers", ["auto", "off"])
def test_limits_of_a_product_change_no_special_value(tiers):
    values = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e38, -1e38], "float32")
    a, b = np.stack([values, values], 1)[:, :, None], np.ones((7, 1, 2), "float32")
    with ft.backends.compilation.flags(tiers=tiers), np.errstate(over="ignore"):
        got = np.asarray(ft.jit(fnp.matmul)(a, b * 2))
        np.testing.assert_array_equal(got, a.repeat(2, 2) * 2)
        np.testing.assert_array_equal(ft.jit(fnp.matmul)(a * 10, b), (a * 10).repeat(2, 2))


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
