"""dynamic_slice and dynamic_update_slice: one window of fixed size, at a start that is data.

Starts are scalars, one for each dimension, and are clamped so that the window lies inside the operand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import BatchAxis, Primitive, SampleInput, UndefinedPrimal, aval_of
from functorch_like.errors import DtypeError, ShapeError
from functorch_like.primitives import structural
from functorch_like.primitives.indexing.dimension_numbers import (
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
    plain_indices,
)
from functorch_like.primitives.indexing.gather_and_scatter_add import gather
from functorch_like.primitives.updates.scatter import scatter


def _check(operand: ShapedArray, starts: Sequence[ShapedArray], sizes: Sequence[int]) -> None:
    if len(starts) != operand.ndim or any(s.shape or not dtypes.is_integer(s.dtype) for s in starts):
        raise ShapeError(
            f"the starts {tuple(starts)} must be {operand.ndim} integer scalars, one for each dimension of {operand!r}",
            fix="pass each start as a separate scalar",
        )
    if len({s.dtype for s in starts}) > 1:
        raise DtypeError(f"the starts {tuple(starts)} differ in dtype", fix="convert them to one, such as int32")
    if len(sizes) != operand.ndim or not all(0 <= s <= n for s, n in zip(sizes, operand.shape, strict=True)):
        raise ShapeError(
            f"a window of sizes {tuple(sizes)} does not fit {operand!r}",
            fix="give one size for each dimension, none greater than the operand's",
        )


def _window(operand: Any, starts: Sequence[Any], sizes: Sequence[int]) -> tuple[slice, ...]:
    first = [min(max(int(i), 0), n - s) for i, n, s in zip(starts, operand.shape, sizes, strict=True)]
    return tuple(slice(i, i + s) for i, s in zip(first, sizes, strict=True))


def _plain(e: Any, starts: Sequence[Any], avals: Sequence[ShapedArray]) -> list[Any]:
    """Starts in a dtype that can express the bounds they are clamped to."""
    return [plain_indices(e, s, a)[0] for s, a in zip(starts, avals, strict=True)]


def _vectors(axis: BatchAxis, starts: Sequence[Any], dims: Sequence[Any]) -> Any:
    """Starts of which some are batched, as an array of index vectors: [axis.size, number of starts]."""
    columns = [
        structural.broadcast_in_dim(s, shape=(axis.size, 1), broadcast_dimensions=() if d is None else (0,))
        for s, d in zip(starts, dims, strict=True)
    ]
    return columns[0] if len(columns) == 1 else structural.concatenate(*columns, dimension=1)


def _zero_starts(starts: Sequence[Any], at: int) -> list[Any]:
    """Starts with a zero put in at a position."""
    zero = np.zeros((), aval_of(starts[0]).dtype if starts else np.int32)
    return [*starts[:at], zero, *starts[at:]]


# --------------------------------------------------------------------------------------------------- dynamic_slice
def _slice_shape(operand: ShapedArray, *starts: ShapedArray, slice_sizes: tuple[int, ...]) -> ShapedArray:
    _check(operand, starts, slice_sizes)
    return operand.update(shape=slice_sizes)


def _slice_lower(e: Any, operand: Any, *starts: Any, slice_sizes: tuple[int, ...]) -> Any:
    attrs = {"slice_sizes": e.i64s(slice_sizes)}
    return e.op("stablehlo.dynamic_slice", [operand, *_plain(e, starts, e.ins[1:])], e.outs, attrs=attrs)


def _slice_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    return dynamic_slice(*primals, **params), dynamic_slice(tangents[0], *primals[1:], **params)


def _slice_transpose(ct: Any, args: Sequence[Any], *, slice_sizes: tuple[int, ...]) -> list[Any]:
    operand, *starts = args
    return [dynamic_update_slice(structural.zeros(operand.aval), ct, *starts), *(None for _ in starts)]


def _slice_batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Any], *, slice_sizes: tuple[int, ...]) -> Any:
    (operand, *starts), (at, *start_dims) = args, dims
    if all(d is None for d in start_dims):
        sizes = (*slice_sizes[:at], axis.size, *slice_sizes[at:])
        return dynamic_slice(operand, *_zero_starts(starts, at), slice_sizes=sizes), at
    every = tuple(range(len(starts)))
    return gather.batch(
        axis,
        [operand, _vectors(axis, starts, start_dims)],
        [at, 0],
        dimension_numbers=GatherDimensionNumbers(every, (), every),
        slice_sizes=slice_sizes,
        mode="clip",
        fill_value=None,
        indices_are_sorted=True,
        unique_indices=True,
    )


_START = np.array(1, np.int32)
#: Shape, starts, sizes and dtype of slices that the tests read and write.
_SLICES: list[tuple[tuple[int, ...], tuple[Any, ...], tuple[int, ...], str]] = [
    ((), (), (), "float32"),
    ((5,), (_START,), (3,), "float32"),
    ((5,), (np.array(-2, np.int64),), (3,), "float32"),
    ((3, 4), (_START, np.array(9, np.int32)), (2, 3), "float32"),
    ((2, 3, 4), (_START, _START, _START), (1, 3, 0), "float32"),
    ((300,), (np.array(200, np.uint8),), (3,), "int32"),
    ((4, 2), (_START, _START), (2, 1), "complex64"),
    ((4,), (_START,), (2,), "bool"),
]

dynamic_slice = Primitive(
    "dynamic_slice",
    shape=_slice_shape,
    ref=lambda x, *starts, slice_sizes: x[_window(x, starts, slice_sizes)],
    lower=_slice_lower,
    jvp=_slice_jvp,
    transpose=_slice_transpose,
    batch=_slice_batch,
    samples=lambda: [
        SampleInput((ShapedArray(shape, dtype), *starts), {"slice_sizes": sizes})
        for shape, starts, sizes, dtype in _SLICES
    ],
    kind="movement",
    linear="jointly",
)


# -------------------------------------------------------------------------------------------- dynamic_update_slice
def _update_shape(operand: ShapedArray, update: ShapedArray, *starts: ShapedArray) -> ShapedArray:
    if operand.dtype != update.dtype:
        raise DtypeError(f"cannot write {update!r} into {operand!r}", fix="convert the update with astype")
    _check(operand, starts, update.shape)
    return operand.update(weak_type=operand.weak_type and update.weak_type)


def _update_ref(operand: Any, update: Any, *starts: Any) -> Any:
    out = np.array(operand)
    out[_window(operand, starts, update.shape)] = update
    return out


def _update_lower(e: Any, operand: Any, update: Any, *starts: Any) -> Any:
    return e.op("stablehlo.dynamic_update_slice", [operand, update, *_plain(e, starts, e.ins[2:])], e.outs)


def _update_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    operand, update, *starts = primals
    old, new = tangents[:2]
    old = structural.zeros(aval_of(operand).strong()) if old is None else old
    new = structural.zeros(aval_of(update).strong()) if new is None else new
    return dynamic_update_slice(*primals), dynamic_update_slice(old, new, *starts)


def _update_transpose(ct: Any, args: Sequence[Any]) -> list[Any]:
    operand, update, *starts = args
    sizes = aval_of(update).shape
    return [
        dynamic_update_slice(ct, structural.zeros(aval_of(update).strong()), *starts)
        if type(operand) is UndefinedPrimal
        else None,
        dynamic_slice(ct, *starts, slice_sizes=sizes) if type(update) is UndefinedPrimal else None,
        *(None for _ in starts),
    ]


def _update_batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Any]) -> Any:
    (operand, update, *starts), (od, ud, *start_dims) = args, dims
    if all(d is None for d in start_dims):
        at = ud if od is None else od
        operand = structural.widen(operand, axis.size, at) if od is None else operand
        update = structural.widen(update, axis.size, at) if ud is None else structural.move(update, ud, at)
        return dynamic_update_slice(operand, update, *_zero_starts(starts, at)), at
    every = tuple(range(len(starts)))
    return scatter.batch(
        axis,
        [operand, _vectors(axis, starts, start_dims), update],
        [od, 0, ud],
        dimension_numbers=ScatterDimensionNumbers(every, (), every),
        mode="clip",
        indices_are_sorted=True,
        unique_indices=True,
    )


dynamic_update_slice = Primitive(
    "dynamic_update_slice",
    shape=_update_shape,
    ref=_update_ref,
    lower=_update_lower,
    jvp=_update_jvp,
    transpose=_update_transpose,
    batch=_update_batch,
    samples=lambda: [
        SampleInput((ShapedArray(shape, dtype), ShapedArray(sizes, dtype), *starts))
        for shape, starts, sizes, dtype in _SLICES
    ],
    kind="movement",
    linear="jointly",
)
