"""Sums over axes: `bcoo_reduce_sum`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import AxisError
from functorch_like.experimental.sparse.bcoo import BCOO
from functorch_like.experimental.sparse.conversion import is_bcoo
from functorch_like.experimental.sparse.elements import masked, placed, stored
from functorch_like.experimental.sparse.format import method
from functorch_like.experimental.sparse.lifting import merge_batch
from functorch_like.numpy import promotion


def checked_axes(axes: int | Sequence[int], ndim: int, what: str) -> tuple[int, ...]:
    """Return axes, counted from 0, in order.

    Raises:
        AxisError: for axes that are not there, or twice.
    """
    requested = (axes,) if isinstance(axes, int) else tuple(axes)
    result = sorted({a % ndim for a in requested if -ndim <= a < ndim})
    if len(result) != len(requested):
        raise promotion.error(
            AxisError, f"axes {requested} of {what} do not fit {ndim} dimensions", "give each axis once"
        )
    return tuple(result)


def normal(mat: BCOO) -> BCOO:
    """Return a BCOO whose padding has values of zero and the index `shape` in all dimensions."""
    keep = stored(mat.indices, mat._sparse_shape)
    batch = np.broadcast_shapes(aval_of(keep).shape[:-1], aval_of(mat.data).shape[: mat.n_batch])
    data = mat.data
    for axis, n in enumerate(batch):
        data = merge_batch(data, axis, n)
    return BCOO._of(
        masked(data, fnp.broadcast_to(keep, (*batch, mat.nse))), placed(mat.indices, keep, mat._sparse_shape),
        mat._tail, is_sorted=mat.indices_sorted, unique=mat.unique_indices,
    )  # fmt: skip


@method
def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """Return the sum over axes.

    Args:
        mat: the BCOO.
        axes: of any kind. A batch axis that is summed makes the other batches store more elements.

    Returns:
        A BCOO of the remaining axes, in which indices may be stored twice.

    Raises:
        AxisError: for axes that are not there, or twice.
    """
    mat = is_bcoo(mat, "bcoo_reduce_sum")
    positions = checked_axes(axes, mat.ndim, "bcoo_reduce_sum")
    layout, shape = mat.layout, mat.shape
    dense = [a - layout.n_sparse + 1 for a in positions if layout.kind(a) == "dense"]
    columns = [k for k, a in enumerate(layout.sparse_axes()) if a not in positions]
    batches = [a for a in positions if layout.kind(a) == "batch"]
    mat = normal(mat)
    data, indices = mat.data, mat.indices
    if dense:
        data = fnp.sum(data, axis=tuple(dense), dtype=aval_of(data).dtype)
    for axis in reversed(batches):
        n, last = shape[axis], aval_of(indices).ndim - 2
        data, indices = (_merge(merge_batch(x, axis, n), axis, last) for x in (data, indices))
    tail = [n for a, n in enumerate(shape) if a not in positions and layout.kind(a) != "batch"]
    if len(columns) < layout.n_sparse:
        indices = indices[..., np.array(columns, int)]
    n_batch = layout.n_batch - len(batches)
    if not columns and layout.n_sparse:
        data = fnp.sum(data, axis=n_batch, keepdims=True, dtype=aval_of(data).dtype)
        indices = indices[..., :1, :]
    same = len(positions) == len(dense)
    return BCOO._of(data, indices, tail, is_sorted=mat.indices_sorted and same, unique=mat.unique_indices and same)


def _merge(x: Any, axis: int, nse_axis: int) -> Any:
    """Return an array with a batch axis merged into that of the elements."""
    moved = fnp.moveaxis(x, axis, nse_axis - 1)
    shape = aval_of(moved).shape
    return fnp.reshape(moved, (*shape[: nse_axis - 1], shape[nse_axis - 1] * shape[nse_axis], *shape[nse_axis + 1 :]))


@method
def total(mat: BCOO, axis: int | Sequence[int] | None) -> Any:
    """Return the sum over axes; over all of them as a dense scalar."""
    out = bcoo_reduce_sum(mat, axes=range(mat.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis)
    return out.todense() if not out.ndim else out
