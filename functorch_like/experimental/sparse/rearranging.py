"""Axes moved, joined, added and taken away: transpose, reshape, squeeze, broadcast_in_dim, rev, concatenate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError, UnsupportedError
from functorch_like.experimental.sparse.bcoo import BCOO
from functorch_like.experimental.sparse.checks import sizes
from functorch_like.experimental.sparse.conversion import is_bcoo
from functorch_like.experimental.sparse.elements import placed, stored
from functorch_like.experimental.sparse.format import method
from functorch_like.experimental.sparse.lifting import over_batches
from functorch_like.experimental.sparse.reductions import checked_axes, normal
from functorch_like.numpy import promotion

_MOVE = "use .update_layout(n_batch=..., n_dense=...) first, or .todense()"


@method
def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """Return the array with its axes permuted.

    Args:
        mat: the BCOO.
        permutation: of the axes. Batch, sparse and dense axes each stay among themselves.

    Raises:
        AxisError: for anything but a permutation.
        UnsupportedError: where it mixes kinds of axes.
    """
    mat = is_bcoo(mat, "bcoo_transpose")
    axes = tuple(int(a) for a in permutation)
    if len(axes) != mat.ndim:
        raise promotion.error(
            ShapeError, f"permutation {axes} of {mat!r} has not {mat.ndim} axes", "name each axis once"
        )
    checked_axes(axes, mat.ndim, "bcoo_transpose")
    order = tuple(a % mat.ndim for a in axes)
    layout = mat.layout
    if any(layout.kind(a) != layout.kind(k) for k, a in enumerate(order)):
        raise promotion.error(
            UnsupportedError, f"permutation {order} of {mat!r} mixes batch, sparse and dense axes", _MOVE
        )
    if order == tuple(range(mat.ndim)):
        return mat
    batch = order[: layout.n_batch]
    dense = [a - layout.n_sparse + 1 for a in order[layout.n_batch + layout.n_sparse :]]
    data = fnp.transpose(mat.data, (*batch, layout.n_batch, *dense))
    indices = fnp.transpose(mat.indices, (*batch, layout.n_batch, layout.n_batch + 1))
    columns = [a - layout.n_batch for a in order[layout.n_batch : layout.n_batch + layout.n_sparse]]
    moved = columns != list(range(layout.n_sparse))
    if moved:
        indices = indices[..., np.array(columns)]
    tail = [mat.shape[a] for a in order[layout.n_batch :]]
    return BCOO._of(data, indices, tail, is_sorted=mat.indices_sorted and not moved, unique=mat.unique_indices)


def index_dtype_for(sparse: Sequence[int], dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a dtype in which the elements of a shape can be counted: that of the indices, or int64."""
    return dtype if math.prod(sparse) <= np.iinfo(dtype).max else np.dtype(dtypes.int64)


@method
def bcoo_reshape(mat: BCOO, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None) -> BCOO:
    """Return the array with another shape.

    Args:
        mat: the BCOO.
        new_sizes: the shape. Batch dimensions and dense dimensions do not change.
        dimensions: order in which the axes are read; as they are by default.

    Raises:
        ShapeError: for a shape of another size.
        UnsupportedError: where batch or dense dimensions would change.
    """
    mat = is_bcoo(mat, "bcoo_reshape")
    if dimensions is not None:
        mat = bcoo_transpose(mat, permutation=dimensions)
    new = sizes(new_sizes, "bcoo_reshape")
    if math.prod(new) != mat.size:
        raise promotion.error(
            ShapeError, f"{mat!r} has not the size of shape {new}", f"give a shape of {mat.size} elements"
        )
    n_batch, n_dense = mat.n_batch, mat.n_dense
    old, sparse = mat._sparse_shape, new[n_batch : len(new) - n_dense]
    same = new[:n_batch] == mat.shape[:n_batch] and new[len(new) - n_dense :] == mat.shape[mat.ndim - n_dense :]
    if not same or len(new) < n_batch + n_dense:
        raise promotion.error(UnsupportedError, f"reshape of {mat!r} to {new} changes batch or dense dimensions", _MOVE)
    mat = normal(mat)
    dtype = aval_of(mat.indices).dtype

    def one(i: Any) -> Any:
        keep = stored(i, old)
        wide = index_dtype_for(old, dtype)
        number = fnp.zeros(aval_of(i).shape[:-1], wide)
        for k, n in enumerate(old):
            number = number * np.array(n, wide) + i[..., k].astype(wide)
        parts: list[Any] = []
        for n in reversed(sparse):
            parts.append(number % np.array(max(n, 1), wide))
            number = number // np.array(max(n, 1), wide)
        at = fnp.stack(parts[::-1], axis=-1) if parts else fnp.zeros((*aval_of(i).shape[:-1], 0), wide)
        return placed(at.astype(index_dtype_for(sparse, dtype)), keep, sparse)

    indices = over_batches(one, n_batch, mat.indices)
    return BCOO._of(
        mat.data, indices, (*sparse, *mat._tail[len(old) :]), is_sorted=mat.indices_sorted, unique=mat.unique_indices
    )


