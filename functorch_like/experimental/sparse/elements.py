"""Stored elements without batch dimensions: reading dense arrays at indices, adding up, masks of padding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.core import aval_of


def columns(indices: Any, which: Sequence[int] | None = None) -> tuple[Any, ...]:
    """Return the indices (nse, n_sparse) of each sparse dimension, or of some; negative ones out of bounds.

    Indexing counts negative indices from the end. Here they are padding, like all that are out of bounds.
    """
    beyond = np.array(np.iinfo(aval_of(indices).dtype).max, aval_of(indices).dtype)
    indices = fnp.where(indices < 0, beyond, indices)
    return tuple(indices[..., k] for k in (range(aval_of(indices).shape[-1]) if which is None else which))


def stored(indices: Any, sparse: Sequence[int]) -> Any:
    """Return True for elements that are not padding."""
    return fnp.all((indices >= 0) & (indices < np.asarray(sparse, aval_of(indices).dtype)), axis=-1)


def spread(flags: Any, like: Any) -> Any:
    """Return one flag for each element with trailing dimensions, to be broadcast against values."""
    return fnp.reshape(flags, (*aval_of(flags).shape, *(1,) * (aval_of(like).ndim - aval_of(flags).ndim)))


def masked(data: Any, keep: Any) -> Any:
    """Return values, with zeros for elements that are left out."""
    return fnp.where(spread(keep, data), data, fnp.zeros_like(data))


def placed(indices: Any, keep: Any, sparse: Sequence[int]) -> Any:
    """Return indices, with those of padding for elements that are left out."""
    dtype = aval_of(indices).dtype
    return fnp.where(keep[..., None], indices, np.broadcast_to(np.asarray(sparse, dtype), (len(sparse),)))


def read(dense: Any, indices: Any) -> Any:
    """Return the values of a dense array, whose first dimensions are sparse, at indices; zeros for padding."""
    if not aval_of(indices).shape[-1]:
        return fnp.broadcast_to(dense, (aval_of(indices).shape[0], *aval_of(dense).shape))
    if not math.prod(aval_of(dense).shape[: aval_of(indices).shape[-1]]):  # there is nothing but padding
        rest = aval_of(dense).shape[aval_of(indices).shape[-1] :]
        return fnp.zeros((aval_of(indices).shape[0], *rest), aval_of(dense).dtype)
    return dense.at[columns(indices)].get(mode="fill", fill_value=0)


def add_up(data: Any, indices: Any, sparse: Sequence[int], is_sorted: bool = False, unique: bool = False) -> Any:
    """Return the dense array in which values are added up at their indices."""
    values = aval_of(data)
    if not len(sparse):
        return fnp.any(data, axis=0) if values.dtype == dtypes.bool_ else fnp.sum(data, axis=0, dtype=values.dtype)
    out = fnp.zeros((*sparse, *values.shape[1:]), values.dtype).at[columns(indices)]
    update = out.max if values.dtype == dtypes.bool_ else out.add
    return update(data, indices_are_sorted=is_sorted, unique_indices=unique, mode="drop")


def groups(indices: Any) -> tuple[Any, Any]:
    """Return the order that sorts indices, padding last, and for each in it the number of the distinct index."""
    n_sparse = aval_of(indices).shape[-1]
    nse = aval_of(indices).shape[0]
    if not n_sparse or not nse:
        return fnp.arange(nse), fnp.zeros(nse, "int32")
    order = fnp.lexsort(columns(indices)[::-1])
    rows = indices[order]
    new = fnp.any(rows[1:] != rows[:-1], axis=-1)
    return order, fnp.concatenate([fnp.zeros(1, "int32"), fnp.cumsum(new.astype("int32"), dtype="int32")])
