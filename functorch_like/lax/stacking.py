"""stack, unstack, broadcasting by NumPy's rules, and index_take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import aval_of, is_value
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.lax.indexing import gather
from functorch_like.lax.operands import axis_of, error, ints, value
from functorch_like.lax.shapes import broadcast_in_dim, concatenate, expand_dims, squeeze
from functorch_like.lax.slicing import index_in_dim
from functorch_like.primitives import structural
from functorch_like.primitives.indexing.dimension_numbers import GatherDimensionNumbers

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, Axis, Shape


def stack(operands: Sequence[ArrayLike], axis: int = 0) -> Array:
    """Arrays joined along a new dimension.

    Args:
        operands: arrays of one shape and dtype.
        axis: position of the new dimension in the result.

    Returns:
        An array with one more dimension, in the operands' dtype.

    Raises:
        ShapeError: where shapes differ, or there is nothing to join.
        DtypeError: where dtypes differ.

    >>> lax.stack([fnp.zeros(2), fnp.ones(2)], axis=1).tolist()
    [[0.0, 1.0], [0.0, 1.0]]
    """
    if not operands:
        raise error(ShapeError, "lax.stack got no arrays", "give at least one")
    at = axis_of(axis, aval_of(operands[0]).ndim + 1)
    return concatenate([expand_dims(x, (at,)) for x in operands], at)


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """The parts of an array along a dimension, without that dimension.

    Args:
        x: array.
        axis: the dimension.

    Returns:
        A tuple of arrays without the dimension.

    Raises:
        ShapeError: where there is no such dimension.

    >>> [row.tolist() for row in lax.unstack(fnp.asarray([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    shape = aval_of(x).shape
    at = axis_of(axis, len(shape))
    return tuple(index_in_dim(x, k, at, keepdims=False) for k in range(shape[at]))


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that arrays of these shapes broadcast to, by NumPy's rules.

    Args:
        shapes: tuples of ints.

    Returns:
        A tuple of ints.

    Raises:
        ShapeError: where they do not broadcast.

    >>> lax.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    all_sizes = [ints(shape, "shapes") for shape in shapes]
    try:
        return np.broadcast_shapes(*all_sizes)
    except ValueError:
        raise error(
            ShapeError, f"shapes {', '.join(map(str, all_sizes))} do not broadcast", "sizes must be equal, or 1"
        ) from None


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """Add dimensions of size 1 in front of an array, up to a rank.

    Args:
        x: array.
        rank: int, at least the rank of `x`.

    Returns:
        An array of that rank, new dimensions of size 1 in front.

    Raises:
        ShapeError: where it has more dimensions.

    >>> lax.broadcast_to_rank(fnp.ones(3), 3).shape
    (1, 1, 3)
    """
    ndim = aval_of(x).ndim
    if rank < ndim:
        raise error(ShapeError, f"{aval_of(x)!r} has more than {rank} dimensions", f"use a rank of {ndim} or more")
    return expand_dims(x, tuple(range(rank - ndim))) if rank > ndim else value(x)


def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Array:
    """Broadcast an array to the shape of another, by NumPy's rules.

    Args:
        arr: array.
        like_arr: array whose shape is taken.

    Returns:
        An array of the shape of `like_arr`, in the dtype of `arr`.

    Raises:
        ShapeError: where it does not broadcast.

    >>> lax.broadcast_like(fnp.arange(2), fnp.zeros((2, 2))).tolist()
    [[0, 1], [0, 1]]
    """
    have, shape = aval_of(arr).shape, aval_of(like_arr).shape
    if broadcast_shapes(have, shape) != shape:
        raise error(ShapeError, f"{aval_of(arr)!r} does not broadcast to {shape}", "sizes must be equal, or 1")
    if have == shape:
        return value(arr)
    dims = range(len(shape) - len(have), len(shape))
    kept = [k for k, n in enumerate(have) if n != 1 or shape[dims[k]] == 1]
    narrow = squeeze(arr, tuple(k for k in range(len(have)) if k not in kept))
    return broadcast_in_dim(narrow, shape, tuple(dims[k] for k in kept))


def index_take(src: ArrayLike, idxs: Sequence[ArrayLike], axes: Axis) -> Array:
    """Take positions along some dimensions: `src[idxs[0], idxs[1], ...]` for the dimensions `axes`.

    Args:
        src: array.
        idxs: vectors of integers of one length n, one for each of `axes`. Elements out of bounds are filled, with NaN
            where the dtype has it.
        axes: the dimensions that are indexed.

    Returns:
        An array of shape (n, *other dimensions).

    Raises:
        ArgumentError: where there is not one vector of positions for each dimension.

    >>> lax.index_take(fnp.arange(6).reshape(2, 3), [fnp.asarray([0, 1]), fnp.asarray([2, 0])], (0, 1)).tolist()
    [2, 3]
    """
    shape = aval_of(src).shape
    at = tuple(axis_of(a, len(shape), "axes") for a in ints(axes, "axes"))
    if len(idxs) != len(at) or len({aval_of(i).shape for i in idxs}) != 1 or aval_of(idxs[0]).ndim != 1:
        raise error(
            ArgumentError,
            f"lax.index_take got {len(idxs)} indices for {len(at)} axes: {', '.join(repr(aval_of(i)) for i in idxs)}",
            "give for each dimension a vector of positions, all of one length",
        )
    order = tuple(sorted(range(len(at)), key=at.__getitem__))
    at, vectors = tuple(at[k] for k in order), stack([idxs[k] for k in order], axis=1)
    others = len(shape) - len(at)
    numbers = GatherDimensionNumbers(tuple(range(1, others + 1)), at, at)
    return gather(src, vectors, numbers, tuple(1 if d in at else n for d, n in enumerate(shape)))


def shape_as_value(shape: Shape) -> Array:
    """A shape as an array of integers.

    Args:
        shape: tuple of ints.

    Returns:
        A vector of integers.

    >>> lax.shape_as_value((2, 3)).tolist()
    [2, 3]
    """
    return structural.copy(np.asarray(ints(shape, "shape"), dtypes.default_int()))


def dtype(x: ArrayLike) -> np.dtype[Any]:
    """The dtype of an array or number, or of a dtype, name or Python type.

    Args:
        x: array, number, dtype, name of a dtype, or Python type.

    Returns:
        A dtype.

    >>> lax.dtype(1).name, lax.dtype(float).name, lax.dtype(fnp.ones(2, "bfloat16")).name
    ('int32', 'float32', 'bfloat16')
    """
    return aval_of(x).dtype if is_value(x) else dtypes.as_dtype(x)