@method
def reshape(mat: BCOO, shape: Sequence[int]) -> BCOO:
    """Return the array with another shape, in which one size may be -1."""
    new = [int(n) for n in shape]
    if new.count(-1) == 1:
        rest = math.prod(n for n in new if n != -1)
        new[new.index(-1)] = mat.size // rest if rest else 0
    return bcoo_reshape(mat, new_sizes=new)


@method
def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """Return the array without dimensions of size 1.

    Args:
        arr: the BCOO.
        dimensions: those to remove.

    Raises:
        ShapeError: where one has another size.
    """
    mat = normal(is_bcoo(arr, "bcoo_squeeze"))
    axes = checked_axes(dimensions, mat.ndim, "bcoo_squeeze")
    layout, shape = mat.layout, mat.shape
    if any(shape[a] != 1 for a in axes):
        raise promotion.error(ShapeError, f"bcoo_squeeze of axes {axes} of {mat!r}", "name axes of size 1")
    batch = tuple(a for a in axes if layout.kind(a) == "batch")
    dense = tuple(a - layout.n_sparse + 1 for a in axes if layout.kind(a) == "dense")
    columns = [k for k, a in enumerate(layout.sparse_axes()) if a not in axes]
    data = fnp.squeeze(mat.data, (*batch, *dense)) if batch or dense else mat.data
    indices = mat.indices[..., np.array(columns, int)] if len(columns) < layout.n_sparse else mat.indices
    indices = fnp.squeeze(indices, batch) if batch else indices
    tail = [n for a, n in enumerate(shape) if a not in axes and layout.kind(a) != "batch"]
    unique = mat.unique_indices and (bool(columns) or not layout.n_sparse)
    return BCOO._of(data, indices, tail, is_sorted=mat.indices_sorted, unique=unique)


@method
def bcoo_broadcast_in_dim(mat: BCOO, *, shape: Sequence[int], broadcast_dimensions: Sequence[int]) -> BCOO:
    """Return the array with new dimensions, along which its elements are repeated.

    Args:
        mat: the BCOO.
        shape: of the result.
        broadcast_dimensions: for each axis of mat its place in the result, in order.

    Returns:
        A BCOO. New axes between batch axes are batch axes, which share elements; those between sparse axes store each
        element again.

    Raises:
        ShapeError: where sizes do not fit.
    """
    mat = normal(is_bcoo(mat, "bcoo_broadcast_in_dim"))
    new, places = sizes(shape, "bcoo_broadcast_in_dim"), tuple(int(d) for d in broadcast_dimensions)
    fits = len(places) == mat.ndim and list(places) == sorted(set(places)) and all(0 <= p < len(new) for p in places)
    if not fits or any(mat.shape[a] not in (1, new[p]) for a, p in enumerate(places)):
        raise promotion.error(
            ShapeError, f"{mat!r} does not broadcast to {new} with dimensions {places}",
            "sizes must be equal, or 1 in the array",
        )  # fmt: skip
    layout = mat.layout
    batch_end = places[layout.n_batch - 1] + 1 if layout.n_batch else 0
    dense_start = places[layout.n_batch + layout.n_sparse] if layout.n_dense else len(new)
    of = {p: a for a, p in enumerate(places)}
    data, indices = mat.data, mat.indices
    # Values and indices get each new batch or dense axis, of size 1, then each in full.
    data_axes = [p for p in range(batch_end) if p not in of]
    data_axes += [p - (dense_start - batch_end) + 1 for p in range(dense_start, len(new)) if p not in of]
    if data_axes:
        data = fnp.expand_dims(data, data_axes)
    if batch_end > layout.n_batch:
        indices = fnp.expand_dims(indices, [p for p in range(batch_end) if p not in of])
    nse = mat.nse
    data = fnp.broadcast_to(data, (*new[:batch_end], nse, *new[dense_start:]))
    sparse = new[batch_end:dense_start]

    def one(d: Any, i: Any) -> Any:
        dtype = aval_of(i).dtype
        keep = stored(i, mat._sparse_shape)
        repeats = [1 if p in of and mat.shape[of[p]] == n else n for p, n in enumerate(new)][batch_end:dense_start]
        grid = (nse, *repeats)
        columns: list[Any] = []
        for k, n in enumerate(sparse):
            p = batch_end + k
            own = p in of and mat.shape[of[p]] == n
            column = i[:, of[p] - layout.n_batch] if own else fnp.arange(n, dtype=dtype)
            where = 0 if own else 1 + k
            columns.append(fnp.broadcast_to(fnp.expand_dims(column, [a for a in range(len(grid)) if a != where]), grid))
        count = math.prod(grid)
        at = fnp.stack([fnp.reshape(c, (count,)) for c in columns], -1) if columns else fnp.zeros((count, 0), dtype)
        flags = fnp.reshape(fnp.broadcast_to(fnp.expand_dims(keep, list(range(1, len(grid)))), grid), (count,))
        times = math.prod(repeats)
        return (d if times == 1 else fnp.repeat(d, times, axis=0)), placed(at, flags, sparse)

    data, indices = over_batches(one, batch_end, data, indices)
    return BCOO._of(data, indices, new[batch_end:], unique=mat.unique_indices)


