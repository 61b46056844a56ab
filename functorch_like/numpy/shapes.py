"""Shapes: reshaping, reordering and repeating dimensions. All of it is free of arithmetic."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like.avals import ShapeDtypeStruct
from functorch_like.core import ArrayImpl, Tracer, array_of, aval_of
from functorch_like.errors import ArgumentError, ConcretizationError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import axes_of, axis_of, ints_of
from functorch_like.numpy.creation import asarray, listed
from functorch_like.primitives import structural
from functorch_like.transforms.eager_jit import eager_jit, with_kernel

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, Axis, NestedArrayLike, Shape


def arr(x: Any, what: str) -> Any:
    """Return an array argument; raise for lists, as in JAX, since each of their elements would be converted."""
    if type(x) is ArrayImpl or isinstance(x, (Tracer, np.ndarray)):
        return x
    if isinstance(x, (list, tuple)):
        raise promotion.error(
            ArgumentError, f"{what} takes an array, got a {type(x).__name__}", "convert it with fnp.asarray first"
        )
    return asarray(x)


# ------------------------------------------------------------------------------------------------------------- reshape
def shape(a: NestedArrayLike | ShapeDtypeStruct) -> tuple[int, ...]:
    """The shape of an array.

    Args:
        a: array-like, or a ShapeDtypeStruct.

    Returns:
        A tuple of ints.

    >>> fnp.shape(fnp.ones((2, 3)))
    (2, 3)
    """
    known: Any = a
    if isinstance(known, ShapeDtypeStruct) or hasattr(known, "is_reference"):
        return known.shape
    return aval_of(listed(a)).shape


def ndim(a: NestedArrayLike | ShapeDtypeStruct) -> int:
    """The number of dimensions.

    Args:
        a: array-like, or a ShapeDtypeStruct.

    Returns:
        An int.

    >>> fnp.ndim(fnp.ones((2, 3)))
    2
    """
    return len(shape(a))


def size(a: NestedArrayLike | ShapeDtypeStruct, axis: Axis = None) -> int:
    """The number of elements, or the size along an axis; for several axes, the product of their sizes.

    Args:
        a: array-like, or a ShapeDtypeStruct.
        axis: int, or tuple of ints; None for all.

    Returns:
        An int.

    >>> fnp.size(fnp.ones((2, 3))), fnp.size(fnp.ones((2, 3)), 1)
    (6, 3)
    """
    sizes = shape(a)
    return math.prod(sizes if axis is None else (sizes[d] for d in axes_of(axis, len(sizes), "fnp.size")))


#: Shapes that fit an aval.
_KNOWN: set[Any] = set()


def new_shape(requested: Any, aval: Any) -> tuple[int, ...]:
    """Return the shape of a reshape, with a size in place of -1."""
    try:
        if type(requested) is tuple and all(type(n) is int for n in requested) and (requested, aval) in _KNOWN:
            return requested
        sizes = ints_of(requested)
    except TypeError:
        traced = isinstance(requested, Tracer) or any(isinstance(n, Tracer) for n in requested)
        raise promotion.error(
            ConcretizationError if traced else ShapeError,
            f"reshape of {aval!r} to {requested!r}",
            "sizes are fixed when a function is traced: take them from x.shape, or use static_argnums (static_argnames)"
            if traced
            else "give ints",
        ) from None
    if -1 in sizes:
        at = sizes.index(-1)
        rest = math.prod(sizes[:at] + sizes[at + 1 :])
        if sizes.count(-1) > 1 or rest <= 0 or aval.size % rest:
            raise promotion.error(
                ShapeError,
                f"{aval!r} has {aval.size} elements, which cannot be reshaped to {tuple(sizes)}",
                "use -1 once, and sizes whose product divides the number of elements",
            )
        sizes[at] = aval.size // rest
    if math.prod(sizes) != aval.size or any(n < 0 for n in sizes):
        raise promotion.error(
            ShapeError,
            f"{aval!r} has {aval.size} elements, which cannot be reshaped to {tuple(sizes)}",
            "the sizes must have the same product; -1 stands for whatever is left",
        )
    if len(_KNOWN) > 4096:
        _KNOWN.clear()
    _KNOWN.add((tuple(sizes), aval))
    return tuple(sizes)


def reshape(a: ArrayLike, shape: Shape, order: str = "C", *, copy: bool | None = None) -> Array:
    """Give an array another shape, with the same elements in order.

    Args:
        a: array.
        shape: int or sequence of ints; one may be -1 and follows from the others.
        order: "C" (the last index runs fastest) or "F" (the first does).
        copy: True for a copy, which matters only where one of the two arrays is donated.

    Returns:
        An array of that shape, and the dtype of the operand.

    Raises:
        ShapeError: where the number of elements differs.

    >>> fnp.reshape(fnp.arange(6), (2, -1)).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    if copy:
        return structural.copy(reshape(a, shape, order))
    if type(a) is ArrayImpl and order == "C":
        return _reshape_kernel(a, new_shape(shape, a.aval))  # pyright: ignore[reportAttributeAccessIssue]
    x = arr(a, "fnp.reshape")
    aval = aval_of(x)
    sizes = new_shape(shape, aval)
    if order == "F":
        turned = transpose(reshape(transpose(x), sizes[::-1]))
        return turned
    if order not in ("C", "A", "K"):
        raise promotion.error(ArgumentError, f"order={order!r}", "use 'C' or 'F'")
    return x if sizes == aval.shape and not isinstance(x, np.ndarray) else structural.reshape(x, shape=sizes)


