"""Reductions of reductions, which nested maps make, are lowered as one."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.ir import passes

X = np.random.default_rng(0).normal(size=(3, 4, 5, 6)).astype(np.float32)


def reductions(fun, *args):
    """Return the axes of each reduction that is lowered."""
    jaxpr = passes.simplify(ft.make_jaxpr(fun)(*args))
    return [e.params["axes"] for e in jaxpr.equations if e.prim.kind == "reduction"]


@pytest.mark.parametrize("name", ["sum", "max", "min", "prod", "all", "any"])
def test_axes_are_those_of_the_operand(name):
    x = X > 0 if name in ("all", "any") else X
    ours, numpys = getattr(fnp, name), getattr(np, name)
    for first, second, axes in (
        (0, 0, (0, 1)),
        (1, 1, (1, 2)),
        (2, 0, (0, 2)),
        ((0, 3), 1, (0, 2, 3)),
        (0, (0, 2), (0, 1, 3)),
    ):
        fun = lambda x, first=first, second=second: ours(ours(x, first), second)
        assert reductions(fun, x) == [axes]
        np.testing.assert_allclose(
            ft.jit(fun)(x), numpys(x.astype(np.float64 if name in ("sum", "prod") else x.dtype), axes), rtol=1e-4
        )


def test_three_and_more():
    fun = lambda x: x.sum(1).sum(0).sum(1).sum(0)
    assert reductions(fun, X) == [(0, 1, 2, 3)]
    np.testing.assert_allclose(ft.jit(fun)(X), X.astype(np.float64).sum(), rtol=1e-4)


def test_what_is_read_otherwise_or_reduced_otherwise_stays():
    for fun, count in (
        (lambda x: (lambda y: (y, y.sum(0)))(x.sum(0)), 2),  # a result
        (lambda x: (lambda y: fnp.sin(y).sum() + y.sum(0).sum())(x.sum(0)), 3),
        (lambda x: (lambda y: y.sum(0) + y.sum(0))(x.sum(0)), 2),  # one reader, after equal expressions are one
        (lambda x: (lambda y: y.sum(0) * y.sum(1).sum())(x[0, 0].sum(0) + x[0, 0]), 3),
        (lambda x: x.max(0).sum(0), 2),
        (lambda x: x.sum(0).max(0), 2),
    ):
        assert len(reductions(fun, X)) == count
    both = lambda x: (lambda y: (y, y.sum(0), y.sum(1)))(x.sum(0))
    for out, expected in zip(ft.jit(both)(X), (X.sum(0), X.sum((0, 1)), X.sum((0, 2))), strict=True):
        np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)


def test_the_gradient_of_a_bias_in_nested_maps():
    slope = ft.grad(lambda b, x: fnp.sin(ft.vmap(ft.vmap(lambda row: row * b))(x)).sum())
    x, b = X[0], X[0, 0, 0]
    assert reductions(slope, b, x) == [(0, 1)]
    wide = x.astype(np.float64)
    np.testing.assert_allclose(ft.jit(slope)(b, x), (np.cos(wide * b) * wide).sum((0, 1)), rtol=1e-4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "bool"])
def test_narrow_dtypes(dtype):
    x = fnp.asarray(X > 0).astype(dtype)
    got = ft.jit(lambda x: x.sum(1, dtype=dtype if dtype != "bool" else None).sum(0))(x)
    np.testing.assert_array_equal(np.asarray(got, np.float64), np.asarray(X > 0, np.float64).sum((0, 1)))


def test_special_values():
    x = np.where(X > 0.5, np.inf, np.where(X < -1.5, np.nan, X)).astype(np.float32)
    for name in ("sum", "max", "min"):
        got = ft.jit(lambda x, name=name: getattr(fnp, name)(getattr(fnp, name)(x, 0), 0))(x)
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(got, getattr(np, name)(x, (0, 1)), rtol=1e-5, atol=1e-5)
