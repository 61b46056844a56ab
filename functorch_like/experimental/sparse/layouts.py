"""`bcoo_update_layout`: sparse dimensions become batch or dense ones, and the other way round."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError
from functorch_like.experimental.sparse.bcoo import BCOO
from functorch_like.experimental.sparse.conversion import is_bcoo, split
from functorch_like.experimental.sparse.elements import masked, placed, spread
from functorch_like.experimental.sparse.format import SparseEfficiencyError, SparseEfficiencyWarning, method
from functorch_like.experimental.sparse.lifting import merge_batch, over_batches
from functorch_like.experimental.sparse.reductions import normal
from functorch_like.numpy import promotion


@method
def bcoo_update_layout(
    mat: BCOO, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
) -> BCOO:
    """Return the same array with other numbers of batch and dense dimensions.

    Args:
        mat: the BCOO.
        n_batch: number of batch dimensions; unchanged by default.
        n_dense: number of dense dimensions; unchanged by default.
        on_inefficient: "error", "warn" or None, for nothing, where more batch or dense dimensions store more zeros.

    Raises:
        SparseEfficiencyError: with `on_inefficient="error"`.
        ShapeError: for numbers that do not fit the shape.
    """
    mat = is_bcoo(mat, "bcoo_update_layout")
    n_batch = mat.n_batch if n_batch is None else int(n_batch)
    n_dense = mat.n_dense if n_dense is None else int(n_dense)
    split(mat.shape, n_batch, n_dense, "bcoo_update_layout")
    if on_inefficient not in ("error", "warn", None):
        raise promotion.error(
            ArgumentError, f"on_inefficient={on_inefficient!r} is unknown", "use 'error', 'warn' or None"
        )
    if n_batch > mat.n_batch or n_dense > mat.n_dense:
        _tell(mat, n_batch, n_dense, on_inefficient)
    while mat.n_dense > n_dense:
        mat = _dense_to_sparse(mat)
    while mat.n_batch > n_batch:
        mat = _batch_to_sparse(mat)
    while mat.n_dense < n_dense:
        mat = _sparse_to_dense(mat)
    while mat.n_batch < n_batch:
        mat = _sparse_to_batch(mat)
    return mat


def _tell(mat: BCOO, n_batch: int, n_dense: int, on_inefficient: str | None) -> None:
    reason = f"{mat!r} with n_batch={n_batch} and n_dense={n_dense} may store many zeros"
    if on_inefficient == "error":
        raise SparseEfficiencyError(f"{reason}\n  what to do: pass on_inefficient=None where that is wanted")
    if on_inefficient == "warn":
        warnings.warn(reason, SparseEfficiencyWarning, stacklevel=4)


def _dense_to_sparse(mat: BCOO) -> BCOO:
    """Make the first dense dimension the last sparse one: each of its elements is stored by itself."""
    mat = normal(mat)
    sparse, n = mat._sparse_shape, mat._tail[len(mat._sparse_shape)]

    def one(d: Any, i: Any) -> Any:
        nse, dtype = aval_of(i).shape[0], aval_of(i).dtype
        inner = fnp.broadcast_to(fnp.arange(n, dtype=dtype)[None, :, None], (nse, n, 1))
        at = fnp.concatenate([fnp.broadcast_to(i[:, None, :], (nse, n, len(sparse))), inner], axis=-1)
        at = fnp.reshape(at, (nse * n, len(sparse) + 1))
        if sparse:
            at = placed(at, fnp.all(at[:, :-1] < np.array(sparse, dtype), axis=-1), (*sparse, n))
        return fnp.reshape(d, (nse * n, *aval_of(d).shape[2:])), at

    data, indices = over_batches(one, mat.n_batch, mat.data, mat.indices)
    return BCOO._of(data, indices, mat._tail, is_sorted=mat.indices_sorted, unique=mat.unique_indices)


def _sparse_to_dense(mat: BCOO) -> BCOO:
    """Make the last sparse dimension the first dense one: an element is stored as a row with one entry."""
    mat = normal(mat)
    sparse = mat._sparse_shape

    def one(d: Any, i: Any) -> Any:
        hot = i[:, -1:] == np.arange(sparse[-1], dtype=aval_of(i).dtype)
        wide = d[:, None]
        data = fnp.where(spread(hot, wide), wide, fnp.zeros_like(wide))
        return data, i[:, :-1]

    data, indices = over_batches(one, mat.n_batch, mat.data, mat.indices)
    return BCOO._of(data, indices, mat._tail, is_sorted=mat.indices_sorted)


def _batch_to_sparse(mat: BCOO) -> BCOO:
    """Make the last batch dimension the first sparse one."""
    mat = normal(mat)
    last, n, nse, sparse = mat.n_batch - 1, mat.shape[mat.n_batch - 1], mat.nse, mat._sparse_shape
    whole = merge_batch(mat.indices, last, n)

    def one(d: Any, i: Any) -> Any:
        dtype = aval_of(i).dtype
        outer = fnp.broadcast_to(fnp.arange(n, dtype=dtype)[:, None, None], (n, nse, 1))
        at = fnp.reshape(fnp.concatenate([outer, i], axis=-1), (n * nse, len(sparse) + 1))
        if sparse:
            at = placed(at, fnp.all(at[:, 1:] < np.array(sparse, dtype), axis=-1), (n, *sparse))
        return fnp.reshape(d, (n * nse, *aval_of(d).shape[2:])), at

    data, indices = over_batches(one, last, mat.data, whole)
    return BCOO._of(data, indices, (n, *mat._tail), unique=mat.unique_indices)


def _sparse_to_batch(mat: BCOO) -> BCOO:
    """Make the first sparse dimension the last batch dimension: each batch is padded to as many elements."""
    mat = normal(mat)
    sparse = mat._sparse_shape

    def one(d: Any, i: Any) -> Any:
        row = fnp.arange(sparse[0], dtype=aval_of(i).dtype)
        keep = i[None, :, 0] == row[:, None]
        at = placed(fnp.broadcast_to(i[None, :, 1:], (sparse[0], *aval_of(i[:, 1:]).shape)), keep, sparse[1:])
        return masked(fnp.broadcast_to(d, (sparse[0], *aval_of(d).shape)), keep), at

    data, indices = over_batches(one, mat.n_batch, mat.data, mat.indices)
    return BCOO._of(data, indices, mat._tail[1:], unique=mat.unique_indices and len(sparse) > 1)
