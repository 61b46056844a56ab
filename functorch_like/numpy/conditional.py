"""Elements chosen by conditions and numbers: choose, compress, extract, piecewise, place, put."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, BoundsError, ConcretizationError, DtypeError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.at_updates import IndexUpdate
from functorch_like.numpy.axes import axis_of
from functorch_like.numpy.creation import asarray
from functorch_like.numpy.cumulative import cumsum
from functorch_like.numpy.indexing import take, take_along_axis
from functorch_like.numpy.logic import truth
from functorch_like.numpy.operands import given
from functorch_like.numpy.selection import clip, select, where
from functorch_like.numpy.shapes import ndim, ravel, reshape
from functorch_like.numpy.sorting_searching import nonzero
from functorch_like.numpy.unique import known
from functorch_like.primitives import structural

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, Arrays, NestedArrayLike


def _array(x: Any) -> Any:
    return x if promotion.is_array(x) else asarray(x)


def choose(a: ArrayLike, choices: Arrays, out: None = None, mode: str = "raise") -> Array:
    """Elements of several arrays; an array of integers has the number of the array to choose from at each position.

    Args:
        a: integers from 0 to len(choices) - 1.
        choices: sequence of arrays, or an array along whose first dimension they lie; all broadcast with `a`.
        out: not supported: arrays are immutable.
        mode: treatment of other integers: "raise" (for known values), "wrap" (modulo len(choices)) or "clip".

    Returns:
        An array of the shape that indices and choices broadcast to, in the dtype of the choices.

    Raises:
        BoundsError: in mode "raise", where a number has no choice.
        ConcretizationError: in mode "raise", where the numbers are traced.
        DtypeError: where `a` is not of integers.

    >>> fnp.choose(fnp.asarray([1, 0]), [fnp.asarray([1, 2]), fnp.asarray([10, 20])]).tolist()
    [10, 2]
    """
    promotion.no_out(out, "fnp.choose")
    a = _array(a)
    if not dtypes.is_integer(aval_of(a).dtype) and aval_of(a).dtype != dtypes.bool_:
        raise promotion.error(
            DtypeError, f"fnp.choose takes integers, got {aval_of(a)!r}", "convert with astype('int32')"
        )
    listed = [choices[i] for i in range(len(choices))] if promotion.is_array(choices) else given(*choices)
    arrays = [_array(c) for c in listed]
    n = len(arrays)
    if not n:
        raise promotion.error(ArgumentError, "fnp.choose got no choices", "give one or more")
    index = promotion.convert(a, dtypes.default_int())
    if mode == "raise":
        host = known(a)
        if host is None:
            raise promotion.error(
                ConcretizationError,
                f"fnp.choose of a traced {aval_of(a)!r} cannot raise for numbers without a choice",
                "use mode='clip' or mode='wrap'",
            )
        if host.size and not (host.min() >= 0 and host.max() < n):
            raise promotion.error(
                BoundsError, f"fnp.choose: a number is outside of 0 to {n - 1}", "use mode='clip' or 'wrap'"
            )
    elif mode == "wrap":
        index = index % n
    elif mode == "clip":
        index = clip(index, 0, n - 1)
    else:
        raise promotion.error(ArgumentError, f"fnp.choose: mode={mode!r} is unknown", "use 'raise', 'wrap' or 'clip'")
    index, *arrays = [
        promotion.broadcast(v, promotion.broadcast_shapes(aval_of(a).shape, *(aval_of(c).shape for c in arrays)))
        for v in (index, *promotion.promote(*arrays))
    ]
    stacked = structural.concatenate(*[reshape(c, (1, *aval_of(c).shape)) for c in arrays], dimension=0)
    chosen = take_along_axis(stacked, reshape(index, (1, *aval_of(index).shape)), axis=0, mode="clip")
    return reshape(chosen, aval_of(index).shape)


def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
    out: None = None,
) -> Array:
    """Slices along an axis where a condition is true.

    Args:
        condition: one-dimensional; it may be shorter than the axis.
        a: array.
        axis: the axis; None for elements of the flattened array.
        size: the number of results; required for traced values.
        fill_value: value that fills up to `size`.
        out: not supported: arrays are immutable.

    Returns:
        An array with as many slices along the axis as the condition has true elements, or `size` of them.

    Raises:
        ConcretizationError: for a traced condition without `size`.
        ShapeError: for a condition of another number of dimensions, or longer than the axis.

    >>> fnp.compress(fnp.asarray([True, False, True]), fnp.asarray([1, 2, 3])).tolist()
    [1, 3]
    """
    promotion.no_out(out, "fnp.compress")
    condition, a = _array(condition), _array(a)
    a, axis = (ravel(a), 0) if axis is None else (a, axis_of(axis, ndim(a), "fnp.compress"))
    n = aval_of(a).shape[axis]
    if ndim(condition) != 1 or aval_of(condition).size > n:
        raise promotion.error(
            ShapeError,
            f"fnp.compress of {aval_of(a)!r} by {aval_of(condition)!r} along axis {axis}",
            "give a condition in one dimension, no longer than the axis; fnp.extract takes any shape",
        )
    (places,) = nonzero(condition, size=size, fill_value=n)
    if not n:
        shape = aval_of(a).shape
        return structural.full(
            (*shape[:axis], *aval_of(places).shape, *shape[axis + 1 :]), fill_value, aval_of(a).dtype
        )
    return take(a, places, axis, mode="fill", fill_value=fill_value)


def extract(condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0) -> Array:
    """Elements of the flattened array where a condition is true; `size` and `fill_value` as for `compress`.

    Args:
        condition: boolean array, or numbers that are not 0.
        arr: array; elements beyond the end of the other one count as false.
        size: the number of results; required for traced values.
        fill_value: value that fills up to `size`.

    Returns:
        A one-dimensional array.

    >>> fnp.extract(fnp.asarray([[True, False], [False, True]]), fnp.asarray([[1, 2], [3, 4]])).tolist()
    [1, 4]
    """
    flat, values = ravel(_array(condition)), ravel(_array(arr))
    return compress(flat[: aval_of(values).size], values, size=size, fill_value=fill_value)


def piecewise(
    x: ArrayLike,
    condlist: Arrays,
    funclist: Sequence[ArrayLike | Callable[..., ArrayLike]],
    *args: object,
    **kw: object,
) -> Array:
    """A function defined by cases; where several conditions are true, the last of them counts.

    Args:
        x: array.
        condlist: boolean arrays that broadcast with x, in a sequence or along a first dimension; booleans for all of x,
            in a vector that does not broadcast with it.
        funclist: a function or number for each condition, and perhaps one more for where none is true (by default 0).
            Every function is called with all of x: its results elsewhere are dropped, but spoil derivatives where
            its derivative is not finite.
        args: further arguments of the functions, after x.
        kw: named arguments of the functions.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        ArgumentError: where the numbers of conditions and functions do not match.

    >>> fnp.piecewise(fnp.asarray([-2.0, 3.0]), [fnp.asarray([True, False])], [lambda x: -x, 7.0]).tolist()
    [2.0, 7.0]
    """
    x = _array(x)
    if isinstance(condlist, (list, tuple)) and condlist and not isinstance(condlist[0], (list, tuple)):
        conditions = list(condlist) if ndim(condlist[0]) or not ndim(x) else [condlist]
    else:
        # A vector is one condition if it broadcasts with x, else one for each function.
        alone = promotion.is_array(condlist) and ndim(condlist) <= 1 and ndim(x)
        alone = alone and aval_of(condlist).shape in ((), (1,), aval_of(x).shape[-1:])
        conditions = [condlist] if alone else list(condlist)
    conditions = [truth(_array(c)) for c in conditions]
    n = len(conditions)
    if len(funclist) not in (n, n + 1) or not n:
        raise promotion.error(
            ArgumentError,
            f"fnp.piecewise got {n} conditions and {len(funclist)} functions",
            "give a function for each condition, and at most one more",
        )

    def value(f: Any) -> Any:
        out = f(x, *args, **kw) if callable(f) else f
        out = out if type(out) in promotion.NUMBERS else _array(out)
        return promotion.broadcast(promotion.convert(out, aval_of(x).dtype), aval_of(x).shape)

    default = value(funclist[n]) if len(funclist) > n else structural.full_like(x, 0)
    return select(conditions[::-1], [value(f) for f in funclist[:n]][::-1], default)


# ------------------------------------------------------------------------------------------------ NumPy's assignments
def _refuse(inplace: bool, name: str) -> None:
    if inplace:
        raise promotion.error(
            ArgumentError, f"fnp.{name} cannot change an array in place", "pass inplace=False and use the result"
        )


def place(arr: ArrayLike, mask: NestedArrayLike, vals: NestedArrayLike, *, inplace: bool = True) -> Array:
    """A copy with values, one after the other and repeated as needed, where a mask is true.

    Args:
        arr: array.
        mask: booleans, one for each element of `arr`.
        vals: values, flattened.
        inplace: must be False: arrays are immutable, and the result is returned.

    Returns:
        An array of the shape and dtype of `arr`.

    Raises:
        ArgumentError: where `inplace` is not False, or there are no values.

    >>> fnp.place(fnp.asarray([1, 2, 3]), fnp.asarray([True, False, True]), [7, 8], inplace=False).tolist()
    [7, 2, 8]
    """
    _refuse(inplace, "place")
    x, taken, new = _array(arr), truth(_array(mask)), ravel(_array(vals))
    if aval_of(taken).size != aval_of(x).size:
        raise promotion.error(
            ShapeError, f"fnp.place of {aval_of(x)!r} by {aval_of(taken)!r}", "give a mask of the same size"
        )
    n = aval_of(new).size
    if not n:
        if not aval_of(x).size:
            return x
        raise promotion.error(ArgumentError, "fnp.place got no values", "give one or more")
    places = (cumsum(taken, dtype=dtypes.default_int()) - 1) % n
    values = reshape(take(promotion.convert(new, aval_of(x).dtype), places, mode="clip"), aval_of(x).shape)
    return where(reshape(taken, aval_of(x).shape), values, x)


def putmask(a: ArrayLike, mask: NestedArrayLike, values: NestedArrayLike, *, inplace: bool = True) -> Array:
    """A copy with values where a mask is true: the values at the same positions, repeated as needed.

    Args:
        a: array.
        mask: boolean array of its shape.
        values: array of values, repeated to the size of `a`.
        inplace: must be False: arrays are immutable, and a copy is returned.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        ArgumentError: where `inplace` is not False.
        ShapeError: where mask and array differ in size.

    >>> fnp.putmask(fnp.asarray([1, 2, 3]), fnp.asarray([True, False, True]), [7, 8], inplace=False).tolist()
    [7, 2, 7]
    """
    _refuse(inplace, "putmask")
    x, taken, new = _array(a), truth(_array(mask)), ravel(_array(values))
    if aval_of(taken).size != aval_of(x).size:
        raise promotion.error(
            ShapeError, f"fnp.putmask of {aval_of(x)!r} by {aval_of(taken)!r}", "give a mask of the same size"
        )
    if not aval_of(new).size:
        return x
    places = np.arange(aval_of(x).size, dtype=np.int32) % aval_of(new).size
    new = reshape(take(promotion.convert(new, aval_of(x).dtype), places, mode="clip"), aval_of(x).shape)
    return where(reshape(taken, aval_of(x).shape), new, x)


def put(
    a: ArrayLike, ind: NestedArrayLike, v: NestedArrayLike, mode: str | None = None, *, inplace: bool = True
) -> Array:
    """A copy with values at positions of the flattened array.

    Args:
        a: array.
        ind: integers.
        v: values, repeated as needed.
        mode: treatment of positions out of bounds. By default the nearest is taken, and negative ones count from the
            end; with "clip" they do not. Others are "wrap" (modulo the size) and "drop".
        inplace: must be False: arrays are immutable, and the result is returned.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        ArgumentError: where `inplace` is not False.

    >>> fnp.put(fnp.zeros(4), [0, 2], 5, inplace=False).tolist()
    [5.0, 0.0, 5.0, 0.0]
    """
    _refuse(inplace, "put")
    x, places, new = _array(a), ravel(_array(ind)), ravel(_array(v))
    promotion.check_int(v, aval_of(x).dtype)
    if not aval_of(places).size or not aval_of(new).size:
        return x
    repeated = np.arange(aval_of(places).size, dtype=np.int32) % aval_of(new).size
    values = take(new, repeated, mode="clip")
    if mode == "clip":
        places = clip(places, 0, None)  # as in NumPy, negative positions do not count from the end then
    return reshape(IndexUpdate(ravel(x))[places].set(values, mode=mode or "clip"), aval_of(x).shape)


def put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: str | None = None,
) -> Array:
    """A copy with values at positions along an axis, which may differ for each of the other indices.

    Args:
        arr: array.
        indices: integers, with as many dimensions as the array, broadcasting outside of the axis.
        values: the new elements; broadcast to the indices.
        axis: the axis; None for the flattened array.
        inplace: must be False: arrays are immutable, and the result is returned.
        mode: as for `put`.

    Returns:
        An array of the shape and dtype of `arr`.

    Raises:
        ArgumentError: where `inplace` is not False.
        ShapeError: where the numbers of dimensions differ.

    >>> fnp.put_along_axis(fnp.zeros((2, 2)), fnp.asarray([[1], [0]]), 5, axis=1, inplace=False).tolist()
    [[0.0, 5.0], [5.0, 0.0]]
    """
    _refuse(inplace, "put_along_axis")
    arr, indices = _array(arr), _array(indices)
    if axis is None:
        flat = put_along_axis(ravel(arr), ravel(indices), ravel(_array(values)), 0, False, mode=mode)
        return reshape(flat, aval_of(arr).shape)
    n = ndim(arr)
    if ndim(indices) != n:
        raise promotion.error(
            ShapeError,
            f"fnp.put_along_axis of {aval_of(arr)!r} at {aval_of(indices)!r}: the numbers of dimensions differ",
            "give indices with as many dimensions",
        )
    d, sizes = axis_of(axis, n, "fnp.put_along_axis"), aval_of(arr).shape
    grid = [np.arange(m, dtype=np.int32).reshape([m if k == i else 1 for k in range(n)]) for i, m in enumerate(sizes)]
    full = promotion.broadcast_shapes(aval_of(indices).shape, tuple(1 if k == d else m for k, m in enumerate(sizes)))
    where_to = tuple(promotion.broadcast(indices, full) if k == d else grid[k] for k in range(n))
    return IndexUpdate(arr)[where_to].set(_array(values), mode=mode)