@eager_jit(static=("shape",))
def _reshape_kernel(a: Any, shape: tuple[int, ...]) -> Any:
    return a if shape == aval_of(a).shape else structural.reshape(a, shape=shape)


@with_kernel(1)
def ravel(a: ArrayLike, order: str = "C") -> Array:
    """Flatten an array to one dimension.

    Args:
        a: array or number.
        order: "C": the last dimension runs fastest; "F": the first one.

    Returns:
        A one-dimensional array of the same dtype.

    >>> fnp.ravel(fnp.ones((2, 2))).shape
    (4,)
    """
    return reshape(a, (-1,) if aval_of(arr(a, "fnp.ravel")).size else (0,), order)


@with_kernel(1)
def expand_dims(a: ArrayLike, axis: Axis) -> Array:
    """Insert dimensions of size 1.

    Args:
        a: array.
        axis: int or tuple of ints: their positions in the result.

    Returns:
        An array with the elements and dtype of `a`.

    Raises:
        ShapeError: for positions outside of the result.

    >>> fnp.expand_dims(fnp.ones(3), 0).shape
    (1, 3)
    """
    a = arr(a, "fnp.expand_dims")
    many = axis if isinstance(axis, (list, tuple, range)) else (axis,)
    total = aval_of(a).ndim + len(many)
    new = axes_of(tuple(many), total, "fnp.expand_dims")
    inner = iter(aval_of(a).shape)
    return structural.reshape(a, shape=tuple(1 if d in new else next(inner) for d in range(total)))


@with_kernel(1)
def squeeze(a: ArrayLike, axis: Axis = None) -> Array:
    """Remove dimensions of size 1.

    Args:
        a: array.
        axis: int or tuple of ints; all that have size 1 if None.

    Returns:
        An array with the elements and dtype of `a`.

    Raises:
        ShapeError: where a named dimension has another size.

    >>> fnp.squeeze(fnp.ones((1, 3, 1))).shape
    (3,)
    """
    a = arr(a, "fnp.squeeze")
    sizes = aval_of(a).shape
    gone = [d for d, n in enumerate(sizes) if n == 1] if axis is None else axes_of(axis, len(sizes), "fnp.squeeze")
    for d in gone:
        if sizes[d] != 1:
            raise promotion.error(
                ShapeError, f"cannot squeeze axis {d} of {aval_of(a)!r}, its size is {sizes[d]}", "name axes of size 1"
            )
    return structural.reshape(a, shape=tuple(n for d, n in enumerate(sizes) if d not in gone))


