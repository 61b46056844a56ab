"""Functions that broadcast, reshape, join, pad and convert arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes, tree
from functorch_like.calling.type_variables import T
from functorch_like.core import ArrayImpl, Tracer, array_of, aval_of, is_value
from functorch_like.errors import ShapeError
from functorch_like.lax.creation import convert
from functorch_like.lax.operands import axes_of, axis_of, error, host, ints, match, one_int, same_rank, value
from functorch_like.primitives import elementwise, structural

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, Axis, DTypeLike, Shape


# ----------------------------------------------------------------------------------------------------- broadcasting
def broadcast(operand: ArrayLike, sizes: Sequence[int]) -> Array:
    """An array repeated along new leading dimensions.

    Args:
        operand: array.
        sizes: ints: sizes of the new dimensions.

    Returns:
        An array with the new dimensions in front.

    >>> lax.broadcast(fnp.ones(3), (2,)).shape
    (2, 3)
    """
    operand, lead = value(operand), ints(sizes, "sizes")
    shape = aval_of(operand).shape
    dims = tuple(range(len(lead), len(lead) + len(shape)))
    return structural.broadcast_in_dim(operand, shape=lead + shape, broadcast_dimensions=dims)


def broadcast_in_dim(operand: ArrayLike, shape: Shape, broadcast_dimensions: Sequence[int]) -> Array:
    """Broadcast an array to a shape.

    Args:
        operand: array.
        shape: shape of the result.
        broadcast_dimensions: for each dimension of the operand, the dimension of the result that it becomes. Their
            sizes must be equal, or 1 in the operand.

    Returns:
        An array of that shape, in the operand's dtype.

    Raises:
        ShapeError: where the sizes or dimensions do not fit.

    >>> lax.broadcast_in_dim(fnp.ones(3), (3, 2), (0,)).shape
    (3, 2)
    """
    x, dims = value(operand), ints(broadcast_dimensions, "broadcast_dimensions")
    order = sorted(range(len(dims)), key=dims.__getitem__)
    if order != list(range(len(dims))) and len(dims) == aval_of(x).ndim:
        x, dims = transpose(x, order), tuple(sorted(dims))
    return structural.broadcast_in_dim(x, shape=ints(shape, "shape"), broadcast_dimensions=dims)


def reshape(operand: ArrayLike, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None) -> Array:
    """The same elements in another shape.

    Args:
        operand: array.
        new_sizes: the shape; its product must be the size of the operand.
        dimensions: the order in which dimensions of the operand are read; None for their own.

    Returns:
        An array of that shape, in the operand's dtype.

    Raises:
        ShapeError: where the sizes do not fit.

    >>> lax.reshape(fnp.arange(4), (2, 2), (0,)).tolist()
    [[0, 1], [2, 3]]
    """
    x, shape = value(operand), ints(new_sizes, "new_sizes")
    if dimensions is not None:
        x = transpose(x, dimensions)
    return array_of(x) if aval_of(x).shape == shape else structural.reshape(x, shape=shape)


def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Merge neighbouring dimensions into one.

    Args:
        operand: array.
        start_dimension: the first of them.
        stop_dimension: the dimension after the last of them; None for all to the end.

    Returns:
        An array with one dimension in place of the merged ones.

    Raises:
        ShapeError: where the range is not within the dimensions.

    >>> lax.collapse(fnp.ones((2, 3, 4)), 1).shape
    (2, 12)
    """
    shape = aval_of(operand).shape
    ndim = len(shape)
    start = one_int(start_dimension, "start_dimension")
    stop = ndim if stop_dimension is None else one_int(stop_dimension, "stop_dimension")
    start, stop = start + ndim * (start < 0), stop + ndim * (stop < 0)
    if not 0 <= start <= stop <= ndim:
        raise error(
            ShapeError,
            f"lax.collapse got dimensions {start_dimension} to {stop_dimension} of {aval_of(operand)!r}",
            f"stay within 0 to {ndim}",
        )
    return reshape(operand, (*shape[:start], math.prod(shape[start:stop]), *shape[stop:]))


def transpose(operand: ArrayLike, permutation: Sequence[int]) -> Array:
    """Dimensions in another order: dimension i of the result is permutation[i] of the operand.

    Args:
        operand: array.
        permutation: ints: a permutation of range(ndim).

    Returns:
        An array of the operand's elements and dtype.

    Raises:
        ShapeError: where it is not a permutation of the dimensions.

    >>> lax.transpose(fnp.ones((2, 3)), (1, 0)).shape
    (3, 2)
    """
    x, order = value(operand), ints(permutation, "permutation")
    if order == tuple(range(aval_of(x).ndim)) and not isinstance(x, np.ndarray):
        return x
    return structural.transpose(x, permutation=order)


def squeeze(array: ArrayLike, dimensions: Axis) -> Array:
    """An array without some dimensions of size 1.

    Args:
        array: array.
        dimensions: ints: dimensions of size 1 to leave out.

    Returns:
        An array of the operand's elements and dtype.

    Raises:
        ShapeError: where one of them has another size.

    >>> lax.squeeze(fnp.ones((1, 3)), (0,)).shape
    (3,)
    """
    shape = aval_of(array).shape
    gone = axes_of(dimensions, len(shape), "dimensions")
    if any(shape[d] != 1 for d in gone):
        raise error(
            ShapeError, f"dimensions {gone} of {aval_of(array)!r} are not all of size 1", "name only those that are"
        )
    return reshape(array, tuple(n for d, n in enumerate(shape) if d not in gone))


