"""Slices with static starts, and with starts that may be traced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import ArrayImpl, Tracer, aval_of
from functorch_like.errors import BoundsError, DtypeError, ShapeError
from functorch_like.lax.operands import axis_of, error, host, ints, one_int, same_rank, value
from functorch_like.lax.shapes import reshape, squeeze
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.updates import dynamic_slice as slicing
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, Arrays


# ------------------------------------------------------------------------------------------------------ static slices
def slice(
    operand: ArrayLike, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> Array:
    """operand[start:limit:stride], with one of each for every dimension.

    Args:
        operand: array.
        start_indices: first position in each dimension.
        limit_indices: position after the last in each dimension.
        strides: step in each dimension; None for 1.

    Returns:
        An array of the operand's dtype.

    Raises:
        ShapeError: unless 0 <= start <= limit <= size and stride >= 1.

    >>> lax.slice(fnp.arange(6), (1,), (6,), (2,)).tolist()
    [1, 3, 5]
    """
    starts, limits = ints(start_indices, "start_indices"), ints(limit_indices, "limit_indices")
    steps = None if strides is None else ints(strides, "strides")
    return structural.slice(value(operand), start_indices=starts, limit_indices=limits, strides=steps)


def slice_in_dim(
    operand: ArrayLike, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Array:
    """operand[..., start:limit:stride, ...] along one dimension, as Python slices it.

    Args:
        operand: array.
        start_index: int; negative ones count from the end, None is the beginning.
        limit_index: int; None is the end.
        stride: positive int.
        axis: the dimension.

    Returns:
        An array of the operand's dtype.

    >>> lax.slice_in_dim(fnp.arange(6), -3, None).tolist()
    [3, 4, 5]
    """
    operand = value(operand)
    shape = aval_of(operand).shape
    at = axis_of(axis, len(shape))
    wrap = lambda i, default: default if i is None else i + shape[at] if i < 0 else i
    starts, limits, steps = [0] * len(shape), list(shape), [1] * len(shape)
    starts[at], limits[at], steps[at] = wrap(start_index, 0), wrap(limit_index, shape[at]), stride
    return slice(operand, tuple(starts), tuple(limits), tuple(steps))


def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """Take one position of a dimension.

    Args:
        operand: array.
        index: int: the position; negative ones count from the end.
        axis: int: the dimension.
        keepdims: keep the dimension, with size 1.

    Returns:
        An array of the operand's dtype, with size 1 along the dimension, or without it.

    Raises:
        BoundsError: where the index is out of bounds.

    >>> lax.index_in_dim(fnp.arange(6), -1, keepdims=False).item()
    5
    """
    shape = aval_of(operand).shape
    at = axis_of(axis, len(shape))
    i = one_int(index, "index")
    if not -shape[at] <= i < shape[at]:
        raise error(
            BoundsError,
            f"index {i} is out of bounds for dimension {at} of {aval_of(operand)!r}",
            f"use {-shape[at]} to {shape[at] - 1}",
        )
    i += shape[at] if i < 0 else 0
    out = slice_in_dim(operand, i, i + 1, axis=at)
    return out if keepdims else squeeze(out, (at,))


# ------------------------------------------------------------------------------------------------------ dynamic slices
def _starts(start_indices: Any, shape: Sequence[int], sizes: Sequence[int], wrap: Any) -> tuple[Any, ...]:
    """Return starts as scalars of one dtype; Python ints are clamped to the bounds."""
    if isinstance(start_indices, (ArrayImpl, Tracer, np.ndarray)):
        aval = aval_of(start_indices)
        if aval.ndim != 1:
            raise error(
                ShapeError, f"start_indices {aval!r} is not a vector", "give a vector, or a sequence of scalars"
            )
        if isinstance(start_indices, np.ndarray):
            start_indices = start_indices.tolist()
        else:
            start_indices = [reshape(slice(start_indices, (i,), (i + 1,)), ()) for i in range(aval.shape[0])]
    starts = same_rank(tuple(start_indices), len(shape), "start_indices")
    wraps = (wrap,) * len(shape) if isinstance(wrap, (bool, np.bool_)) else tuple(wrap)
    same_rank(wraps, len(shape), "allow_negative_indices")
    known: list[Any] = []
    for start, n, size, wrapped in zip(starts, shape, sizes, wraps, strict=True):
        if isinstance(start, np.ndarray) and not start.shape and start.dtype.kind in "iu":
            start = int(start)
        if isinstance(start, (int, np.integer)):
            if start < 0 and not wrapped:
                raise error(
                    BoundsError,
                    f"the start {int(start)} is negative, and allow_negative_indices=False",
                    "use a start of at least 0; traced starts below 0 are clamped to 0",
                )
            i = int(start) + (n if start < 0 else 0)
            known.append(min(max(i, 0), max(n - size, 0)))
        else:
            known.append(start)
    for s in known:
        if type(s) is not int and dtypes.is_inexact(aval_of(s).dtype):
            text = repr(s) if isinstance(s, float) else repr(aval_of(s))
            raise error(
                DtypeError, f"the start {text} is not an integer", "divide with //, or convert with astype(int)"
            )
    start_dtypes = [aval_of(s).dtype for s in known if type(s) is not int]
    wide = any(d not in (dtypes.int32, dtypes.int8, dtypes.int16, dtypes.uint8, dtypes.uint16) for d in start_dtypes)
    dtype = dtypes.int64 if wide or any(n >= 2**31 for n in shape) else dtypes.int32
    return tuple(
        host(s, dtype) if type(s) is int else _wrap(s, size=n if wrapped else 0, dtype=dtype)
        for s, n, wrapped in zip(known, shape, wraps, strict=True)
    )


@eager_jit(static=("size", "dtype"))
def _wrap(start: Any, size: int, dtype: Any) -> Any:
    """Convert a start that is an array; a negative one counts from the end of `size` elements, unless size is 0."""
    if aval_of(start).dtype != dtype:
        start = structural.convert_element_type(start, new_dtype=dtype)
    if not size:
        return start
    return elementwise.select_n(
        elementwise.lt(start, structural.full_like(start, 0)),
        start,
        elementwise.add(start, structural.full_like(start, size)),
    )


def dynamic_slice(
    operand: ArrayLike,
    start_indices: Arrays,
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Slice a window of static sizes, at starts that may be traced.

    Args:
        operand: array.
        start_indices: integer scalars, one for each dimension, or a vector of them. Negative ones count from the
            end; then they are clamped so that the window lies inside.
        slice_sizes: the shape of the window.
        allow_negative_indices: False if no start counts from the end: a negative array is clamped to 0, and a negative
            Python int raises. One bool for all dimensions, or one for each.

    Returns:
        An array of the shape `slice_sizes`, in the operand's dtype.

    Raises:
        ShapeError: where the window is larger than the operand, or starts do not fit its rank.
        BoundsError: for a negative Python int, with allow_negative_indices=False.
        DtypeError: for starts that are not integers.

    >>> lax.dynamic_slice(fnp.arange(6), [5], [3]).tolist()
    [3, 4, 5]
    """
    operand, sizes = value(operand), ints(slice_sizes, "slice_sizes")
    shape = aval_of(operand).shape
    same_rank(sizes, len(shape), "slice_sizes")
    return slicing.dynamic_slice(
        operand, *_starts(start_indices, shape, sizes, allow_negative_indices), slice_sizes=sizes
    )


