"""Sums of computed operands, for which programs for CPUs choose XLA's own loop or YNNPACK by these operands."""

import operator

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import backends
from functorch_like.compiler.routed_sums import with_routed_sums

RNG = np.random.default_rng(0)


def of(full, some, shape, dtype="float32"):
    """An array with the dimensions of `full` that `some` names, and size 1 along the others."""
    return RNG.normal(size=[n if c in some else 1 for c, n in zip(full, shape, strict=True)]).astype(dtype)


# The dimensions of an array, those of its factor, the sizes, and whether XLA's own loop is faster; k is summed over.
FACTORS = [
    ("kij", "k", (32, 8, 48), True),
    ("kij", "kj", (32, 8, 48), True),
    ("kij", "ki", (32, 8, 48), False),
    ("bkj", "kj", (4, 32, 48), True),
    ("bkj", "k", (4, 32, 48), False),
    ("bkj", "bk", (4, 32, 48), False),
    ("bkij", "bki", (2, 16, 4, 48), False),
    ("bkij", "bk", (2, 16, 4, 48), True),
    ("bikj", "ikj", (2, 4, 16, 48), True),
    ("bikj", "ik", (2, 4, 16, 48), False),
    ("kbj", "bj", (32, 8, 48), False),
    ("bjk", "jk", (4, 32, 48), False),
    ("bkj", "kj", (1, 96, 48), False),  # a dimension of size 1 is not missed
    ("bkj", "kj", (2, 32, 48), False),  # few elements
]


@pytest.mark.parametrize(("full", "some", "shape", "own"), FACTORS)
def test_products_with_a_factor_that_repeats(full, some, shape, own):
    x, y, axis = of(full, full, shape), of(full, some, shape), full.index("k")
    y = y + np.sign(y)  # divisors far from 0
    for op in (operator.mul, operator.truediv):
        program = ft.jit(lambda x, y, op=op: fnp.sum(op(x, y), axis))
        assert ("stablehlo.negate" in program.lower(x, y).as_text()) == own
        np.testing.assert_allclose(program(x, y), np.sum(op(x.astype("float64"), y), axis), rtol=1e-4, atol=1e-4)
    text = ft.jit(lambda x, y: fnp.sum(y / x, axis)).lower(x, y).as_text()
    assert "stablehlo.negate" not in text  # XLA makes no product of it


def test_two_factors_that_repeat_are_a_product_of_matrices():
    x, y = of("kij", "ki", (32, 8, 48)), of("kij", "kj", (32, 8, 48))
    program = ft.jit(lambda x, y: fnp.sum(x * y, 0))
    assert "stablehlo.negate" not in program.lower(x, y).as_text()
    np.testing.assert_allclose(program(x, y), np.einsum("kxi,kjx->ij", x.swapaxes(1, 2), y.swapaxes(1, 2)), atol=1e-4)


COLUMNS = {
    "one array": lambda x, y: x,
    "square": lambda x, y: x * x,
    "product": lambda x, y: x * y,
    "function": lambda x, y: np.tanh(x) if isinstance(x, np.ndarray) else fnp.tanh(x),
}


@pytest.mark.parametrize("count", [3, 8, 12, 32, 33])
@pytest.mark.parametrize("name", COLUMNS)
def test_few_columns(name, count):
    function, x = COLUMNS[name], RNG.normal(size=(40, 35, count)).astype("float32")
    program = ft.jit(lambda x, y: fnp.sum(function(x, y), 1))
    np.testing.assert_allclose(program(x, x[::-1]), function(x.astype("float64"), x[::-1]).sum(1), atol=1e-4)
    if count in (8, 33) or name == "one array":
        assert ("stablehlo.negate" in program.lower(x, x).as_text()) == (count < 33)
    elif count == 32:
        assert "stablehlo.negate" not in program.lower(x, x).as_text()


@pytest.mark.parametrize("on", [True, False], ids=["fast", "standard"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "complex64", "int32"])
def test_special_values(dtype, on):
    x = np.zeros((64, 8, 20), "float32") - 0.0
    x[3, 1] = 2
    y = np.ones((64, 1, 1), "float32")
    if dtype not in ("int32",):
        x[5, 2], x[6, 3, :4], y[7] = np.inf, [np.nan, -np.inf, 3e38, -3e38], -1
    x, y = x.astype(fnp.dtype(dtype)), y.astype(fnp.dtype(dtype))
    with np.errstate(all="ignore"):
        wide = "float64" if dtype == "bfloat16" else dtype
        want = np.sum(x.astype(wide) * y.astype(wide), 0)
    with backends.flags({"cpu.fast_lowerings": on or "-routed_sums"}):
        got = np.asarray(ft.jit(lambda x, y: fnp.sum(x * y, 0))(x, y)).astype(wide)
    np.testing.assert_allclose(got, want, rtol=1e-2 if dtype == "bfloat16" else 1e-6)


def test_derivatives_and_batches():
    x, y = RNG.normal(size=(3, 64, 8, 20)).astype("float32"), RNG.normal(size=(64,)).astype("float32")
    program = lambda x, y: fnp.sum(x * y[:, None, None], 0)
    loss = ft.vmap(lambda x, y: fnp.sum(program(x, y) ** 2), in_axes=(0, None))
    got = ft.jit(ft.grad(lambda x, y: fnp.sum(loss(x, y)), argnums=(0, 1)))(x, y)
    s = np.einsum("bkij,k->bij", x.astype("float64"), y)
    np.testing.assert_allclose(got[0], 2 * s[:, None] * y[:, None, None], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(got[1], 2 * np.einsum("bij,bkij->k", s, x), rtol=1e-3, atol=1e-2)


def test_a_program_without_such_sums_is_the_same():
    x, y = of("kij", "kij", (32, 8, 48)), of("kij", "k", (32, 8, 48))
    for program in (lambda x, y: fnp.sum(x * x, 0), lambda x, y: fnp.sum(x, 0), lambda x, y: fnp.sum(x * y, 2)):
        jaxpr = ft.make_jaxpr(program)(x, y)
        assert with_routed_sums(jaxpr) is jaxpr