@method
def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """Return the array with the order of its elements reversed along axes.

    Args:
        operand: the BCOO.
        dimensions: the axes.
    """
    mat = normal(is_bcoo(operand, "bcoo_rev"))
    axes = checked_axes(dimensions, mat.ndim, "bcoo_rev")
    layout = mat.layout
    batch = [a for a in axes if layout.kind(a) == "batch"]
    dense = [a - layout.n_sparse + 1 for a in axes if layout.kind(a) == "dense"]
    data = fnp.flip(mat.data, (*batch, *dense)) if batch or dense else mat.data
    indices = fnp.flip(mat.indices, tuple(batch)) if batch else mat.indices
    turned = [a - layout.n_batch for a in axes if layout.kind(a) == "sparse"]
    if turned:
        sparse = np.array(mat._sparse_shape, aval_of(indices).dtype)
        keep = stored(indices, mat._sparse_shape)
        which = np.isin(np.arange(layout.n_sparse), turned)
        indices = placed(fnp.where(which, sparse - 1 - indices, indices), keep, mat._sparse_shape)
    return BCOO._of(data, indices, mat._tail, is_sorted=mat.indices_sorted and not turned, unique=mat.unique_indices)


@method
def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """Return arrays joined along an axis.

    Args:
        operands: BCOOs with the same numbers of batch and dense dimensions.
        dimension: the axis.

    Raises:
        ShapeError: where the other sizes or the kinds of dimensions differ.
    """
    mats = [normal(is_bcoo(m, "bcoo_concatenate")) for m in operands]
    if not mats:
        raise promotion.error(ArgumentError, "bcoo_concatenate of nothing", "pass at least one BCOO")
    first = mats[0]
    (axis,) = checked_axes(dimension, first.ndim, "bcoo_concatenate")
    others = lambda m: (m.layout, m.shape[:axis] + m.shape[axis + 1 :])
    if any(others(m) != others(first) for m in mats):
        raise promotion.error(
            ShapeError, f"bcoo_concatenate of {', '.join(map(repr, mats))} along axis {axis}",
            "all other sizes, n_batch and n_dense must be equal",
        )  # fmt: skip
    if first.layout.kind(axis) == "batch":
        return _joined_batches(mats, axis)
    dtype = fnp.result_type(*(m.dtype for m in mats))
    start, data, indices = 0, [], []
    total = sum(m.shape[axis] for m in mats)
    k = axis - first.n_batch
    tail = (*first._tail[:k], total, *first._tail[k + 1 :])
    for m in mats:
        n, at, values = m.shape[axis], m.indices, m.data.astype(dtype)
        if first.layout.kind(axis) == "sparse":
            shift = np.zeros(first.n_sparse, aval_of(at).dtype)
            shift[k] = start
            at = placed(at + shift, stored(at, m._sparse_shape), tail[: first.n_sparse])
        else:
            where = first.n_batch + 1 + k - first.n_sparse
            values = fnp.pad(values, [(0, 0) if a != where else (start, total - start - n) for a in range(values.ndim)])
        start += n
        batch = m.shape[: m.n_batch]
        data.append(values)
        indices.append(fnp.broadcast_to(at, (*batch, *aval_of(at).shape[m.n_batch :])))
    unique = first.layout.kind(axis) == "sparse" and all(m.unique_indices for m in mats)
    return BCOO._of(
        fnp.concatenate(data, axis=first.n_batch), fnp.concatenate(indices, axis=first.n_batch), tail,
        unique=unique,
    )  # fmt: skip


def _joined_batches(mats: list[BCOO], axis: int) -> BCOO:
    """Join along a batch axis: all get as many elements as the longest."""
    most, n = max(m.nse for m in mats), mats[0].n_batch
    parts = []
    for m in mats:
        at, values, more = m.indices, m.data, most - m.nse
        at = fnp.broadcast_to(at, (*m.shape[:n], *aval_of(at).shape[n:]))
        blank = fnp.broadcast_to(np.array(m._sparse_shape, aval_of(at).dtype), (*m.shape[:n], more, m.n_sparse))
        values = fnp.pad(values, [(0, more if a == n else 0) for a in range(aval_of(values).ndim)])
        parts.append((values, fnp.concatenate([at, blank], axis=n)))
    return BCOO._of(
        fnp.concatenate([d for d, _ in parts], axis=axis), fnp.concatenate([i for _, i in parts], axis=axis),
        mats[0]._tail, is_sorted=all(m.indices_sorted for m in mats), unique=all(m.unique_indices for m in mats),
    )  # fmt: skip