def _along(operand: Any, start: Any, axis: int) -> tuple[list[Any], int]:
    ndim = aval_of(operand).ndim
    at = axis_of(axis, ndim)
    starts: list[Any] = [0] * ndim
    starts[at] = start
    return starts, at


def dynamic_slice_in_dim(
    operand: ArrayLike,
    start_index: ArrayLike,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Slice `slice_size` positions of one dimension, from a start that may be traced.

    Args:
        operand: array.
        start_index: integer, which may be traced; clamped so that the window lies inside.
        slice_size: int: size of the window.
        axis: int: the dimension.
        allow_negative_indices: False if the start never counts from the end, as for `dynamic_slice`.

    Returns:
        An array of the operand's dtype, with `slice_size` along the dimension.

    >>> lax.dynamic_slice_in_dim(fnp.arange(6), 2, 3).tolist()
    [2, 3, 4]
    """
    starts, at = _along(operand, start_index, axis)
    sizes = list(aval_of(operand).shape)
    sizes[at] = slice_size
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(
    operand: ArrayLike,
    index: ArrayLike,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Take one position of a dimension, which may be traced; clamped where it is out of bounds.

    Args:
        operand: array.
        index: integer, which may be traced.
        axis: int: the dimension.
        keepdims: keep the dimension, with size 1.
        allow_negative_indices: False if the start never counts from the end, as for `dynamic_slice`.

    Returns:
        An array of the operand's dtype, with size 1 along the dimension, or without it.

    >>> lax.dynamic_index_in_dim(fnp.arange(6), 2, keepdims=False).item()
    2
    """
    out = dynamic_slice_in_dim(operand, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return out if keepdims else squeeze(out, (axis,))


def dynamic_update_slice(
    operand: ArrayLike,
    update: ArrayLike,
    start_indices: Arrays,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Overwrite a window of an array, at starts that may be traced.

    Args:
        operand: array.
        update: array of the same rank and dtype.
        start_indices: as for `dynamic_slice`.
        allow_negative_indices: as for `dynamic_slice`.

    Returns:
        An array of the operand's shape and dtype.

    Raises:
        ShapeError: where the update is larger than the operand.
        BoundsError: for a negative Python int, with allow_negative_indices=False.
        DtypeError: where the dtypes differ.

    >>> lax.dynamic_update_slice(fnp.zeros(4), fnp.ones(2), [1]).tolist()
    [0.0, 1.0, 1.0, 0.0]
    """
    operand, update = value(operand), value(update)
    shape, sizes = aval_of(operand).shape, aval_of(update).shape
    same_rank(sizes, len(shape), "the shape of the update")
    return slicing.dynamic_update_slice(operand, update, *_starts(start_indices, shape, sizes, allow_negative_indices))


def dynamic_update_slice_in_dim(
    operand: ArrayLike,
    update: ArrayLike,
    start_index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Overwrite some positions of one dimension.

    Args:
        operand: array.
        update: array of the same rank, no larger.
        start_index: integer, which may be traced; clamped so that the window lies inside.
        axis: int: the dimension.
        allow_negative_indices: False if the start never counts from the end, as for `dynamic_slice`.

    Returns:
        An array of the operand's shape and dtype.

    >>> lax.dynamic_update_slice_in_dim(fnp.zeros(4), fnp.ones(2), 1, axis=0).tolist()
    [0.0, 1.0, 1.0, 0.0]
    """
    starts, _ = _along(operand, start_index, axis)
    return dynamic_update_slice(operand, update, starts, allow_negative_indices=allow_negative_indices)


def dynamic_update_index_in_dim(
    operand: ArrayLike,
    update: ArrayLike,
    index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Overwrite one position of a dimension; the update may lack that dimension.

    Args:
        operand: array.
        update: array for the position.
        index: integer, which may be traced; clamped where it is out of bounds.
        axis: int: the dimension.
        allow_negative_indices: False if the start never counts from the end, as for `dynamic_slice`.

    Returns:
        An array of the operand's shape and dtype.

    >>> lax.dynamic_update_index_in_dim(fnp.zeros(3), 1.0, 1, axis=0).tolist()
    [0.0, 1.0, 0.0]
    """
    starts, at = _along(operand, index, axis)
    aval = aval_of(operand)
    update = host(update, aval.dtype) if isinstance(update, (int, float, complex, np.generic)) else value(update)
    if aval_of(update).ndim != aval.ndim:
        shape = aval_of(update).shape
        update = reshape(update, (*shape[:at], 1, *shape[at:]))
    return dynamic_update_slice(operand, update, starts, allow_negative_indices=allow_negative_indices)
