"""Choices, parts by conditions, assignments, indices of flattened arrays, partitions and bins."""

import numpy as np
import pytest
from support.compare import agrees, same

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.errors import ArgumentError, BoundsError, ConcretizationError, DtypeError, ShapeError

X = np.arange(6.0).reshape(2, 3)


def test_choose():
    a, choices = np.array([[2, 0], [1, 1]]), [np.array([1, 2]), np.array([[10], [20]]), np.array([5.0, 6.0])]
    agrees("choose", a, choices)
    for mode in ("clip", "wrap"):
        same(fnp.choose(a * 3 - 2, choices, mode=mode), np.choose(a * 3 - 2, choices, mode=mode))
        same(
            ft.jit(lambda v, m=mode: fnp.choose(v, choices, mode=m))(a * 3 - 2),
            np.choose(a * 3 - 2, choices, mode=mode),
        )
    with pytest.raises(BoundsError, match="outside"):
        fnp.choose(a + 1, choices)
    with pytest.raises(ConcretizationError, match="clip"):
        ft.jit(lambda v: fnp.choose(v, choices))(a)
    with pytest.raises(DtypeError):
        fnp.choose(fnp.ones(2), choices)
    same(
        ft.grad(lambda c: fnp.choose(fnp.asarray([1, 0, 1]), c).sum())(fnp.ones((2, 3))),
        np.array([[0, 1, 0], [1, 0, 1.0]]),
    )


def test_compress_and_extract():
    agrees("compress", np.array([1, 0]), X, axis=0)
    agrees("compress", np.array([0, 1, 1]), X, axis=1)
    agrees("compress", np.array([False, True]), X)
    agrees("compress", np.zeros(0, bool), np.zeros((0, 2)), axis=0)
    agrees("extract", X > 2, X)
    assert ft.jit(lambda v: fnp.extract(v > 3, v, size=3, fill_value=-1))(X).tolist() == [4.0, 5.0, -1.0]
    assert ft.vmap(lambda v: fnp.compress(v > 1, v, size=2))(X).tolist() == [[2.0, 0.0], [3.0, 4.0]]
    same(ft.grad(lambda v: fnp.extract(v > 2, v).sum())(fnp.asarray(X)), (X > 2).astype("float64"))
    with pytest.raises(ShapeError, match="longer"):
        fnp.compress(fnp.ones(4), X, axis=1)


def test_piecewise():
    for conditions, functions in (
        ([X < 1, X > 3], [lambda v: -v, lambda v: v * v]),
        ([X < 4, X < 2, X > 1], [1, 2, 3, 4]),
        ([X > 2], [lambda v: v + 1, 7.0]),
    ):
        agrees("piecewise", X, conditions, functions)
    agrees("piecewise", X[0], X[0] < 1, [lambda v: -v, 9])
    agrees("piecewise", np.arange(4), [np.arange(4) > 1], [2.7])
    same(fnp.piecewise(X, [X > 2], [lambda v, k, b: k * v + b], 3.0, b=1.0), np.where(X > 2, 3 * X + 1, 0))
    with pytest.raises(ArgumentError, match="functions"):
        fnp.piecewise(X, [X > 2], [])
    same(
        ft.jit(ft.grad(lambda v: fnp.piecewise(v, [v > 2], [lambda t: t * t, 1.0]).sum()))(X), np.where(X > 2, 2 * X, 0)
    )


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("place", (X > 1, [7, 8])),
        ("putmask", (X > 1, [7, 8])),
        ("put", ([0, -1, 2], [9, 8])),
        ("put_along_axis", (np.array([[0], [2]]), 9.0, 1)),
        ("put_along_axis", (np.array([0, 5]), np.array([3.0, 4.0]), None)),
    ],
)
def test_assignments(name, arguments):
    want = X.copy()
    getattr(np, name)(want, *arguments)
    same(getattr(fnp, name)(X, *arguments, inplace=False), want)
    same(ft.jit(lambda v: getattr(fnp, name)(v, *arguments, inplace=False))(X), want)
    with pytest.raises(ArgumentError, match="inplace=False"):
        getattr(fnp, name)(X, *arguments)


def test_clipped_positions_do_not_count_from_the_end():
    for index in (np.array([-2, 9]), fnp.asarray([-2, 9])):
        assert fnp.take(fnp.arange(5), index, mode="clip").tolist() == [0, 4]
        assert fnp.put(fnp.zeros(3), index, 1, mode="clip", inplace=False).tolist() == [1.0, 0.0, 1.0]


