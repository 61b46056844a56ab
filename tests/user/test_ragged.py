"""lax.ragged_dot against a loop over groups."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.errors import DtypeError, ShapeError, UnsupportedError

rng = np.random.default_rng(0)
LHS, RHS = rng.normal(size=(7, 3)), rng.normal(size=(4, 3, 2))
SIZES = np.array([2, 0, 3, 1])


def loop(lhs, rhs, sizes):
    out, start = np.zeros((len(lhs), rhs.shape[-1])), 0
    for matrix, size in zip(rhs, sizes, strict=True):
        out[start : start + size] = lhs[start : start + size] @ matrix
        start += size
    return out


@pytest.mark.parametrize("sizes", [[2, 0, 3, 1], [7, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 7]])
def test_it_is_a_loop_over_groups(sizes):
    for wrap in (lambda f: f, ft.jit):
        np.testing.assert_allclose(wrap(lax.ragged_dot)(LHS, RHS, np.array(sizes)), loop(LHS, RHS, sizes), rtol=1e-10)


def test_what_belongs_to_other_groups_does_not_matter():
    spoiled = LHS.copy()
    spoiled[0] = np.nan
    np.testing.assert_allclose(lax.ragged_dot(spoiled, RHS, SIZES)[2:], loop(LHS, RHS, SIZES)[2:], rtol=1e-10)
    slope = ft.grad(lambda rhs: fnp.sum(lax.ragged_dot(spoiled, rhs, SIZES)))(RHS)
    assert np.isnan(np.asarray(slope)[0]).all() and np.isfinite(np.asarray(slope)[1:]).all()


def test_derivatives():
    weights = rng.normal(size=(7, 2))
    loss = lambda lhs, rhs: fnp.sum(lax.ragged_dot(lhs, rhs, SIZES) * weights)
    dl, dr = ft.jit(ft.grad(loss, argnums=(0, 1)))(LHS, RHS)
    np.testing.assert_allclose(np.sum(dl * LHS), np.sum(loop(LHS, RHS, SIZES) * weights), rtol=1e-10)
    np.testing.assert_allclose(np.sum(dr * RHS), np.sum(loop(LHS, RHS, SIZES) * weights), rtol=1e-10)


@pytest.mark.parametrize("in_axes", [(0, None, None), (None, 0, None), (None, None, 0), (0, 0, 0), (2, 1, 1)])
def test_under_vmap(in_axes):
    stacked = [np.stack([LHS, 2 * LHS]), np.stack([RHS, RHS + 1]), np.stack([SIZES, SIZES[::-1]])]
    each = [[x[k] if a is not None else x[0] for x, a in zip(stacked, in_axes, strict=True)] for k in range(2)]
    args = [x[0] if a is None else np.moveaxis(x, 0, a) for x, a in zip(stacked, in_axes, strict=True)]
    got = ft.vmap(lax.ragged_dot, in_axes=in_axes)(*args)
    np.testing.assert_allclose(got, np.stack([loop(*e) for e in each]), rtol=1e-10)


def test_what_it_refuses():
    with pytest.raises(ShapeError, match=r"\(m, k\), \(g, k, n\) and \(g,\)"):
        lax.ragged_dot(LHS, RHS[:, :2], SIZES)
    with pytest.raises(ShapeError, match="vmap"):
        lax.ragged_dot(LHS[None], RHS, SIZES)
    with pytest.raises(DtypeError, match="integers"):
        lax.ragged_dot(LHS, RHS, SIZES * 1.0)
    with pytest.raises(UnsupportedError, match="group_offset"):
        lax.ragged_dot(LHS, RHS, SIZES, group_offset=np.array([1]))
