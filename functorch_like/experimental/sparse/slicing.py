"""Parts of sparse arrays: `bcoo_slice`, `bcoo_dynamic_slice`, and `mat[...]`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import lax
from functorch_like import numpy as fnp
from functorch_like.core import Tracer, aval_of
from functorch_like.errors import BoundsError, ShapeError, UnsupportedError
from functorch_like.experimental.sparse.bcoo import BCOO
from functorch_like.experimental.sparse.conversion import is_bcoo
from functorch_like.experimental.sparse.elements import masked, placed, stored
from functorch_like.experimental.sparse.format import METHODS, method
from functorch_like.experimental.sparse.lifting import merge_batch
from functorch_like.experimental.sparse.ordering import sum_duplicates
from functorch_like.experimental.sparse.rearranging import bcoo_broadcast_in_dim, bcoo_rev, bcoo_squeeze
from functorch_like.experimental.sparse.reductions import normal
from functorch_like.numpy import promotion


@method
def bcoo_slice(
    mat: BCOO, *, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> BCOO:
    """Return a part of the array; along sparse axes, elements outside of it become padding.

    Args:
        mat: the BCOO.
        start_indices: the first position along each axis.
        limit_indices: the position after the last along each axis.
        strides: steps; 1 by default.

    Raises:
        ShapeError: for positions that are out of bounds.
    """
    mat = is_bcoo(mat, "bcoo_slice")
    starts, limits = ([int(n) for n in given] for given in (start_indices, limit_indices))
    steps = [1] * mat.ndim if strides is None else [int(n) for n in strides]
    counts = {len(starts), len(limits), len(steps)} == {mat.ndim}
    if not counts or any(
        not 0 <= a <= b <= n or s < 1 for a, b, s, n in zip(starts, limits, steps, mat.shape, strict=True)
    ):
        raise promotion.error(
            ShapeError, f"bcoo_slice of {mat!r} from {starts} to {limits} in steps of {steps}",
            "give 0 <= start <= limit <= size and a step from 1, for each axis",
        )  # fmt: skip
    new = [-(-(b - a) // s) for a, b, s in zip(starts, limits, steps, strict=True)]
    mat = _cut(mat, [slice(a, b, s) for a, b, s in zip(starts, limits, steps, strict=True)])
    axes = mat.layout.sparse_axes()
    take = lambda values: np.array([values[a] for a in axes], aval_of(mat.indices).dtype)
    start, stop, step = take(starts), take(limits), take(steps)
    at = mat.indices
    keep = stored(at, mat._sparse_shape) & fnp.all((at >= start) & (at < stop) & ((at - start) % step == 0), axis=-1)
    return _kept(mat, (at - start) // step, keep, [new[a] for a in axes])


def _cut(mat: BCOO, cuts: Sequence[Any]) -> BCOO:
    """Cut values and indices along batch and dense axes."""
    mat = normal(mat)
    layout, shape = mat.layout, mat.shape
    batch, dense = cuts[: layout.n_batch], cuts[layout.n_batch + layout.n_sparse :]
    whole = lambda cut, n: cut == slice(0, n, 1)
    indices = mat.indices
    for axis, cut in enumerate(batch):
        if not whole(cut, shape[axis]):
            indices = merge_batch(indices, axis, shape[axis])[(slice(None),) * axis + (cut,)]
    data = mat.data[(*batch, slice(None), *dense)]
    tail = (*mat._sparse_shape, *aval_of(data).shape[layout.n_batch + 1 :])
    return BCOO._of(data, indices, tail, is_sorted=mat.indices_sorted, unique=mat.unique_indices)


def _kept(mat: BCOO, at: Any, keep: Any, sparse: Sequence[int]) -> BCOO:
    """Return the elements to keep, at other indices; fewer are stored where there is room for fewer."""
    if tuple(sparse) == mat._sparse_shape:
        return mat
    batch = np.broadcast_shapes(aval_of(keep).shape[:-1], aval_of(mat.data).shape[: mat.n_batch])
    flags = fnp.broadcast_to(keep, (*batch, mat.nse))
    tail = (*sparse, *mat._tail[mat.n_sparse :])
    # Padding now stands between elements, so that they are no longer in order.
    out = BCOO._of(masked(mat.data, flags), placed(at, keep, sparse), tail, unique=mat.unique_indices)
    room = math.prod(sparse)
    return sum_duplicates(out, room, False) if room < mat.nse else out


@method
def bcoo_dynamic_slice(mat: BCOO, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> BCOO:
    """Return a part of the array that starts at computed positions, moved into bounds as `lax.dynamic_slice` does.

    Args:
        mat: the BCOO.
        start_indices: an integer for each axis, or a vector of them.
        slice_sizes: the shape of the result.

    Raises:
        ShapeError: for sizes that do not fit.
    """
    mat = normal(is_bcoo(mat, "bcoo_dynamic_slice"))
    new = [int(n) for n in slice_sizes]
    starts: list[Any] = [start_indices[k] for k in range(len(start_indices))]
    if not len(new) == len(starts) == mat.ndim or any(not 0 <= n <= m for n, m in zip(new, mat.shape, strict=True)):
        raise promotion.error(
            ShapeError, f"bcoo_dynamic_slice of {mat!r} at {len(starts)} positions with sizes {new}",
            "give a position and a size for each axis, with 0 <= size <= the axis",
        )  # fmt: skip
    layout, shape = mat.layout, mat.shape
    starts = [fnp.clip(fnp.asarray(s), 0, n - k) for s, n, k in zip(starts, shape, new, strict=True)]
    data, indices = mat.data, mat.indices
    for axis, (start, k) in enumerate(zip(starts, new, strict=True)):
        if layout.kind(axis) == "sparse" or k == shape[axis]:
            continue
        place = axis if layout.kind(axis) == "batch" else axis - layout.n_sparse + 1
        data = lax.dynamic_slice_in_dim(data, start, k, place)
        if layout.kind(axis) == "batch":
            indices = lax.dynamic_slice_in_dim(merge_batch(indices, axis, shape[axis]), start, k, axis)
    tail = (*mat._sparse_shape, *aval_of(data).shape[layout.n_batch + 1 :])
    mat = BCOO._of(data, indices, tail, is_sorted=mat.indices_sorted, unique=mat.unique_indices)
    axes = layout.sparse_axes()
    if not len(axes):
        return mat
    dtype = aval_of(indices).dtype
    start = fnp.stack([starts[a].astype(dtype) for a in axes])
    at = indices - start
    sparse = [new[a] for a in axes]
    keep = stored(indices, mat._sparse_shape) & stored(at, sparse)
    return _kept(mat, at, keep, sparse)


@method
def getitem(mat: BCOO, item: Any) -> BCOO:
    """Return `mat[item]`, for ints, slices, None, an ellipsis, and arrays of integers or booleans."""
    items = list(item) if isinstance(item, tuple) else [item]
    for x in items:
        if not (x is None or x is Ellipsis or isinstance(x, slice) or _is_index(x)):
            if promotion.is_array(x):
                return METHODS["indexed"](mat, item)
            raise promotion.error(
                UnsupportedError, f"{mat!r} with an index of type {type(x).__name__}",
                "index with ints, slices and arrays, or use .todense()[...]",
            )  # fmt: skip
    used = sum(1 for x in items if x is not None and x is not Ellipsis)
    if used > mat.ndim or items.count(Ellipsis) > 1:
        raise promotion.error(BoundsError, f"{used} indices for {mat!r}", f"give at most {mat.ndim}, and one ellipsis")
    at = items.index(Ellipsis) if Ellipsis in items else len(items)
    items[at : at + 1] = [slice(None)] * (mat.ndim - used)
    cuts, turned, dropped = [], [], []
    for axis, x in enumerate(x for x in items if x is not None):
        n = mat.shape[axis]
        if isinstance(x, slice):
            start, stop, step = x.indices(n)
            count = len(range(start, stop, step))
            if step < 0:
                turned.append(axis)
                start, step = start + (count - 1) * step if count else 0, -step
            start = start if count else 0
            cuts.append((start, start + (count - 1) * step + 1 if count else start, step))
        else:
            k = x.__index__()
            if not -n <= k < n:
                raise promotion.error(
                    BoundsError, f"index {k} is out of bounds for axis {axis} of {mat!r}", f"it has size {n}"
                )
            dropped.append(axis)
            cuts.append((k % n, k % n + 1, 1))
    starts, limits, steps = (tuple(c) for c in zip(*cuts, strict=True)) if cuts else ((), (), ())
    out = bcoo_slice(mat, start_indices=starts, limit_indices=limits, strides=steps)
    out = bcoo_rev(out, turned) if turned else out
    out = bcoo_squeeze(out, dimensions=dropped) if dropped else out
    return _with_new_axes(out, items)


def _is_index(x: Any) -> bool:
    return hasattr(x, "__index__") and not isinstance(x, (bool, np.bool_, Tracer)) and not getattr(x, "shape", ())


def _with_new_axes(mat: BCOO, items: Sequence[Any]) -> BCOO:
    left = [x for x in items if x is None or isinstance(x, slice)]
    if None not in left:
        return mat
    places = [k for k, x in enumerate(left) if x is not None]
    sizes = iter(mat.shape)
    shape = [1 if x is None else next(sizes) for x in left]
    return bcoo_broadcast_in_dim(mat, shape=shape, broadcast_dimensions=places)
