"""Products of transposed operands: what reaches their lowering, and values and gradients in all ways to write them."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import backends, lax
from functorch_like.compiler.transposed_operands import without_transposes
from functorch_like.primitives.contractions.dot_general import dot_general

DRAW = np.random.default_rng(0)
X, Y = DRAW.normal(size=(256, 80)), DRAW.normal(size=(256, 5))


def products(fun, *args):
    """The left operand's shape and the dimension numbers of each product as it is lowered."""
    jaxpr = without_transposes(ft.make_jaxpr(fun)(*args))
    return [(e.inputs[0].aval.shape, e.params["dimension_numbers"]) for e in jaxpr.equations if e.prim is dot_general]


def test_a_transposed_left_operand_is_taken_as_it_lies():
    direct = [(X.shape, (((0,), (0,)), ((), ())))]
    assert products(lambda x, y: x.T @ y, X, Y) == direct
    assert products(lambda x, y: fnp.einsum("km,kn->mn", x, y), X, Y) == direct
    assert products(lambda x, y: ft.grad(lambda w: fnp.sin(x @ w).sum())(y[:80]), X, Y)[-1] == direct[0]


def test_batches_and_several_dimensions():
    x, y = np.ones((2, 3, 4, 5)), np.ones((3, 2, 4, 7))
    turned = lambda x, y: lax.dot_general(x.transpose(1, 3, 2, 0), y, (((2, 3), (2, 1)), ((0,), (0,))))
    assert products(turned, x, y) == [(x.shape, (((0, 2), (1, 2)), ((1,), (0,))))]
    np.testing.assert_allclose(ft.jit(turned)(x, y), np.einsum("jbki,bjkn->bin", x, y))


def test_a_transpose_that_orders_the_result_stays():
    x, y = np.ones((4, 5, 6)), np.ones((4, 7))
    turned = lambda x, y: lax.dot_general(x.transpose(2, 1, 0), y, (((2,), (0,)), ((), ())))
    assert products(turned, x, y)[0][0] == (6, 5, 4)
    assert ft.jit(turned)(x, y).shape == (6, 5, 7)


def test_operands_without_contracted_dimensions():
    outer = lambda x, y: lax.dot_general(x.T, y, (((), ()), ((), ())))
    assert ft.jit(outer)(X[:2], Y[:3]).shape == (80, 2, 3, 5)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "complex64", "int32"])
@pytest.mark.parametrize("sizes", [(256, 80, 5), (256, 64, 64), (300, 100, 70), (128, 256, 64), (6, 40, 3), (1, 1, 1)])
@pytest.mark.parametrize("on", [True, False], ids=["fast", "standard"])
def test_values_do_not_depend_on_how_a_product_is_written(sizes, dtype, on):
    k, m, n = sizes
    x, y = DRAW.integers(-3, 4, (k, m)).astype(dtype), DRAW.integers(-3, 4, (k, n)).astype(dtype)
    want = np.asarray(x, np.float64).T @ np.asarray(y, np.float64) if dtype != "complex64" else x.T @ y
    with backends.flags({"cpu.fast_lowerings": on}):
        for fun in (
            lambda x, y: x.T @ y,
            lambda x, y: (y.T @ x).T,
            lambda x, y: fnp.einsum("km,kn->mn", x, y),
            lambda x, y: lax.dot_general(x, y, (((0,), (0,)), ((), ()))),
            lambda x, y: ft.vmap(lambda a: a @ y, 1)(x),
        ):
            # Sums of small whole numbers are exact; bfloat16 rounds the result.
            np.testing.assert_allclose(
                np.asarray(ft.jit(fun)(x, y), want.dtype), want, rtol=2**-8 if dtype == "bfloat16" else 0
            )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sizes", [(256, 80, 5), (256, 64, 64), (300, 100, 70)])
def test_gradients_through_both_operands(sizes, dtype):
    k, m, n = sizes
    x, y, s = (DRAW.normal(size=shape).astype(dtype) for shape in ((k, m), (k, n), (m, n)))
    dx, dy = ft.jit(ft.grad(lambda x, y: (s * (x.T @ y)).sum(), (0, 1)))(x, y)
    wide = [np.asarray(a, np.float64) for a in (x, y, s)]
    tolerance = 1e-4 if dtype == "float32" else 1e-11
    np.testing.assert_allclose(dx, wide[1] @ wide[2].T, atol=tolerance)
    np.testing.assert_allclose(dy, wide[0] @ wide[2], atol=tolerance)


def primitives(fun, *args):
    return [e.prim.name for e in ft.make_jaxpr(fun)(*args).equations]


def test_a_matrix_times_mapped_vectors_is_not_transposed():
    """As in equinox, whose layers are written for one vector."""
    w, b, x = DRAW.normal(size=(5, 4)), DRAW.normal(size=5), DRAW.normal(size=(2, 3, 4))
    layer = lambda x: fnp.tanh(w @ x + b)
    last = lambda x: ft.vmap(ft.vmap(layer, 1))(x.transpose(0, 2, 1))
    for fun, transposed in ((ft.vmap(ft.vmap(layer)), 0), (last, 1)):
        assert primitives(fun, x).count("transpose") == transposed
        np.testing.assert_allclose(ft.jit(fun)(x), np.tanh(x @ w.T + b), rtol=1e-6)
    slopes = ft.jit(ft.grad(lambda w: fnp.tanh(ft.vmap(ft.vmap(lambda x: w @ x))(x)).sum()))(w)
    np.testing.assert_allclose(slopes, np.einsum("abo,abi->oi", 1 / np.cosh(x @ w.T) ** 2, x), rtol=1e-6)


@pytest.mark.parametrize("numbers", [(((1,), (0,)), ((), ())), (((0,), (0,)), ((), ())), (((2,), (1,)), ((0,), (0,)))])
def test_mapped_right_operands(numbers):
    ndim = 2 + len(numbers[1][0])
    w, x = DRAW.normal(size=(4, 4, 4)[:ndim]), DRAW.normal(size=(3, 4, 4)[:ndim])
    product = lambda w, x: lax.dot_general(w, x, numbers)
    for axis in range(x.ndim):
        got = ft.vmap(product, (None, axis))(w, np.moveaxis(x, 0, axis))
        np.testing.assert_allclose(got, [np.asarray(product(w, each)) for each in x], rtol=1e-6)


def test_the_precision_of_each_operand_follows_it():
    w, x = np.ones((5, 4), np.float32), np.ones((3, 4), np.float32)
    product = lambda x: lax.dot_general(w, x, (((1,), (0,)), ((), ())), precision=("highest", "default"))
    (e,) = [e for e in ft.make_jaxpr(ft.vmap(product))(x).equations if e.prim is dot_general]
    assert [a.aval.shape for a in e.inputs] == [(3, 4), (5, 4)]
    plain = ft.make_jaxpr(product)(x[0]).equations[-1].params["precision"]
    assert e.params["precision"] == plain[::-1] != plain


def test_a_transposed_operand_is_in_memory_before_its_product():
    """XLA would compute the operand once more, along columns."""
    x, g = np.ones((256, 128), np.float32), np.ones((256, 128), np.float32)
    text = ft.jit(lambda x, g: fnp.tanh(x).T @ g).lower(x, g).as_text()
    assert text.count("func.func private @transpose") == 1 and "call @transpose" in text
    few = ft.jit(lambda x, g: fnp.tanh(x).T @ g).lower(x[:64], g[:64]).as_text()
    assert "call @transpose" not in few
