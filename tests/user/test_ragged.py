"""lax.ragged_dot against a loop over groups."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.errors import ArgumentError, DtypeError, ShapeError, UnsupportedError
from functorch_like.testing import check_grads

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


@pytest.mark.parametrize(
    ("left", "right", "dtype"),
    [("bfloat16", "int8", "bfloat16"), ("int8", "float32", "float32"), ("float32", "bfloat16", "float32")],
)
def test_operands_of_two_dtypes(left, right, dtype):
    lhs, rhs = np.rint(3 * LHS), np.rint(3 * RHS)  # exact in all of them
    args = fnp.asarray(lhs, left), fnp.asarray(rhs, right), SIZES
    general = numbers((1,), (1,), ragged=0, group=(0,))
    for y in (lax.ragged_dot(*args), ft.jit(lambda *a: lax.ragged_dot_general(*a, general))(*args)):
        assert y.dtype.name == dtype
        np.testing.assert_array_equal(np.asarray(y, "float64"), loop(lhs, rhs, SIZES))
    wide = lax.ragged_dot(*args, preferred_element_type="float32")
    assert wide.dtype.name == "float32"
    slopes = [
        ft.grad(lambda x, k=k: lax.ragged_dot(*(x if i == k else a for i, a in enumerate(args[:2])), SIZES).sum())(
            args[k]
        )
        for k, name in enumerate((left, right))
        if "float" in name
    ]
    assert [x.dtype.name for x in slopes] == [name for name in (left, right) if "float" in name]


def test_what_it_refuses():
    with pytest.raises(ShapeError, match=r"\(m, k\), \(g, k, n\) and \(g,\)"):
        lax.ragged_dot(LHS, RHS[:, :2], SIZES)
    with pytest.raises(ShapeError, match="vmap"):
        lax.ragged_dot(LHS[None], RHS, SIZES)
    with pytest.raises(DtypeError, match="integers"):
        lax.ragged_dot(LHS, RHS, SIZES * 1.0)
    with pytest.raises(UnsupportedError, match="group_offset"):
        lax.ragged_dot(LHS, RHS, SIZES, group_offset=np.array([1]))


# Sizes with many tiles, whose last groups end at the end of the array, within it, or beyond it.
@pytest.mark.parametrize("sizes", [[200, 57, 43], [0, 111, 150], [299, 0, 1], [250, 250, 250]])
def test_tiles_of_rows(sizes):
    lhs, rhs, other = (rng.normal(size=s).astype(np.float32) for s in ((300, 5), (3, 5, 4), (300, 4)))
    sizes = np.array(sizes)
    ends = np.minimum(np.cumsum(sizes), 300)
    starts = np.minimum(np.cumsum(sizes) - sizes, 300)
    rows = [slice(a, b) for a, b in zip(starts, ends, strict=True)]
    wanted = np.zeros((300, 4))
    for g, own in enumerate(rows):
        wanted[own] = lhs[own].astype(float) @ rhs[g].astype(float)
    np.testing.assert_allclose(lax.ragged_dot(lhs, rhs, sizes), wanted, atol=1e-5)
    slope = ft.jit(ft.grad(lambda rhs: fnp.vdot(lax.ragged_dot(lhs, rhs, sizes), other)))(rhs)
    each = [lhs[own].astype(float).T @ other[own].astype(float) for own in rows]
    np.testing.assert_allclose(slope, np.stack(each), atol=1e-4)


def test_values_of_other_groups_that_are_not_finite():
    spoiled = RHS.copy()
    spoiled[0] = np.inf
    np.testing.assert_allclose(lax.ragged_dot(LHS, spoiled, SIZES)[2:], loop(LHS, RHS, SIZES)[2:], rtol=1e-10)
    weights = np.ones((7, 2))
    weights[0] = np.inf
    slope = ft.grad(lambda rhs: fnp.sum(lax.ragged_dot(LHS, rhs, SIZES) * weights))(RHS)
    assert np.isinf(np.asarray(slope)[0]).all() and np.isfinite(np.asarray(slope)[1:]).all()


def numbers(lc, rc, lb=(), rb=(), *, ragged, group=()):
    return lax.RaggedDotDimensionNumbers(((lc, rc), (lb, rb)), [ragged], list(group))


def test_general_with_groups_of_rows():
    lhs, rhs = rng.normal(size=(2, 3, 6, 4)), rng.normal(size=(3, 2, 4, 5))
    groups = lambda sizes: np.repeat(np.arange(len(sizes)), sizes)
    # The batch is dimension 0 of lhs and 1 of rhs; dimension 1 of lhs comes before the ragged one.
    sizes = np.array([[[3, 2, 1], [1, 1, 1], [0, 6, 0]], [[1, 1, 1], [2, 1, 1], [0, 0, 6]]])
    wanted = np.zeros((2, 3, 6, 5))
    for b, x in np.ndindex(2, 3):
        for row, g in enumerate(groups(sizes[b, x])):
            wanted[b, x, row] = lhs[b, x, row] @ rhs[g, b]
    dims = numbers((3,), (2,), (0,), (1,), ragged=2, group=(0,))
    np.testing.assert_allclose(lax.ragged_dot_general(lhs, rhs, sizes, dims), wanted, rtol=1e-10)
    same = np.broadcast_to(sizes[0, 0], sizes.shape)
    got = [lax.ragged_dot_general(lhs, rhs, s, dims) for s in (sizes[0, 0], same)]
    np.testing.assert_array_equal(*got)
    # The ragged dimension comes before another of the result.
    wanted = np.zeros((2, 3, 6, 5))
    for b in range(2):
        for row, g in enumerate(groups([2, 0, 1])):
            wanted[b, row] = lhs[b, row] @ rhs[g, b]
    dims = numbers((3,), (2,), (0,), (1,), ragged=1, group=(0,))
    got = ft.jit(lambda *a: lax.ragged_dot_general(*a, dims))(lhs, rhs, np.array([2, 0, 1]))
    np.testing.assert_allclose(got, wanted, rtol=1e-10)


def test_general_with_groups_of_terms():
    lhs, rhs = rng.normal(size=(2, 5, 3)), rng.normal(size=(2, 5, 4))
    sizes = np.array([[2, 1], [0, 4]])
    members = np.zeros((2, 2, 5))
    members[0, 0, :2], members[0, 1, 2:3], members[1, 1, :4] = 1, 1, 1
    got = lambda sizes, *dims, **more: lax.ragged_dot_general(lhs, rhs, sizes, numbers(*dims, **more))
    batched = np.einsum("bgk,bkm,bkn->gbmn", members, lhs, rhs)
    np.testing.assert_allclose(got(sizes, (1,), (1,), (0,), (0,), ragged=1), batched, rtol=1e-10)
    np.testing.assert_allclose(got(sizes, (0, 1), (0, 1), ragged=1), batched.sum(1), rtol=1e-10)
    one = np.einsum("gk,bkm,bkn->gmn", members[0], lhs, rhs)
    np.testing.assert_allclose(got(sizes[0], (1, 0), (1, 0), ragged=1), one, rtol=1e-10)  # two terms for each element
    loss = lambda lhs, rhs: fnp.sum(lax.ragged_dot_general(lhs, rhs, sizes[0], numbers((1, 0), (1, 0), ragged=1)) ** 3)
    check_grads(loss, (lhs, rhs), order=2)


def test_general_with_a_ragged_batch_is_dot_general():
    lhs, rhs = rng.normal(size=(5, 2, 3)), rng.normal(size=(5, 3, 4))
    got = lax.ragged_dot_general(lhs, rhs, np.array([2, 2]), numbers((2,), (1,), (0,), (0,), ragged=0))
    np.testing.assert_allclose(got, lhs @ rhs, rtol=1e-10)


def test_what_general_refuses():
    general = lambda sizes, dims, rhs=RHS: lax.ragged_dot_general(LHS, rhs, np.array(sizes), dims)
    rows = numbers((1,), (1,), ragged=0, group=(0,))
    for sizes, dims, rhs, problem in [
        (SIZES, numbers((1,), (1,), ragged=0), RHS, "give one dimension"),
        (SIZES, numbers((0,), (0,), ragged=0, group=(1,)), np.ones((7, 4, 2)), r"give \(\)"),
        (SIZES, lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0, 1], [0]), RHS, "the one dimension"),
        (SIZES, numbers((-1,), (1,), ragged=0, group=(0,)), RHS, "at most once"),
        ([[2, 0, 3, 1]], rows, RHS, r"give shape \(4,\)"),
        ([2, 0, 3], rows, RHS, "one size for each group"),
        (SIZES, rows, RHS[:, :2], "paired"),
    ]:
        with pytest.raises((ArgumentError, ShapeError, DtypeError), match=problem):
            general(sizes, dims, rhs)
