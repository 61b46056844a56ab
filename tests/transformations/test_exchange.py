"""Collectives that exchange data along a named axis, against loops over its positions."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.errors import ArgumentError, ShapeError

N = 3
X = np.random.default_rng(0).normal(size=(N, 6, 3, 2))
WRAPS = {
    "plain": lambda f, **kw: ft.vmap(f, axis_name="i", **kw),
    "jit outside": lambda f, **kw: ft.jit(ft.vmap(f, axis_name="i", **kw)),
    "jit inside": lambda f, **kw: ft.vmap(ft.jit(f), axis_name="i", **kw),
}
RING = [(0, 1), (1, 2), (2, 0)]


def split(x, axis, tiled):
    parts = np.split(x, N, axis)
    return parts if tiled else [p.squeeze(axis) for p in parts]


def joined(parts, axis, tiled):
    return np.concatenate(parts, axis) if tiled else np.stack(parts, axis)


def sent(xs, perm):
    source = {d: s for s, d in perm}
    return [xs[source[d]] if d in source else np.zeros_like(xs[0]) for d in range(N)]


# Each case: the function of one position, and its reference, from a list of all positions' values to their results.
CASES = {
    **{
        f"all_gather {axis} {tiled}": (
            lambda x, axis=axis, tiled=tiled: lax.all_gather(x, "i", axis=axis, tiled=tiled),
            lambda xs, axis=axis, tiled=tiled: [joined(xs, axis, tiled)] * N,
        )
        for axis, tiled in [(0, False), (1, False), (3, False), (-1, False), (0, True), (1, True), (-1, True)]
    },
    **{
        f"psum_scatter {axis} {tiled}": (
            lambda x, axis=axis, tiled=tiled: lax.psum_scatter(x, "i", scatter_dimension=axis, tiled=tiled),
            lambda xs, axis=axis, tiled=tiled: split(sum(xs), axis, tiled),
        )
        for axis, tiled in [(1, False), (-2, False), (0, True), (1, True)]
    },
    **{
        f"all_to_all {s} {c} {tiled}": (
            lambda x, s=s, c=c, tiled=tiled: lax.all_to_all(x, "i", s, c, tiled=tiled),
            lambda xs, s=s, c=c, tiled=tiled: [
                joined([split(x, s, tiled)[k] for x in xs], c, tiled) for k in range(N)
            ],
        )
        for s, c, tiled in [(1, 0, False), (1, 1, False), (1, 2, False), (0, 1, True), (1, 0, True), (0, 0, True)]
    },
    **{
        f"ppermute {perm}": (lambda x, perm=perm: lax.ppermute(x, "i", perm), lambda xs, perm=perm: sent(xs, perm))
        for perm in (RING, [(0, 2)], [], [(1, 1), (0, 2)])
    },
    "pshuffle": (lambda x: lax.pshuffle(x, "i", [2, 0, 1]), lambda xs: [xs[2], xs[0], xs[1]]),
    "pswapaxes": (
        lambda x: lax.pswapaxes(x, "i", 1),
        lambda xs: [np.stack([x[:, k] for x in xs], 1) for k in range(N)],
    ),
}  # fmt: skip


def close(got, want):
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("case", CASES)
def test_it_is_a_loop_over_positions(case, wrap):
    each, all_ = CASES[case]
    close(WRAPS[wrap](each)(X), all_(list(X)))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("in_axis", [1, 3])
def test_wherever_the_mapped_axis_is(case, in_axis):
    each, all_ = CASES[case]
    close(ft.vmap(each, in_axes=in_axis, axis_name="i")(np.moveaxis(X, 0, in_axis)), all_(list(X)))


@pytest.mark.parametrize("case", CASES)
def test_what_is_the_same_everywhere(case):
    each, all_ = CASES[case]
    got = ft.vmap(lambda i, x: each(x), in_axes=(0, None), axis_name="i")(np.arange(N), X[0])
    close(got, all_([X[0]] * N))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("inner", [0, 2])
def test_another_mapped_axis_is_passed_along(case, inner):
    each, all_ = CASES[case]
    both = np.stack([X, 2 * X + 1])
    want = np.stack([all_(list(x)) for x in both])
    close(ft.vmap(ft.vmap(each, axis_name="i"), axis_name="j")(both), want)
    inside = ft.vmap(ft.vmap(each, in_axes=inner, axis_name="j"), axis_name="i", in_axes=0)
    moved = np.moveaxis(both, 0, inner + 1)
    close(inside(moved), np.moveaxis(want, 0, 1))
    close(ft.jit(inside)(moved), np.moveaxis(want, 0, 1))


@pytest.mark.parametrize("case", CASES)
def test_the_derivative_is_the_adjoint(case):
    each, all_ = CASES[case]
    rng = np.random.default_rng(1)
    weights = rng.normal(size=np.shape(all_(list(X))))
    mapped = ft.vmap(each, axis_name="i")
    loss = lambda x: fnp.sum(mapped(x) * weights)
    direction = rng.normal(size=X.shape)
    pushed = np.sum(weights * np.asarray(all_(list(direction))))  # all cases are linear
    close(np.sum(np.asarray(ft.grad(loss)(X)) * direction), pushed)
    close(np.sum(np.asarray(ft.jit(ft.grad(loss))(X)) * direction), pushed)
    close(ft.jvp(loss, (X,), (direction,))[1], pushed)
    inside = ft.vmap(ft.grad(lambda x, w: fnp.sum(each(x) * w)), axis_name="i")
    close(np.sum(np.asarray(inside(X, weights)) * direction), pushed)


Y = np.random.default_rng(2).normal(size=(2, 3, 6))


def nested(f):
    return ft.vmap(ft.vmap(f, axis_name="j"), axis_name="i")


def test_several_names_count_positions_in_row_major_order():
    flat = Y.reshape(6, 6)
    for wrap in (lambda f: f, ft.jit):
        close(wrap(nested(lambda x: lax.psum(x, ("i", "j"))))(Y), np.broadcast_to(flat.sum(0), Y.shape))
        close(wrap(nested(lambda x: lax.pmean(x, ("i", "j"))))(Y), np.broadcast_to(flat.mean(0), Y.shape))
        close(wrap(nested(lambda x: lax.axis_index(("i", "j")) + 0 * x[0]))(Y), np.arange(6).reshape(2, 3))
        close(wrap(nested(lambda x: lax.all_gather(x, ("i", "j"))))(Y), np.broadcast_to(flat, (2, 3, 6, 6)))
        gathered = wrap(nested(lambda x: lax.all_gather(x, ("i", "j"), axis=1)))(Y)
        close(gathered, np.broadcast_to(flat.T, (2, 3, 6, 6)))
        tiled = wrap(nested(lambda x: lax.all_gather(x, ("i", "j"), tiled=True)))(Y)
        close(tiled, np.broadcast_to(flat.reshape(-1), (2, 3, 36)))
        close(wrap(nested(lambda x: lax.psum_scatter(x, ("i", "j"))))(Y), flat.sum(0).reshape(2, 3))
        scattered = wrap(nested(lambda x: lax.psum_scatter(x, ("i", "j"), tiled=True)))(Y)
        close(scattered, flat.sum(0).reshape(2, 3, 1))
    assert nested(lambda x: x[0] + lax.axis_size(("i", "j")))(0 * Y)[0, 0] == 6


def test_pytrees_and_booleans():
    out = ft.vmap(lambda x: lax.all_gather({"a": x, "b": (x,)}, "i"), axis_name="i", out_axes=None)(X)
    close(out["b"][0], X)
    counts = ft.vmap(lambda x: lax.psum_scatter(x > 0, "i", scatter_dimension=1), axis_name="i")(X)
    close(counts, np.moveaxis((X > 0).sum(0), 1, 0))


@pytest.mark.parametrize(
    ("each", "error", "match"),
    [
        (lambda x: lax.all_gather(x, "rows"), ArgumentError, "no axis named 'rows'"),
        (lambda x: lax.all_gather(x, "i", axis=9), ShapeError, "9"),
        (lambda x: lax.all_gather(x, "i", axis_index_groups=[[0], [1, 2]]), ArgumentError, "lists of one length"),
        (lambda x: lax.psum_scatter(x, "i"), ShapeError, "size 6 and is split over an axis of size 3"),
        (lambda x: lax.all_to_all(x, "i", 2, 0, tiled=True), ShapeError, "multiple of 3"),
        (lambda x: lax.all_to_all(x, ("i", "j"), 1, 0), ArgumentError, "one axis"),
        (lambda x: lax.ppermute(x, "i", [(0, 1), (0, 2)]), ArgumentError, "different sources"),
        (lambda x: lax.ppermute(x, "i", [(0, 3)]), ArgumentError, "different destinations within 0..2"),
        (lambda x: lax.pshuffle(x, "i", [0, 0, 1]), ArgumentError, "not a permutation"),
    ],
)
def test_what_it_refuses(each, error, match):
    with pytest.raises(error, match=match):
        ft.vmap(each, axis_name="i")(X)
