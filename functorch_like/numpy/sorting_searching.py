"""Sorting, searching, and indices of elements that are true."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import Tracer, aval_of
from functorch_like.errors import ArgumentError, ConcretizationError, DtypeError, ShapeError, UnsupportedArgumentError
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import axis_of
from functorch_like.numpy.creation import asarray, listed
from functorch_like.numpy.guarded_sizes import checked_size, count_true
from functorch_like.numpy.indexing import elements, getitem
from functorch_like.numpy.logic import truth
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.ordering import sort as sorting
from functorch_like.primitives.updates.true_places import true_places
from functorch_like.transforms.eager_jit import eager_jit, with_kernel

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, Arrays, DTypeLike


@with_kernel(1)
def sort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """Sort along an axis; NaN comes last.

    Args:
        a: array.
        axis: the axis; None for the flattened array.
        kind: not supported.
        order: not supported.
        stable: equal elements stay in order (they always do).
        descending: sort from the greatest to the least; NaN is then first.

    Returns:
        An array of the shape and dtype of `a`; of one dimension if axis is None.

    >>> fnp.sort(fnp.asarray([3, 1, 2])).tolist()
    [1, 2, 3]
    """
    _no_order(order, "fnp.sort")
    a, d = _axis(a, axis, "fnp.sort")
    return _sort(a, d=d, descending=bool(descending))


def _no_order(order: Any, what: str) -> None:
    if order is not None:
        message = f"{what}: order={order!r}, but arrays have no fields"
        raise promotion.error(UnsupportedArgumentError, message, "leave it out")


def _axis(a: Any, axis: int | None, what: str) -> tuple[Any, int]:
    a = a if promotion.is_array(a) else asarray(a)
    if axis is None:
        return structural.reshape(a, shape=(aval_of(a).size,)), 0
    return a, axis_of(axis, aval_of(a).ndim, what)


@eager_jit(static=("d", "descending"), checked=True)
def _sort(a: Any, d: int, descending: bool) -> Any:
    (out,) = sorting.sort(a, dimension=d, is_stable=True, num_keys=1)
    return structural.rev(out, dimensions=(d,)) if descending else out


@with_kernel(1)
def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: DTypeLike | None = None,
) -> Array:
    """Positions that sort an array along an axis; NaN comes last, and equal elements stay in order.

    Args:
        a: array.
        axis: the axis; None for the flattened array.
        kind: not supported.
        order: not supported.
        stable: equal elements stay in order (they always do).
        descending: sort from the greatest to the least; NaN is then first.
        dtype: dtype of the positions, an integer one; the default int if None.

    Returns:
        Positions in that dtype, of the shape of `a`; of one dimension if axis is None.

    Raises:
        DtypeError: for a dtype that is not an integer dtype.

    >>> fnp.argsort(fnp.asarray([3, 1, 2])).tolist()
    [1, 2, 0]
    """
    _no_order(order, "fnp.argsort")
    a, d = _axis(a, axis, "fnp.argsort")
    result = _argsort(a, d=d, descending=bool(descending))
    if dtype is None:
        return result
    result_dtype = dtypes.as_dtype(dtype)
    if not dtypes.is_integer(result_dtype):
        raise promotion.error(
            DtypeError, f"fnp.argsort gives integers, not {result_dtype.name}", "use an integer dtype"
        )
    return promotion.convert(result, result_dtype)


@eager_jit(static=("d", "descending"), checked=True)
def _argsort(a: Any, d: int, descending: bool) -> Any:
    shape = aval_of(a).shape
    places = structural.iota(dtype=dtypes.default_int(), shape=shape, dimension=d)
    if descending:  # reversed before and after, so that equal elements stay in order
        a, places = structural.rev(a, dimensions=(d,)), structural.rev(places, dimensions=(d,))
    _, order = sorting.sort(structural.stop_gradient(a), places, dimension=d, is_stable=True, num_keys=1)
    return structural.rev(order, dimensions=(d,)) if descending else order


def lexsort(keys: Arrays, axis: int = -1) -> Array:
    """Positions that sort by several keys, of which the last has priority.

    Args:
        keys: sequence of arrays of one shape, or an array of them; the order of numbers is 0.
        axis: int: the axis.

    Returns:
        An array of integers, of the shape of one key.

    Raises:
        ArgumentError: for no keys.

    >>> fnp.lexsort((fnp.asarray([1, 0]), fnp.asarray([5, 5]))).tolist()
    [1, 0]
    """
    arrays = tuple(asarray(k) for k in keys)
    if not arrays:
        raise promotion.error(ArgumentError, "fnp.lexsort of no keys", "give at least one array")
    return _lexsort(arrays, axis=axis)


@eager_jit(static=("axis",))
def _lexsort(keys: Any, axis: int) -> Any:
    if not aval_of(keys[0]).shape and axis in (0, -1):
        return structural.full((), 0, dtypes.default_int())
    d = axis_of(axis, aval_of(keys[0]).ndim, "fnp.lexsort")
    places = structural.iota(dtype=dtypes.default_int(), shape=aval_of(keys[0]).shape, dimension=d)
    return sorting.sort(*keys[::-1], places, dimension=d, is_stable=True, num_keys=len(keys))[-1]


#: JAX's names for methods of search.
METHODS = (None, "scan", "scan_unrolled", "sort", "compare_all")


@with_kernel(2)
def searchsorted(
    a: ArrayLike, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None, *, method: str | None = None
) -> Array:
    """Find the positions at which values go into a sorted array so that it stays sorted.

    Args:
        a: one-dimensional and sorted.
        v: values.
        side: "left" (before equal elements) or "right" (after them).
        sorter: positions that sort `a`.
        method: accepted for compatibility with JAX ("scan", "scan_unrolled", "sort" or "compare_all"); the
            search is always a bisection.

    Returns:
        int32 positions from 0 to the size of `a`, of the shape of v.

    Raises:
        ArgumentError: for another side or method.
        ShapeError: for an array of another number of dimensions.

    >>> fnp.searchsorted(fnp.asarray([1, 3, 5]), fnp.asarray([3, 4])).tolist()
    [1, 2]
    """
    if side not in ("left", "right"):
        raise promotion.error(ArgumentError, f"fnp.searchsorted: side={side!r} is unknown", "use 'left' or 'right'")
    if method not in METHODS:
        raise promotion.error(ArgumentError, f"fnp.searchsorted: method={method!r} is unknown", "leave method out")
    a = a if promotion.is_array(a) else asarray(a)
    if aval_of(a).ndim != 1:
        raise promotion.error(
            ShapeError, f"fnp.searchsorted in {aval_of(a)!r}", "give one dimension, and use vmap for more"
        )
    if sorter is not None:
        a = getitem(a, sorter)
    return _searchsorted(*promotion.numbers(*promotion.comparable(a, listed(v))), side=side)


def _precedes(is_complex: bool, side: str) -> Any:
    """Return the comparison that is True where an element precedes a value."""
    if not is_complex:
        return elementwise.lt if side == "left" else elementwise.le
    from functorch_like.numpy.complex_order import less  # rarely used

    return less if side == "left" else lambda element, value: elementwise.not_(less(value, element))


@eager_jit(static=("side",), ints=True)
def _searchsorted(a: Any, v: Any, side: str) -> Any:
    """Search by bisection for all values at once: find each bit of the positions, highest first, by one gather.

    It is a loop, since XLA fuses unrolled steps and then computes each position again for each use.
    """
    a, v = promotion.promote(structural.stop_gradient(a), structural.stop_gradient(v), notify=False)
    n, shape = aval_of(a).size, aval_of(v).shape
    index = dtypes.narrow_int() if n < 2**31 else dtypes.int64
    bits = n.bit_length()
    nan = elementwise.ne(v, v) if dtypes.is_float(aval_of(v).dtype) else None
    precedes = _precedes(aval_of(v).dtype.kind == "c", side)

    def step(i: Any, found: Any) -> Any:
        left = elementwise.sub(np.asarray(bits - 1, index), promotion.convert(i, index))
        bit = elementwise.shift_left(np.asarray(1, index), left)
        reach = elementwise.add(found, structural.broadcast_in_dim(bit, shape=shape, broadcast_dimensions=()))
        element = elements(a, elementwise.sub(reach, structural.full(shape, 1, index)))
        before = precedes(element, v)
        if nan is not None:  # NaN is greater than all numbers, and equal to itself
            number = elementwise.eq(element, element)
            before = elementwise.select_n(
                nan, before, number if side == "left" else structural.full(shape, True, dtypes.bool_)
            )
        return elementwise.select_n(
            elementwise.and_(elementwise.le(reach, structural.full(shape, n, index)), before), found, reach
        )

    from functorch_like.lax.counted import fori_loop  # `lax` is imported only where it is needed

    return fori_loop(0, bits, step, structural.full(shape, 0, index)) if n else structural.full(shape, 0, index)


# ------------------------------------------------------------------------------------------------- true elements
def nonzero(a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> tuple[Array, ...]:
    """Indices of the elements that are not zero, one array for each dimension.

    Args:
        a: array.
        size: the number of results; required for traced values.
        fill_value: index that fills up to `size`, 0 by default; or one for each dimension. A float makes floats of the
            indices. Traced numbers are taken, too.

    Returns:
        A tuple of int32 arrays of one length, one for each dimension.

    Raises:
        ConcretizationError: for a traced array without `size`.

    >>> [i.tolist() for i in fnp.nonzero(fnp.asarray([0, 5, 7]))]
    [[1, 2]]
    """
    a = a if promotion.is_array(a) else asarray(a)
    if aval_of(a).ndim == 0:
        raise promotion.error(
            ShapeError, f"fnp.nonzero of {aval_of(a)!r}, which has no dimensions", "use fnp.atleast_1d first"
        )
    concrete = a.concrete() if isinstance(a, Tracer) else a
    if size is None and concrete is None:
        size = count_true(truth(a))
    if size is None:
        if concrete is None:
            raise promotion.error(
                ConcretizationError,
                f"fnp.nonzero of a traced {aval_of(a)!r}: the number of indices is not known",
                "pass size=, or use fnp.where(mask, x, y)",
            )
        return tuple(asarray(i.astype(dtypes.default_int())) for i in np.nonzero(np.asarray(concrete)))
    traced = any(isinstance(v, Tracer) for v in (fill_value if isinstance(fill_value, (tuple, list)) else [fill_value]))
    fills = [0] if fill_value is None else _scalars(fill_value) if traced else _numbers(fill_value)
    n = aval_of(a).ndim
    if len(fills) not in (1, n):
        raise promotion.error(
            ArgumentError,
            f"fnp.nonzero of {aval_of(a)!r}: fill_value has {len(fills)} numbers",
            f"give 1, or one for each of {n} axes",
        )
    if traced:
        return tuple(_nonzero(a, fills, size=checked_size(size), fills=()))
    if odd := [f for f in fills if not isinstance(f, (*promotion.NUMBERS, np.generic))]:
        raise promotion.error(ArgumentError, f"fnp.nonzero: fill_value={odd[0]!r:.60} is not a number", "give a number")
    # NaNs are one object, and numbers stand beside their types, because equal fills share a kernel.
    typed = tuple((type(f), math.nan if f != f else f) for f in fills)
    return tuple(_nonzero(a, [], size=checked_size(size), fills=typed))


def _scalars(fill_value: Any) -> list[Any]:
    flat = asarray(fill_value).ravel()
    return [flat[i] for i in range(aval_of(flat).size)]


def _numbers(fill_value: Any) -> list[Any]:
    if isinstance(fill_value, (tuple, list)):
        return [np.asarray(f).item() for f in fill_value]
    return np.asarray(fill_value).reshape(-1).tolist()


@eager_jit(static=("size", "fills"))
def _nonzero(a: Any, traced: list[Any], size: int, fills: tuple[tuple[type, Any], ...]) -> list[Any]:
    shape, index = aval_of(a).shape, dtypes.default_int()
    flat = structural.reshape(truth(a), shape=(aval_of(a).size,))
    places = true_places(flat, size=size, index_dtype=index)
    valid = elementwise.ge(places, structural.full_like(places, 0))
    out, rest = [], places
    for n in reversed(shape[1:]):
        out.append(elementwise.rem(rest, structural.full_like(rest, max(n, 1))))
        rest = elementwise.div(rest, structural.full_like(rest, max(n, 1)))
    out.append(rest)
    rests = traced or [f for _, f in fills]
    rests = rests * len(shape) if len(rests) == 1 else rests
    pairs = [promotion.promote(o, f) for o, f in zip(reversed(out), rests, strict=True)]
    return [elementwise.select_n(valid, promotion.broadcast(f, (size,)), o) for o, f in pairs]


def flatnonzero(a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """Indices of the elements of the flattened array that are not zero.

    Args:
        a: array.
        size: the number of results; required for traced values.
        fill_value: value that fills up to `size`; 0 if None.

    Returns:
        A one-dimensional array of integers.

    >>> fnp.flatnonzero(fnp.asarray([[0, 5], [7, 0]])).tolist()
    [1, 2]
    """
    a = a if promotion.is_array(a) else asarray(a)
    return nonzero(structural.reshape(a, shape=(aval_of(a).size,)), size=size, fill_value=fill_value)[0]


def argwhere(a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """Indices of the elements that are not zero, as rows.

    Args:
        a: array.
        size: the number of results; required for traced values.
        fill_value: value that fills up to `size`; 0 if None.

    Returns:
        An array of integers, of shape (count, ndim); of a number, (1, 0) or, if it is 0, (0, 0).

    >>> fnp.argwhere(fnp.asarray([[0, 5], [7, 0]])).tolist()
    [[0, 1], [1, 0]]
    """
    a = a if promotion.is_array(a) else asarray(a)
    if not aval_of(a).ndim:
        return argwhere(structural.reshape(a, shape=(1,)), size=size, fill_value=fill_value)[:, :0]
    indices = nonzero(a, size=size, fill_value=fill_value)
    return structural.concatenate(*[structural.reshape(i, shape=(*aval_of(i).shape, 1)) for i in indices], dimension=1)