# --------------------------------------------------------------------------------------------------------------- order
@with_kernel(1)
def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """Reorder the dimensions; by default, reverse them.

    Args:
        a: array.
        axes: a permutation of the axes.

    Returns:
        An array with the elements and dtype of `a`.

    Raises:
        ShapeError: where `axes` is not a permutation.

    >>> fnp.transpose(fnp.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    x = arr(a, "fnp.transpose")
    n = aval_of(x).ndim
    if axes is None:
        order = tuple(range(n - 1, -1, -1))
    else:
        order = tuple([axis_of(d, n, "fnp.transpose") for d in axes])
        if len(set(order)) != n:
            raise promotion.error(
                ShapeError,
                f"{tuple(axes)} is not a permutation of the {n} axes of {aval_of(x)!r}",
                f"name each of 0..{n - 1} once",
            )
    return x if n < 2 and not isinstance(x, np.ndarray) else structural.transpose(x, permutation=order)


permute_dims = transpose


def matrix_transpose(x: ArrayLike, /) -> Array:
    """Exchange the last two dimensions.

    Args:
        x: array of shape (..., m, n).

    Returns:
        An array of shape (..., n, m).

    Raises:
        ShapeError: for fewer than two dimensions.

    >>> fnp.matrix_transpose(fnp.ones((5, 2, 3))).shape
    (5, 3, 2)
    """
    if ndim(x) < 2:
        raise promotion.error(ShapeError, f"{aval_of(x)!r} is not a matrix", "give an array of two dimensions or more")
    return swapaxes(x, -1, -2)


@with_kernel(1)
def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """Exchange two dimensions.

    Args:
        a: array.
        axis1: int.
        axis2: int.

    Returns:
        An array with the elements and dtype of `a`.

    >>> fnp.swapaxes(fnp.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    x = arr(a, "fnp.swapaxes")
    n = aval_of(x).ndim
    i, j = (axis_of(d, n, "fnp.swapaxes") for d in (axis1, axis2))
    order = list(range(n))
    order[i], order[j] = j, i
    return array_of(x) if i == j else structural.transpose(x, permutation=tuple(order))


@with_kernel(1)
def moveaxis(a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """Move dimensions to other positions; the others stay in order.

    Args:
        a: array.
        source: int or sequence of ints.
        destination: their new positions, as many.

    Returns:
        An array with the elements and dtype of `a`.

    Raises:
        ShapeError: where they differ in number, or name an axis twice.

    >>> fnp.moveaxis(fnp.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = arr(a, "fnp.moveaxis")
    n = aval_of(x).ndim
    lists = [list(v) if isinstance(v, (list, tuple, range)) else [v] for v in (source, destination)]
    src, dst = ([axis_of(d, n, "fnp.moveaxis") for d in v] for v in lists)
    if len(src) != len(dst) or len(set(src)) != len(src) or len(set(dst)) != len(dst):
        raise promotion.error(
            ShapeError,
            f"moveaxis of {aval_of(x)!r} from {source} to {destination}",
            "give equally many different axes on both sides",
        )
    order = [d for d in range(n) if d not in src]
    for at, d in sorted(zip(dst, src, strict=True)):
        order.insert(at, d)
    return array_of(x) if order == list(range(n)) else structural.transpose(x, permutation=tuple(order))


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """Move one axis back until it lies before another; `moveaxis` is clearer.

    Args:
        a: array.
        axis: int: the axis to move.
        start: int: the axis before which it is placed.

    Returns:
        An array with the elements and dtype of `a`.

    >>> fnp.rollaxis(fnp.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    n = ndim(a)
    axis = axis_of(axis, n, "fnp.rollaxis")
    start = start + n if start < 0 else start
    return moveaxis(a, axis, start - 1 if axis < start else start)


@with_kernel(1)
def flip(m: ArrayLike, axis: Axis = None) -> Array:
    """Reverse the order of elements along axes, by default along all.

    Args:
        m: array.
        axis: int, tuple of ints, or None for all axes.

    Returns:
        An array of the shape and dtype of m.

    >>> fnp.flip(fnp.arange(3)).tolist()
    [2, 1, 0]
    """
    m = arr(m, "fnp.flip")
    return structural.rev(m, dimensions=axes_of(axis, aval_of(m).ndim, "fnp.flip"))


def fliplr(m: ArrayLike) -> Array:
    """Reverse the order of columns.

    Args:
        m: array of two or more dimensions.

    Returns:
        An array of the shape and dtype of m.

    >>> fnp.fliplr(fnp.asarray([[1, 2]])).tolist()
    [[2, 1]]
    """
    return flip(m, 1)


def flipud(m: ArrayLike) -> Array:
    """Reverse the order of rows.

    Args:
        m: array of one or more dimensions.

    Returns:
        An array of the shape and dtype of m.

    >>> fnp.flipud(fnp.asarray([[1], [2]])).tolist()
    [[2], [1]]
    """
    return flip(m, 0)


@with_kernel(1)
def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Rotate by k quarter turns, from the first of the axes towards the second.

    Args:
        m: array of two or more dimensions.
        k: int: number of quarter turns.
        axes: two ints: the plane of the rotation.

    Returns:
        An array of the dtype of m, whose two axes are exchanged for odd k.

    Raises:
        ShapeError: for other than two different axes.

    >>> fnp.rot90(fnp.asarray([[1, 2], [3, 4]])).tolist()
    [[2, 4], [1, 3]]
    """
    i, j = (axis_of(d, ndim(m), "fnp.rot90") for d in axes)
    if i == j:
        raise promotion.error(ShapeError, f"fnp.rot90 takes two different axes, got {axes}", "name each axis once")
    quarter = operator.index(k) % 4
    if quarter == 0:
        return asarray(m)
    if quarter == 2:
        return flip(m, (i, j))
    return swapaxes(flip(m, j), i, j) if quarter == 1 else flip(swapaxes(m, i, j), j)


# -------------------------------------------------------------------------------------------------------- broadcasting
def broadcast_to(array: ArrayLike, shape: Shape) -> Array:
    """Broadcast an array to a shape.

    Args:
        array: array or number.
        shape: int or sequence of ints.

    Returns:
        An array of that shape, and the dtype of the operand.

    Raises:
        ShapeError: where the array does not broadcast to the shape.

    >>> fnp.broadcast_to(fnp.arange(2), (2, 2)).tolist()
    [[0, 1], [0, 1]]
    """
    a = arr(array, "fnp.broadcast_to")
    target = tuple(ints_of(shape))
    sizes = aval_of(a).shape
    if len(sizes) > len(target) or any(n not in (1, m) for n, m in zip(sizes[::-1], target[::-1], strict=False)):
        raise promotion.error(
            ShapeError,
            f"{aval_of(a)!r} does not broadcast to {target}",
            "sizes must be equal or 1, counted from the last dimension",
        )
    return array_of(promotion.broadcast(a, target))


def broadcast_arrays(*args: ArrayLike) -> list[Array]:
    """Broadcast arrays to their common shape; dtypes stay.

    Args:
        args: arrays or numbers.

    Returns:
        A list of arrays.

    Raises:
        ShapeError: where they do not broadcast together.

    >>> [a.shape for a in fnp.broadcast_arrays(fnp.ones((2, 1)), fnp.ones(3))]
    [(2, 3), (2, 3)]
    """
    arrays = [arr(a, "fnp.broadcast_arrays") for a in args]
    target = promotion.broadcast_shapes(*(aval_of(a).shape for a in arrays))
    return [array_of(promotion.broadcast(a, target)) for a in arrays]
