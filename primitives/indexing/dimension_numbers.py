"""Dimension numbers of gather and the scatters, and their checks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.errors import DtypeError, ShapeError

MODES = ("clip", "fill", "promise_in_bounds")


class GatherDimensionNumbers(NamedTuple):
    """Roles of the dimensions in `gather`; the index vector is the last dimension of the indices.

    Args:
        offset_dims: dimensions of the result that run inside a slice, sorted.
        collapsed_slice_dims: dimensions of the operand that slices have size 1 in and lose, sorted.
        start_index_map: the dimension of the operand that each element of an index vector is a position in.
        operand_batching_dims: dimensions of the operand that advance together with dimensions of the indices.
        start_indices_batching_dims: those dimensions of the indices, in the same order.
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()

    def offset_operand_dims(self, ndim: int) -> list[int]:
        """The dimensions of the operand that the offset dimensions run over, in order."""
        gone = (*self.collapsed_slice_dims, *self.operand_batching_dims)
        return [d for d in range(ndim) if d not in gone]


class ScatterDimensionNumbers(NamedTuple):
    """Roles of the dimensions in the scatters; the index vector is the last dimension of the indices.

    Args:
        update_window_dims: dimensions of the updates that run inside a window, sorted.
        inserted_window_dims: dimensions of the operand that windows have size 1 in and updates lack, sorted.
        scatter_dims_to_operand_dims: the dimension of the operand each element of an index vector is a position in.
        operand_batching_dims: dimensions of the operand that advance together with dimensions of the indices.
        scatter_indices_batching_dims: those dimensions of the indices, in the same order.
    """

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()

    def sizes(self, operand: ShapedArray, updates: ShapedArray) -> tuple[int, ...]:
        """The size of a window in each dimension of the operand."""
        gone = (*self.inserted_window_dims, *self.operand_batching_dims)
        inside = iter([updates.shape[d] for d in self.update_window_dims])
        return tuple(min(operand.shape[d], 1) if d in gone else next(inside, -1) for d in range(operand.ndim))

    def gathers(self) -> GatherDimensionNumbers:
        """The numbers of the gather that reads the elements that these write."""
        return GatherDimensionNumbers(*self)


def check_window(
    what: str, operand: ShapedArray, indices: ShapedArray, index_map: Sequence[int], sizes: Sequence[int],
    dropped: Sequence[int], operand_batch: Sequence[int], indices_batch: Sequence[int],
) -> None:  # fmt: skip
    """Raise unless windows of these sizes, placed by these indices, fit the operand."""
    fix = "compare the dimension numbers with the two shapes"
    if not dtypes.is_integer(indices.dtype):
        raise DtypeError(f"indices {indices!r} are not integers", fix="convert them with astype('int32')")
    if indices.ndim == 0 or indices.shape[-1] != len(index_map):
        raise ShapeError(
            f"the last dimension of indices {indices!r} must have size {len(index_map)}, one for each of the operand's "
            f"dimensions {tuple(index_map)}",
            fix=fix,
        )
    for dims, name in ((index_map, "start index map"), ((*dropped, *operand_batch), "dropped and batching dimensions")):
        if len(set(dims)) != len(dims) or not all(0 <= d < operand.ndim for d in dims):
            raise ShapeError(f"{what} {name} {tuple(dims)} are not different dimensions of {operand!r}", fix=fix)
    if set(index_map) & set(operand_batch):
        raise ShapeError(f"batching dimensions {tuple(operand_batch)} are also indexed by {tuple(index_map)}", fix=fix)
    if len(sizes) != operand.ndim or not all(0 <= s <= n for s, n in zip(sizes, operand.shape, strict=True)):
        raise ShapeError(f"a window of sizes {tuple(sizes)} does not fit {operand!r}", fix=fix)
    if any(sizes[d] > 1 for d in (*dropped, *operand_batch)):
        raise ShapeError(f"window sizes {tuple(sizes)} must be 1 in dimensions {(*dropped, *operand_batch)}", fix=fix)
    pairs = list(zip(operand_batch, indices_batch, strict=False))
    if len(operand_batch) != len(indices_batch) or any(operand.shape[i] != indices.shape[j] for i, j in pairs):
        raise ShapeError(
            f"batching dimensions {tuple(operand_batch)} of {operand!r}, {tuple(indices_batch)} of {indices!r} differ",
            fix=fix,
        )


def starts_of(
    indices: Any, index_map: Sequence[int], operand_batch: Sequence[int], indices_batch: Sequence[int], ndim: int
) -> Iterator[tuple[tuple[int, ...], list[int]]]:
    """Yield each batch position, and where in the operand its window starts. NumPy only."""
    for at in np.ndindex(indices.shape[:-1]):
        start = [0] * ndim
        for d, i in zip(index_map, indices[at], strict=True):
            start[d] = int(i)
        for d, b in zip(operand_batch, indices_batch, strict=True):
            start[d] = at[b]
        yield at, start


def plain_indices(e: Any, indices: Any, aval: ShapedArray) -> tuple[Any, ShapedArray]:
    """Indices as int32 or int64, so that bounds of the operand can be expressed in their dtype."""
    if aval.dtype in (dtypes.int32, dtypes.int64):
        return indices, aval
    if aval.dtype == dtypes.uint64:
        indices = e.op("stablehlo.minimum", [indices, e.full(np.uint64(2**63 - 1), aval)], [aval])
    wide = aval.update(dtype=dtypes.int32 if aval.dtype.itemsize < 4 else dtypes.int64)
    return e.convert(indices, wide), wide


def last_starts(shape: Sequence[int], sizes: Sequence[int], index_map: Sequence[int], dtype: Any) -> Any:
    """The greatest position, for each element of an index vector, at which a window fits."""
    return np.minimum([shape[d] - sizes[d] for d in index_map], dtypes.iinfo(dtype).max).astype(dtype)
