"""Indices in order and without duplicates: `bcoo_sort_indices`, `bcoo_sum_duplicates`."""

from __future__ import annotations

from typing import Any

import numpy as np

from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError
from functorch_like.experimental.sparse.bcoo import BCOO
from functorch_like.experimental.sparse.checks import known
from functorch_like.experimental.sparse.conversion import is_bcoo
from functorch_like.experimental.sparse.elements import groups, masked, placed, stored
from functorch_like.experimental.sparse.format import method
from functorch_like.experimental.sparse.lifting import over_batches
from functorch_like.numpy import promotion
from functorch_like.transforms.eager_jit import eager_jit


@method
def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """Return a BCOO with its indices in lexicographic order, padding last.

    Args:
        mat: the BCOO.
    """
    mat = is_bcoo(mat, "bcoo_sort_indices")
    if mat.indices_sorted:
        return mat
    data, indices = _sort(mat.data, mat.indices, mat._sparse_shape, mat.n_batch)
    return BCOO._of(data, indices, mat._tail, is_sorted=True, unique=mat.unique_indices)


@eager_jit(static=("sparse", "n_batch"))
def _sort(data: Any, indices: Any, sparse: Any, n_batch: int) -> Any:
    def one(d: Any, i: Any) -> Any:
        i = placed(i, stored(i, sparse), sparse)
        order, _ = groups(i)
        return d[order], i[order]

    return over_batches(one, n_batch, data, indices)


@method
def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """Return a BCOO in which each index is stored once, in order; values that were stored twice are added.

    Args:
        mat: the BCOO.
        nse: number of elements to store. By default as many as there are, where indices are known; else as many as
            there may be.

    Raises:
        ArgumentError: for an nse that is too small, where indices are known.

    Example:
        >>> from functorch_like.experimental import sparse
        >>> m = sparse.BCOO((fnp.asarray([1.0, 2.0]), fnp.asarray([[3], [3]])), shape=(4,))
        >>> sparse.bcoo_sum_duplicates(m).data.tolist()
        [3.0]
    """
    return sum_duplicates(mat, nse, False)


@method
def bcoo_eliminate_zeros(mat: BCOO, nse: int | None = None) -> BCOO:
    """Return a BCOO without stored zeros, in which each index is stored once, in order.

    Args:
        mat: the BCOO.
        nse: as of `bcoo_sum_duplicates`.

    Raises:
        ArgumentError: for an nse that is too small, where values are known.
    """
    return sum_duplicates(mat, nse, True)


@method
def sum_duplicates(mat: BCOO, nse: int | None, remove_zeros: bool) -> BCOO:
    """Store each index once, as `bcoo_sum_duplicates`; values that are zero can be left out."""
    mat = is_bcoo(mat, "bcoo_sum_duplicates")
    sparse = mat._sparse_shape
    most = _distinct(mat, remove_zeros)
    if nse is not None and most is not None and nse < most:
        raise promotion.error(
            ArgumentError, f"nse={nse} of bcoo_sum_duplicates is too small for {most} distinct indices",
            "leave it out, or pass more",
        )  # fmt: skip
    if nse is None:
        nse = min(mat.nse, int(np.prod(sparse, dtype=np.int64))) if most is None else most
    data, indices = _sum(mat.data, mat.indices, sparse, mat.n_batch, int(nse), bool(remove_zeros))
    return BCOO._of(data, indices, mat._tail, is_sorted=True, unique=True)


def _distinct(mat: BCOO, remove_zeros: bool) -> int | None:
    """Return the largest number of distinct indices in a batch, or None where indices are traced."""
    indices, data = known(mat.indices), known(mat.data) if remove_zeros else None
    if indices is None or (remove_zeros and data is None):
        return None
    n, sparse = mat.n_batch, mat._sparse_shape
    keep: Any = ((indices >= 0) & (indices < np.array(sparse, np.int64))).all(-1)
    if data is not None:
        keep = keep & (data != 0).reshape(*data.shape[: n + 1], -1).any(-1)
    batch = keep.shape[:n]
    rows = np.broadcast_to(indices, (*batch, *indices.shape[n:]))
    return max((_count(rows[at][keep[at]], sparse) for at in np.ndindex(*batch)), default=0)


def _count(rows: np.ndarray[Any, Any], sparse: tuple[int, ...]) -> int:
    if not sparse or not len(rows):
        return min(1, len(rows))
    return len(np.unique(np.ravel_multi_index(tuple(rows.T.astype(np.int64)), sparse)))


@eager_jit(static=("sparse", "n_batch", "nse", "remove_zeros"))
def _sum(data: Any, indices: Any, sparse: Any, n_batch: int, nse: int, remove_zeros: bool) -> Any:
    def one(d: Any, i: Any) -> Any:
        keep = stored(i, sparse)
        if remove_zeros:
            keep = keep & fnp.any(fnp.reshape(d != 0, (aval_of(d).shape[0], -1)), axis=-1)
        i, d = placed(i, keep, sparse), masked(d, keep)
        order, group = groups(i)
        rows, values = i[order], d[order]
        out = fnp.zeros((nse, *aval_of(d).shape[1:]), aval_of(d).dtype).at[group]
        add = out.max if aval_of(d).dtype == bool else out.add
        blank = fnp.broadcast_to(np.array(sparse, aval_of(i).dtype), (nse, len(sparse)))
        return (
            add(values, indices_are_sorted=True, mode="drop"),
            fnp.asarray(blank).at[group].set(rows, indices_are_sorted=True, mode="drop"),
        )

    return over_batches(one, n_batch, data, indices)
