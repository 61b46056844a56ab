"""Transposes that a pass moves: how many are left, and the same values by all ways to write a program."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import backends, lax
from functorch_like.compiler.moved_transposes import without_inverses
from functorch_like.ir.jaxpr import evaluate

DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(5, 7)).astype(np.float32)
T = DRAW.normal(size=(3, 4, 5)).astype(np.float32)


def transposes(fun, *args):
    """Return how many transposes a program has before and after the pass, whose values are compared."""
    return tuple(len(turned) for turned in sizes(fun, *args))


def sizes(fun, *args):
    """Return the numbers of elements of these transposes."""
    jaxpr = ft.make_jaxpr(fun)(*args)
    moved = without_inverses(jaxpr)
    flat = ft.tree.leaves(args)
    for got, want in zip(evaluate(moved, flat), evaluate(jaxpr, flat), strict=True):
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-5)
    programs = jaxpr.equations, moved.equations
    return tuple([e.inputs[0].aval.size for e in each if e.prim.name == "transpose"] for each in programs)


def squares(fun):
    return ft.grad(lambda x: (fun(x) ** 2).sum())


@pytest.mark.parametrize(
    ("fun", "x"),
    [
        (lambda x: x.T + 1, X),
        (lambda x: fnp.transpose(x, (2, 0, 1)) * 2, T),
        (fnp.rot90, X),
        (lambda x: fnp.pad(x.T, ((1, 2), (0, 3))), X),
        (lambda x: x.T[1:4, ::2] * 3, X),
        (lambda x: fnp.concatenate([x.T, fnp.sin(x.T)]), X),
        (lambda x: fnp.where(x.T > 0, x.T, 0.1 * x.T), X),
        (lambda x: fnp.moveaxis(x, 0, -1) * fnp.arange(3.0), T),
    ],
)
def test_a_gradient_needs_no_transpose_of_its_argument(fun, x):
    before, after = transposes(squares(fun), x)
    assert before >= 2 and after == 0
    assert "transpose" not in ft.jit(squares(fun)).lower(x).as_text()


def test_the_order_that_needs_fewer_is_taken():
    assert transposes(lambda x: x.T + 1, X) == (1, 1)
    assert transposes(lambda x, w: squares(lambda x: x.T * w)(x), X, X.T.copy()) == (2, 1)
    assert transposes(lambda x, w: x.T * w, X, X.T.copy()) == (1, 1)
    assert transposes(lambda x: ((x.T * 2).T, (x.T * 3).T, x.T), X)[1] == 1
    assert transposes(lambda x: x + x[:, :5].T[:, :5] @ x, X)[1] == 1
    assert transposes(lambda x: (x.T * 2).sum(), X) == (1, 0)
    assert transposes(lambda x: (x.T * 2).max(0), X) == (1, 0)
    assert transposes(lambda x: (x.transpose(2, 0, 1) * 2).sum(0), T) == (1, 1)
    assert transposes(lambda x: (x.transpose(2, 0, 1) * 2).transpose(2, 0, 1), T) == (2, 1)


def test_products_are_left_alone():
    product = lambda x: (fnp.tanh(x) @ x.T).T + 1
    assert transposes(product, X)[1] <= transposes(product, X)[0]


def test_both_settings_give_the_same():
    for on in (True, False):
        with backends.flags({"cpu.fast_lowerings": on or "-moved_transposes"}):
            np.testing.assert_array_equal(ft.jit(squares(fnp.rot90))(X), 2 * X)


#: Steps of random programs over integers, whose sums are the same in any order.
STEPS = [
    lambda x: x * 3 - 1, lambda x: x ^ 5, lambda x: x.astype("int16").astype("int32"), lambda x: lax.rev(x, (1,)),
    lambda x: fnp.where(x > 0, x, 7), lambda x: x.transpose(1, 2, 0), lambda x: x.transpose(0, 2, 1),
    lambda x: x.transpose(2, 1, 0), lambda x: x[:, 1:], lambda x: fnp.pad(x, ((0, 0), (0, 1), (2, 0))),
    lambda x: fnp.concatenate([x, -x], 1), lambda x: x + fnp.arange(x.shape[2]),
    lambda x: x - x.max(1, keepdims=True), lambda x: x + x.sum(), lambda x: x * x.sum(0),
]  # fmt: skip


def random_program(draw):
    """Return a function of one array with results in several orders."""
    steps = draw.integers(0, len(STEPS), 9)
    kept = set(draw.integers(0, 9, 2))
    orders = [tuple(draw.permutation(3)) for _ in range(2)]

    def fun(x):
        results = []
        for k, step in enumerate(steps):
            y = STEPS[step](x)
            x = x * y + y if y.shape == x.shape and k % 3 == 0 else y
            if k in kept:
                results.append(x)
        return [*results, *((x | 3).transpose(o) for o in orders), (x * x).sum((0, 2)), x.sum()]

    return fun


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed):
    fun = random_program(np.random.default_rng(seed))
    x = np.random.default_rng(seed).integers(-9, 9, (3, 4, 5)).astype(np.int32)
    before, after = sizes(fun, x)
    assert sum(after) <= sum(before)
    both = []
    for on in (True, False):
        with backends.flags({"cpu.fast_lowerings": on}):
            both.append(ft.jit(lambda x: fun(x))(x))
    for got, want in zip(*both, strict=True):
        np.testing.assert_array_equal(got, want)
