"""Products of operands that repeat along an axis are computed once: a smaller program with the same result."""

import itertools

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import backends, lax
from functorch_like.compiler import repeated_operands

RNG = np.random.default_rng(0)
B, M, K, N = 3, 4, 8, 6  # sums of fewer products would be unrolled


def products(fun, *args):
    """The shapes of the results of all products in the lowered program."""
    text = ft.jit(fun).lower(*args).as_text()
    return [
        line.rsplit("->", 1)[1].strip(" )").split("loc")[0].strip()
        for line in text.splitlines()
        if "dot_general" in line
    ]


def operand(sizes, repeated):
    return RNG.standard_normal([1 if r else n for n, r in zip(sizes, repeated, strict=True)]).astype("f")


@pytest.mark.parametrize("left", list(itertools.product([False, True], repeat=3)))
def test_all_patterns(left):
    for right in itertools.product([False, True], repeat=3):
        a, b = operand((B, M, K), left), operand((B, K, N), right)
        product = lambda a, b: fnp.broadcast_to(a, (B, M, K)) @ fnp.broadcast_to(b, (B, K, N))
        want = np.broadcast_to(a, (B, M, K)).astype("d") @ np.broadcast_to(b, (B, K, N))
        (made,) = products(product, a, b)
        assert made == f"tensor<{B}x{1 if left[1] else M}x{1 if right[2] else N}xf32>"
        np.testing.assert_allclose(ft.jit(product)(a, b), want, rtol=1e-5, atol=1e-5)


def test_what_is_computed_of_the_operand_and_the_product_repeats_too():
    a, v, w = (RNG.standard_normal(s).astype("f") for s in ((M, K), (K, 1), (N, 2)))

    def chain(a, v, w):
        right = fnp.tanh(fnp.broadcast_to(v, (K, N)) * 2.0 + 1.0)
        return fnp.transpose(a @ right) + 0.0, (a @ right) @ w

    first = a.astype("d") @ np.broadcast_to(np.tanh(v.astype("d") * 2 + 1), (K, N))
    assert set(products(chain, a, v, w)) == {f"tensor<{M}x1xf32>", f"tensor<{M}x2xf32>"}
    for got, want in zip(ft.jit(chain)(a, v, w), (first.T, first @ w), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_an_operand_that_only_seems_to_repeat_is_left_alone():
    a, b, v = (RNG.standard_normal(s).astype("f") for s in ((M, K), (K, N), (K, 1)))
    for fun in (
        lambda a, b, v: a @ (fnp.broadcast_to(v, (K, N)) + b),
        lambda a, b, v: a @ fnp.cumsum(fnp.broadcast_to(v, (K, N)), 1),
        lambda a, b, v: a @ fnp.where(b > 0, fnp.broadcast_to(v, (K, N)), 0.0),
        lambda a, b, v: a @ fnp.pad(fnp.broadcast_to(v, (K, N - 1)), ((0, 0), (0, 1))),
        lambda a, b, v: a @ lax.reshape(fnp.broadcast_to(v, (K, N)), (N, K)).T,
    ):
        assert products(fun, a, b, v) == [f"tensor<{M}x{N}xf32>"]


def test_a_gradient_of_a_sum_and_the_switch():
    x, w = (RNG.standard_normal(s).astype("f") for s in ((7, K), (K, N)))
    slope = ft.grad(lambda w, x: (x @ w).sum())
    want = np.broadcast_to(x.sum(0, dtype="d")[:, None], (K, N))
    for on, shape in ((True, f"tensor<{K}x1xf32>"), (False, f"tensor<{K}x{N}xf32>")):
        with backends.flags({"cpu.fast_lowerings": on}):
            assert products(lambda w, x: slope(w, x), w, x) == [shape]
            np.testing.assert_allclose(ft.jit(lambda w, x: slope(w, x))(w, x), want, rtol=1e-5, atol=1e-5)


def test_inside_of_loops_and_calls():
    x = RNG.standard_normal((4, M, K)).astype("f")
    step = ft.jit(lambda x, s: x @ fnp.full((K, N), s))
    loop = lambda x, s: lax.scan(lambda c, x: (c, step(x, c)), s, x)[1]
    assert products(loop, x, 2.0) == [f"tensor<{M}x1xf32>"]
    np.testing.assert_allclose(
        ft.jit(loop)(x, 2.0), 2 * x.sum(-1, keepdims=True, dtype="d") * np.ones(N), rtol=1e-5, atol=1e-5
    )


SHAPES = [
    (4, 6),
    (6, 4),
    (24,),
    (2, 12),
    (2, 2, 6),
    (4, 3, 2),
    (4, 1, 6),
    (1, 4, 6),
    (4, 6, 1),
    (3, 8),
    (2, 3, 4),
    (1, 24),
]


@pytest.mark.parametrize("before", SHAPES)
def test_where_reshaped_arrays_repeat(before):
    """Arrays repeat along the axes that the pass reports, and an axis that repeats still does so when it is split."""
    for after, mask in itertools.product(SHAPES, itertools.product([False, True], repeat=len(before))):
        of = frozenset(d for d, repeated in enumerate(mask) if repeated)
        x = np.broadcast_to(operand(before, mask), before).reshape(after)
        for d in repeated_operands._of_reshape(before, after, of):
            assert (x == x.take([0], d)).all(), (after, of, d)
    assert repeated_operands._of_reshape((4, 6), (4, 2, 3), frozenset({1})) == {1, 2}
    assert repeated_operands._of_reshape((0, 3), (3, 0), frozenset({1})) == frozenset()