def test_flat_indices():
    index = (np.array([0, 1, 1]), np.array([[2], [0]]))
    for order in "CF":
        agrees("ravel_multi_index", index, (2, 3), order=order)
        agrees("unravel_index", np.array([[0, 5, 3]]), (2, 3), order=order)
        far = (np.array([0, -1, 7]), np.array([4, 2, 1]))
        agrees("ravel_multi_index", far, (2, 3), mode=("clip", "wrap"), order=order)
    agrees("unravel_index", 5, (2, 3))
    assert [i.tolist() for i in fnp.unravel_index(fnp.asarray([-1, 99, -99]), (2, 3))] == [[1, 1, 0], [2, 2, 0]]
    assert [int(i) for i in ft.jit(lambda i: fnp.unravel_index(i, (2, 3)))(4)] == [1, 1]
    with pytest.raises(BoundsError, match="clip"):
        fnp.ravel_multi_index((fnp.asarray([2]),), (2,))
    with pytest.raises(ConcretizationError, match="clip"):
        ft.jit(lambda i: fnp.ravel_multi_index((i,), (2,)))(1)


def test_indices_of_shapes():
    agrees("diag_indices_from", np.ones((3, 3, 3)))
    agrees("diag_indices_from", np.ones((3, 2)))
    agrees("tril_indices_from", np.ones((2, 3)), 1)
    agrees("triu_indices_from", np.ones((4, 3)), -1)
    agrees("triu_indices_from", np.ones(3))
    same(fnp.mask_indices(3, fnp.tril, -1), np.mask_indices(3, np.tril, -1))
    agrees("ix_", [0, 1], [True, False, True], np.arange(2))
    agrees("diagflat", np.ones((2, 2)), -1)
    agrees("dsplit", np.ones((2, 2, 4)), 2)
    agrees("dsplit", np.ones((2, 4)), 2)


@pytest.mark.parametrize("x", [
    np.arange(28).reshape(4, 7) * 5 % 6 - 3, np.arange(28, dtype=np.uint8).reshape(4, 7) * 3 % 5,
    np.array([[np.nan, -np.inf, 2, -0.0]]),
])  # fmt: skip
@pytest.mark.parametrize("axis", [-1, 0])
def test_top_k(x, axis):
    k = min(3, x.shape[axis])
    ascending = np.argsort(x, axis=axis, kind="stable")
    for mode, order in {"smallest": ascending, "largest": _descending(x, axis)}.items():
        where = np.take(order, range(k), axis)
        for f in (fnp.top_k, ft.jit(fnp.top_k, static_argnums=1, static_argnames=("axis", "mode"))):
            values, places = f(x, k, axis=axis, mode=mode)
            np.testing.assert_array_equal(values, np.take_along_axis(x, where, axis))
            np.testing.assert_array_equal(places, where)
            assert values.dtype == x.dtype and places.dtype == "int32"
    for wrong in ({"mode": "greatest"}, {"axis": 1, "k": 99}):
        with pytest.raises(ArgumentError, match=r"top_k"):
            fnp.top_k(x, wrong.pop("k", 1), **wrong)


def _descending(x, axis):
    """Return the positions from greatest to least, NaN first; equal elements keep their order."""
    reverse = np.flip(x, axis)
    return x.shape[axis] - 1 - np.flip(np.argsort(reverse, axis=axis, kind="stable"), axis)


def test_slopes_of_top_k():
    x = fnp.asarray([3.0, 1.0, 2.0])
    for mode, slope in {"largest": [1, 0, 2], "smallest": [0, 1, 2]}.items():
        total = lambda x: fnp.top_k(x, 2, mode=mode)[0] @ fnp.asarray([1.0, 2.0])  # noqa: B023
        assert ft.grad(total)(x).tolist() == slope


def test_partition():
    x = np.random.default_rng(0).normal(size=(3, 9))
    for axis, kth in ((-1, 4), (0, 1), (None, 20), (1, -2)):
        source, along = (x.reshape(-1), 0) if axis is None else (x, axis)
        got, order = (np.asarray(f(x, kth, axis=axis)) for f in (fnp.partition, fnp.argpartition))
        np.testing.assert_array_equal(np.take_along_axis(source, order, along), got)
        np.testing.assert_array_equal(np.take(got, kth, along), np.take(np.sort(source, along), kth, along))
        low, high = np.split(got, [kth % source.shape[along]], axis=along)
        assert (low.max(along) <= high.min(along)).all()
    agrees("partition", np.zeros((2, 0)), 0)
    with pytest.raises(ShapeError, match="kth"):
        fnp.partition(x, 9)
    agrees("sort_complex", np.array([3, 1], "int8"))
    agrees("sort_complex", np.array([1 + 2j, 1 - 1j, -3]))


@pytest.mark.parametrize("right", [False, True])
def test_digitize(right):
    x = np.array([[-1.0, 0.0, 0.5], [1.0, 2.5, 3.0]])
    for bins in (np.array([0.0, 1.0, 2.5]), np.array([2.5, 1.0, 0.0]), np.array([1.0])):
        agrees("digitize", x, bins, right)
    agrees("digitize", np.arange(5), np.array([1, 3]), right)
    with pytest.raises(ShapeError, match="one dimension"):
        fnp.digitize(x, x, right)
