"""Positions of extremes of values that XLA may compute twice: for the extreme, and to compare them with it."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax, nn

RNG = np.random.default_rng(0)
SHAPE = (8, 16, 16, 8)


# Other compile options: each contracts other products and sums, those of the quick tier and those behind it.
def quick(f):
    return ft.jit(f, mode="fast-compile")


def expression(a, b, c, d):
    return a * b + c * d  # either product may be contracted with the sum


def blocks(x):
    n, height, width, channels = x.shape
    return x.reshape(n, height // 2, 2, width // 2, 2, channels)


def operands(dtype, shape=SHAPE):
    return [RNG.normal(size=shape).astype(dtype) for _ in range(4)]


def exact(given):
    return expression(*(x.astype(np.float64) for x in given))


@pytest.mark.parametrize("jit", [quick, ft.jit])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("fold", "extreme"), [(fnp.max, np.max), (fnp.min, np.min)])
def test_derivatives_of_extremes(fold, extreme, dtype, jit):
    given = operands(dtype)
    loss = lambda a, *rest: fnp.sum(fnp.sin(fold(blocks(nn.relu(expression(a, *rest))), axis=(2, 4))))
    x = exact(given)
    here = (blocks(x) == extreme(blocks(x), axis=(2, 4), keepdims=True)).reshape(SHAPE) & (x > 0)
    wanted = here * np.cos(x) * given[1]
    np.testing.assert_allclose(jit(ft.grad(loss))(*given), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("jit", [quick, ft.jit])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_pooling_behind_a_depthwise_convolution(dtype, jit):
    x, kernel = RNG.normal(size=SHAPE).astype(dtype), RNG.normal(size=(3, 3, 1, 8)).astype(dtype)
    bias = RNG.normal(size=8).astype(dtype)
    numbers = ("NHWC", "HWIO", "NHWC")

    def loss(kernel, x):
        y = lax.conv_general_dilated(x, kernel, (1, 1), "VALID", dimension_numbers=numbers, feature_group_count=8)
        return fnp.sum(fnp.sin(fnp.max(blocks(nn.relu(y + bias)), axis=(2, 4))))

    padded = np.stack([x[:, i : i + 14, j : j + 14] for i in range(3) for j in range(3)], -2).astype(np.float64)
    y = np.einsum("nhwkc,kc->nhwc", padded, kernel.reshape(9, 8)) + bias
    here = (blocks(y) == blocks(y).max((2, 4), keepdims=True)).reshape(y.shape) & (y > 0)
    wanted = np.einsum("nhwkc,nhwc->kc", padded, here * np.cos(y)).reshape(kernel.shape)
    np.testing.assert_allclose(jit(ft.grad(loss))(kernel, x), wanted, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("jit", [quick, ft.jit])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_other_functions_that_look_for_extremes(dtype, jit):
    given = operands(dtype, (64, 32))
    x, segments = exact(given), np.arange(64) * 7 % 5
    of = lambda f: jit(ft.grad(lambda a, *rest: fnp.sum(f(expression(a, *rest)))))(*given)
    close = lambda got, here: np.testing.assert_allclose(got, here * given[1], rtol=1e-5, atol=1e-5)
    rows = np.array([[x[segments == s, j].max() for j in range(32)] for s in range(5)])
    close(of(lambda v: ft.ops.segment_max(v, segments, 5)), x == rows[segments])
    last = np.maximum.accumulate(x, 1)
    close(of(lambda v: lax.cummax(v, axis=1)), np.array([[np.sum(last[i] == v) for v in x[i]] for i in range(64)]))
    first = np.abs(x[0]) == np.abs(x[0]).max()
    close(of(lambda v: fnp.linalg.norm(v[0], ord=np.inf)), np.where(np.arange(64)[:, None] == 0, first * np.sign(x), 0))
    for axis in (0, 1):
        found = jit(lambda *xs, axis=axis: fnp.argmax(expression(*xs), axis))(*given)
        np.testing.assert_array_equal(found, x.argmax(axis))
        complex_ = jit(lambda *xs, axis=axis: fnp.argmax(expression(*xs) + 1j, axis))(*given)
        np.testing.assert_array_equal(complex_, x.argmax(axis))


@pytest.mark.parametrize("jit", [quick, ft.jit])
def test_extremes_of_what_a_loop_or_a_branch_is_given(jit):
    x = RNG.normal(size=16)
    step = lambda v: v - ft.grad(lambda v: fnp.max(v) ** 2)(v)
    once = wanted = np.where(x == x.max(), x - 2 * x.max(), x)
    for _ in range(2):
        wanted = np.where(wanted == wanted.max(), wanted - 2 * wanted.max(), wanted)
    close = lambda f, wanted: np.testing.assert_allclose(jit(f)(x), wanted, rtol=1e-12)
    close(lambda v: lax.scan(lambda c, _: (step(c), None), v, length=3)[0], wanted)
    close(lambda v: lax.scan(lambda c, row: (c, step(row)), 0, fnp.stack([v] * 3))[1][1], once)
    close(lambda v: lax.fori_loop(0, 3, lambda i, c: step(c), v), wanted)
    close(lambda v: lax.while_loop(lambda c: c[1] < 3, lambda c: (step(c[0]), c[1] + 1), (v, 0))[0], wanted)
    close(lambda v: lax.cond(v[0] < 9, step, lambda v: v, v), once)
    close(lambda v: lax.map(step, v[None])[0], once)
