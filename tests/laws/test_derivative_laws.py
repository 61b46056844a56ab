"""Laws of Jacobians, products, transposes, Taylor series and chunks, on random programs that nest transformations."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from support.laws import BATCHES, POINTS, difference, direction, mappings, point, same

import functorch_like as ft
from functorch_like.testing.programs import total
from functorch_like.testing.strategies import programs

EXAMPLES = {"ci": 8, "thin": 4}.get(os.environ.get("HYPOTHESIS_PROFILE", "ci"), settings.default.max_examples)


def times(block, v, y):
    """Apply a block of a Jacobian, of shape y.shape + v.shape, to v."""
    return np.tensordot(np.asarray(block), np.asarray(v), np.ndim(v)).reshape(np.shape(y))


@settings(max_examples=EXAMPLES)
@given(programs(1, smooth=True))
def test_jacobians_agree_with_each_other_and_with_differences(f):
    at, along = point(f), direction(f)
    y = f(*at)
    columns = ft.jacfwd(f, argnums=(0, 1))(*at)
    rows = ft.jacrev(f, argnums=(0, 1))(*at)
    pieces = ft.jacrev(ft.jit(f), argnums=(0, 1), chunk_size=2)(*at)
    for c, r, p, x in zip(columns, rows, pieces, at, strict=True):
        assert c.shape == (*y.shape, *x.shape)
        same(c, r)
        same(p, r)
    moved = sum(times(r, d, y) for r, d in zip(rows, along, strict=True))
    same(np.asarray(moved), np.asarray(difference(f, at, along)), rtol=1e-5)


@settings(max_examples=EXAMPLES)
@given(programs(1))
def test_hessians_are_symmetric_and_hvp_is_their_product(f):
    at, along = point(f), direction(f)
    g = lambda x, w: total(f(x, w))
    h = ft.hessian(g, argnums=(0, 1))(*at)
    for i in (0, 1):
        for j in (0, 1):
            turned = np.moveaxis(np.asarray(h[j][i]), range(np.ndim(at[j])), range(-np.ndim(at[j]), 0))
            same(h[i][j], turned)
    products = ft.hvp(ft.jit(g), at, along, argnums=(0, 1))
    for i in (0, 1):
        same(products[i], sum(times(h[i][j], along[j], at[i]) for j in (0, 1)))


@settings(max_examples=EXAMPLES)
@given(programs(2))
def test_the_transpose_of_a_derivative_is_its_adjoint(f):
    at, along = point(f), direction(f)
    out, push = ft.linearize(f, *at)
    back = ft.linear_transpose(push, *at)
    ct = np.linspace(0.5, 1.5, out.size).reshape(out.shape)
    pulled = back(ft.device_put(ct))
    want = np.sum(ct * np.asarray(push(*along)))
    same(sum(np.sum(np.asarray(b) * np.asarray(d)) for b, d in zip(pulled, along, strict=True)), np.asarray(want))


@settings(max_examples=EXAMPLES)
@given(programs(1, smooth=True))
def test_taylor_series_are_nested_derivatives(f):
    at, along = point(f), direction(f)
    once = lambda g: lambda x, w: ft.jvp(g, (x, w), along)[1]
    for g in (f, ft.jit(f)):
        y, (first, second) = ft.jet(g, at, tuple([d, None] for d in along))
        same(y, f(*at))
        same(first, once(f)(*at))
        same(second, once(once(f))(*at))


@settings(max_examples=EXAMPLES)
@given(mappings(1))
def test_chunks_are_the_whole(drawn):
    f, axes, out = drawn
    given_ = [
        ft.device_put(np.asarray(POINTS[r][k] if a is None else np.moveaxis(BATCHES[r][k], 0, a)))
        for k, (r, a) in enumerate(zip(f.ranks, axes, strict=True))
    ]
    whole = ft.vmap(f, in_axes=axes, out_axes=out)(*given_)
    for size in (1, 3):
        same(ft.vmap(f, in_axes=axes, out_axes=out, chunk_size=size)(*given_), whole)
        same(ft.vmap(ft.jit(f), in_axes=axes, out_axes=out, chunk_size=size)(*given_), whole)


@pytest.mark.parametrize("depth", [1, 2])
def test_a_derivative_of_a_mapped_jacobian(depth):
    f = lambda x: ft.numpy.tanh(x * x[0])
    slopes = lambda g: lambda x: ft.jacrev(g)(x).sum(-1)
    g = f
    for _ in range(depth):
        g = slopes(g)
    x = ft.device_put(np.linspace(-1, 1, 3))
    same(ft.jacfwd(g)(x), ft.jacrev(g)(x))