def expand_dims(array: ArrayLike, dimensions: Axis) -> Array:
    """An array with new dimensions of size 1.

    Args:
        array: array.
        dimensions: ints: positions of the new dimensions in the result.

    Returns:
        An array of the operand's elements and dtype.

    >>> lax.expand_dims(fnp.ones(3), (0, -1)).shape
    (1, 3, 1)
    """
    shape, new = aval_of(array).shape, ints(dimensions, "dimensions")
    at = axes_of(new, len(shape) + len(new), "dimensions")
    rest = iter(shape)
    return reshape(array, tuple(1 if d in at else next(rest) for d in range(len(shape) + len(new))))


# --------------------------------------------------------------------------------------------------- joining, padding
def concatenate(operands: Sequence[ArrayLike], dimension: int) -> Array:
    """Arrays joined along a dimension.

    Args:
        operands: arrays of one dtype, equal in all other sizes.
        dimension: the dimension to join along.

    Returns:
        An array of the operands' dtype.

    Raises:
        ShapeError: where other sizes differ, or there is nothing to join.
        DtypeError: where dtypes differ.

    >>> lax.concatenate([fnp.zeros(1), fnp.ones(2)], 0).tolist()
    [0.0, 1.0, 1.0]
    """
    if not operands:
        raise error(ShapeError, "lax.concatenate got no arrays", "give at least one")
    at = axis_of(dimension, aval_of(operands[0]).ndim, "dimension")
    return structural.concatenate(*map(value, operands), dimension=at)


def pad(operand: ArrayLike, padding_value: ArrayLike, padding_config: Sequence[tuple[int, int, int]]) -> Array:
    """Pad an array around and between its elements.

    Args:
        operand: array.
        padding_value: scalar.
        padding_config: (low, high, interior) for each dimension; negative low and high remove elements.

    Returns:
        An array of the operand's dtype.

    Raises:
        ShapeError: where the configuration does not fit.

    >>> lax.pad(fnp.ones(2), 0.0, [(1, 0, 1)]).tolist()
    [0.0, 1.0, 0.0, 1.0]
    """
    operand = value(operand)
    aval = aval_of(operand)
    if type(padding_value) is not ArrayImpl and not isinstance(padding_value, Tracer):
        padding_value = host(padding_value, aval.dtype)[()] if aval.weak_type else host(padding_value, aval.dtype)
    elif aval_of(padding_value).weak_type and aval_of(padding_value).dtype != aval.dtype:
        padding_value = match(padding_value, structural.full((), 0, aval.dtype))[0]
    config = tuple(ints(triple, "padding_config") for triple in padding_config)
    if any(len(triple) != 3 for triple in config):
        raise error(
            ShapeError,
            f"padding_config={config} is not a sequence of triples",
            "give (low, high, interior) for each dimension",
        )
    return structural.pad(operand, padding_value, padding_config=same_rank(config, aval.ndim, "padding_config"))


def rev(operand: ArrayLike, dimensions: Axis) -> Array:
    """Reverse the elements of an array along dimensions.

    Args:
        operand: array.
        dimensions: ints: dimensions to reverse.

    Returns:
        An array of the operand's shape and dtype.

    >>> lax.rev(fnp.arange(3), (0,)).tolist()
    [2, 1, 0]
    """
    operand = value(operand)
    return structural.rev(operand, dimensions=axes_of(dimensions, aval_of(operand).ndim, "dimensions"))


# --------------------------------------------------------------------------------------------- converting, gradients
def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """Convert an array to another dtype; complex numbers become real by their real part.

    Args:
        operand: array or number.
        new_dtype: dtype of the result.

    Returns:
        An array of the operand's shape, in the new dtype.

    >>> lax.convert_element_type(fnp.asarray([1.7]), "int32").tolist()
    [1]
    """
    return array_of(convert(value(operand), dtypes.as_dtype(new_dtype)))


def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """Reinterpret the bits of an array as another dtype; a narrower one adds a last dimension, a wider one removes it.

    Args:
        operand: array.
        new_dtype: dtype to read the bits as.

    Returns:
        An array of the new dtype; a dimension more or less where the widths differ.

    Raises:
        ShapeError: where the last dimension does not hold one wider number.
        DtypeError: for booleans and complex numbers.

    >>> hex(lax.bitcast_convert_type(1.0, "int32").item())
    '0x3f800000'
    """
    return elementwise.bitcast_convert_type(value(operand), new_dtype=dtypes.as_dtype(new_dtype))


def stop_gradient(x: T) -> T:
    """The identity, through which no derivative passes.

    Args:
        x: array, or pytree of arrays; leaves that hold no floats, such as functions, stay as they are.

    Returns:
        x, in its structure.

    >>> ft.grad(lambda x: x * lax.stop_gradient(x))(3.0).item()
    3.0
    """
    if type(x) is ArrayImpl or isinstance(x, Tracer):
        return _stopped(x)
    if is_value(x):
        return x  # pyright: ignore[reportReturnType]
    return tree.map(_stopped, x)


def _stopped(x: Any) -> Any:
    traced = type(x) is ArrayImpl or isinstance(x, Tracer)
    return structural.stop_gradient(x) if traced and dtypes.is_inexact(aval_of(x).dtype) else x
