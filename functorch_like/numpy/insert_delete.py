"""Arrays with elements inserted or deleted, resized, or without zeros at their ends."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes, lax
from functorch_like import numpy as fnp
from functorch_like.core import Tracer, aval_of
from functorch_like.errors import ArgumentError, BoundsError, ConcretizationError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import axes_of, axis_of
from functorch_like.numpy.operands import given, known

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, Axis, NestedArrayLike, Shape

#: Runs of positions that are slices; of more, the program would compile long.
_RUNS = 8


def _flat(arr: Any, axis: int | None, what: str) -> tuple[Any, int]:
    (arr,) = given(arr)
    arr = fnp.asarray(arr)
    if axis is None:
        return fnp.ravel(arr), 0
    return arr, axis_of(axis, aval_of(arr).ndim, what)


def insert(arr: ArrayLike, obj: slice | NestedArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """Insert values into an array.

    Args:
        arr: array.
        obj: the positions before which to insert: int, slice, or whole numbers; they count elements of `arr` alone.
        values: the new elements; broadcast.
        axis: the axis; None for the flattened array.

    Returns:
        An array of the dtype of `arr`; of one dimension if axis is None.

    Raises:
        BoundsError: for known positions out of bounds, and for floats.

    >>> fnp.insert(fnp.arange(3), 1, 9).tolist(), fnp.insert(fnp.arange(3), fnp.asarray([0, 2]), 9).tolist()
    ([0, 9, 1, 2], [9, 0, 1, 9, 2])
    """
    arr, d = _flat(arr, axis, "fnp.insert")
    (values,) = given(values)
    shape = aval_of(arr).shape
    n = shape[d]
    values = fnp.asarray(values, aval_of(arr).dtype)
    obj = np.arange(n)[obj] if isinstance(obj, slice) else obj
    places = known(obj)
    kind = aval_of(obj).dtype if places is None else places.dtype
    if dtypes.is_inexact(kind) and (places is None or places.size):
        why = f"fnp.insert before {obj!r}: positions must be integers"
        raise promotion.error(BoundsError, why, "convert with x.astype(int), if it counts")
    scalar = (places.ndim if places is not None else aval_of(obj).ndim) == 0
    if aval_of(values).ndim < len(shape):
        values = fnp.reshape(values, (1,) * (len(shape) - aval_of(values).ndim) + aval_of(values).shape)
    if scalar:  # NumPy's rule: all values are inserted there, and their first axis becomes axis d
        values = fnp.moveaxis(values, 0, d)
    one = scalar or (places.size if places is not None else aval_of(obj).size) == 1
    if places is not None and places.dtype == bool:
        places = np.flatnonzero(places)
        one = places.size == 1
    many = aval_of(values).shape[d] if one else places.size if places is not None else aval_of(obj).size
    values = fnp.broadcast_to(values, (*shape[:d], many, *shape[d + 1 :]))
    if places is not None:
        at = places.astype(np.int64) if places.size else np.zeros(0, np.int64)
        if at.size and not (-n <= at.min() and at.max() <= n):
            raise promotion.error(BoundsError, f"fnp.insert before {obj!r} of {n} elements", f"use {-n} to {n}")
        source = np.insert(np.arange(n), at.reshape(-1)[0] if one else at, n + np.arange(many))
        return _taken(fnp.concatenate([arr, values], d), source, d)
    else:
        source = _merged(fnp.ravel(fnp.asarray(obj)), n, many)
    return fnp.take(fnp.concatenate([arr, values], d), source, d)


def _taken(x: Any, places: np.ndarray[Any, Any], d: int) -> Any:
    """Return the elements at known positions; few runs of them are slices, which XLA copies.

    Each set of slices is a program of its own, so operations that run at once take the elements by their positions.
    """
    traced = isinstance(x, Tracer)
    runs = np.split(places, np.flatnonzero(np.diff(places) != 1) + 1) if traced and places.size else []
    if not 0 < len(runs) <= _RUNS:
        return fnp.take(x, places, d)
    return fnp.concatenate([lax.slice_in_dim(x, int(run[0]), int(run[-1]) + 1, axis=d) for run in runs], d)


def _merged(places: Any, n: int, many: int) -> Any:
    """Return the source of each element of the result: indices of the array, then from n on those of the values."""
    places = fnp.broadcast_to(fnp.where(places < 0, places + n, places), (many,))
    order = fnp.argsort(places)
    at = places[order] + fnp.arange(many)
    new = fnp.zeros(n + many, bool).at[at].set(True)
    old = fnp.arange(n + many) - fnp.cumsum(fnp.where(new, 1, 0))
    return old.at[at].set(n + order)


def delete(
    arr: ArrayLike, obj: slice | NestedArrayLike, axis: int | None = None, *, assume_unique_indices: bool = False
) -> Array:
    """An array without some of its elements.

    Args:
        arr: array.
        obj: the elements to leave out: int, slice, or whole numbers, or booleans that are known.
        axis: the axis; None for the flattened array.
        assume_unique_indices: promise that traced positions are all different, so that the size of the result is known.

    Returns:
        An array of the dtype of `arr`; of one dimension if axis is None.

    Raises:
        BoundsError: for known positions out of bounds.
        ConcretizationError: for a traced array of positions, without that promise.

    >>> fnp.delete(fnp.arange(4), 1).tolist(), fnp.delete(fnp.arange(4), slice(1, 3)).tolist()
    ([0, 2, 3], [0, 3])
    """
    arr, d = _flat(arr, axis, "fnp.delete")
    n = aval_of(arr).shape[d]
    places = obj if isinstance(obj, slice) else known(obj)
    if places is not None:
        if not isinstance(places, slice) and not places.size:
            places = places.astype(np.int64)
        try:
            return _taken(arr, np.delete(np.arange(n), places), d)
        except (IndexError, ValueError) as e:
            raise promotion.error(BoundsError, f"fnp.delete of {n} elements: {e}", f"use {-n} to {n - 1}") from None
    places = fnp.asarray(obj)  # pyright: ignore[reportArgumentType]  # no slice: these are known
    many = aval_of(places).size
    if aval_of(places).dtype == bool or (aval_of(places).ndim and not assume_unique_indices):
        raise promotion.error(
            ConcretizationError,
            f"fnp.delete of a traced {aval_of(places)!r}: how many different elements it names is not known",
            "give whole numbers, and assume_unique_indices=True if they are all different",
        )
    gone = fnp.zeros(n, bool).at[fnp.ravel(places)].set(True)
    return fnp.take(arr, fnp.flatnonzero(~gone, size=n - many), d)


def resize(a: ArrayLike, new_shape: Shape) -> Array:
    """Change the shape of an array, and cut or repeat its elements, in order, to fit.

    Args:
        a: array.
        new_shape: int or tuple of ints.

    Returns:
        An array of that shape, and the dtype of `a`.

    Raises:
        ShapeError: for negative sizes.

    >>> fnp.resize(fnp.arange(3), (2, 2)).tolist()
    [[0, 1], [2, 0]]
    """
    (a,) = given(a)
    flat = fnp.ravel(a)
    shape = (new_shape,) if isinstance(new_shape, int) else tuple(new_shape)
    if any(s < 0 for s in shape):
        raise promotion.error(ShapeError, f"fnp.resize to {shape}", "sizes are at least 0")
    total, n = math.prod(shape), aval_of(flat).size
    if not n:
        return fnp.zeros(shape, aval_of(flat).dtype)
    return fnp.reshape(fnp.tile(flat, -(-total // n))[:total], shape)


def trim_zeros(filt: NestedArrayLike, trim: str = "fb", axis: Axis = None) -> Array:
    """An array without the zeros at its ends. Its values must be known, since they determine the shape.

    Args:
        filt: array.
        trim: "f" cuts at the front, "b" at the back, "fb" both.
        axis: int, or tuple of ints; all axes by default. Only slices that are all zero are cut.

    Returns:
        An array of the dtype of the operand.

    Raises:
        ConcretizationError: for a traced array.
        ArgumentError: for another `trim`.

    >>> fnp.trim_zeros([0, 1, 0, 2, 0]).tolist()
    [1, 0, 2]
    """
    if not set(trim.lower()) <= {"f", "b"}:
        raise promotion.error(ArgumentError, f"fnp.trim_zeros with trim={trim!r}", "use 'f', 'b' or 'fb'")
    (x,) = given(filt)
    values = known(x)
    if values is None:
        raise promotion.error(
            ConcretizationError,
            f"fnp.trim_zeros of a traced {aval_of(x)!r}: the size of the result is not known",
            "trim before tracing, or leave the zeros",
        )
    cut = []
    for d in range(values.ndim):
        others = tuple(k for k in range(values.ndim) if k != d)
        positions = np.flatnonzero((values != 0).any(others))
        start, stop = (int(positions[0]), int(positions[-1]) + 1) if positions.size else (0, 0)
        if d not in axes_of(axis, values.ndim, "fnp.trim_zeros"):
            start, stop = 0, values.shape[d]
        cut.append(slice(start if "f" in trim.lower() or not positions.size else 0,
                         stop if "b" in trim.lower() or not positions.size else values.shape[d]))  # fmt: skip
    return x[tuple(cut)]
