"""Joining and splitting arrays along an axis."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like.core import Tracer, aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import axis_of
from functorch_like.numpy.creation import asarray
from functorch_like.numpy.least_dimensions import COLUMN, ONE, THREE, TWO, Missing, widened
from functorch_like.numpy.operands import given
from functorch_like.numpy.shapes import arr, moveaxis, ndim, reshape
from functorch_like.primitives import structural
from functorch_like.primitives.structural.tile_split_barrier import split as split_primitive
from functorch_like.transforms.eager_jit import eager_jit, with_kernel

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, Arrays, DTypeLike


# ------------------------------------------------------------------------------------------------------------- joining
def concatenate(arrays: Arrays, axis: int | None = 0, dtype: DTypeLike | None = None) -> Array:
    """Join arrays one after the other along an existing axis.

    Args:
        arrays: sequence of arrays, alike in all other dimensions; promoted to a common dtype.
        axis: the axis; None flattens the arrays first.
        dtype: dtype of the result.

    Returns:
        An array of the common dtype.

    Raises:
        ShapeError: where the shapes do not fit, or there is nothing to join.

    >>> fnp.concatenate([fnp.zeros(1), fnp.ones(2)]).tolist()
    [0.0, 1.0, 1.0]
    """
    if promotion.is_array(arrays) and ndim(arrays) > 1:
        made = _join_rows(_rows(arrays, "fnp.concatenate"), axis)
        return made if dtype is None else asarray(made, dtype)
    parts = _parts(arrays, "fnp.concatenate")
    if axis is None:
        parts, axis = [structural.reshape(p, shape=(aval_of(p).size,)) for p in parts], 0
    n = ndim(parts[0])
    if n == 0:
        raise promotion.error(
            ShapeError,
            "scalars cannot be concatenated",
            "use fnp.stack; arrays to join go in one list: concatenate([a, b])",
        )
    d = axis_of(axis, n, "fnp.concatenate")
    avals = [aval_of(p) for p in parts]
    first = avals[0].shape
    for a in avals[1:]:
        if a.ndim != n or a.shape[:d] + a.shape[d + 1 :] != first[:d] + first[d + 1 :]:
            raise promotion.error(
                ShapeError,
                f"cannot concatenate {avals[0]!r} and {a!r} along axis {d}",
                "all dimensions but that one must be equal",
            )
    made = _concatenate(parts, dimension=d)
    return made if dtype is None else asarray(made, dtype)


concat = concatenate


def _rows(rows: Any, what: str) -> Any:
    """Return an array whose rows are to be joined, given in place of a sequence.

    It is joined by a transposition: a slice for each row would make a program that grows with the number of rows.
    """
    x = asarray(rows)
    if not aval_of(x).shape[0]:
        raise promotion.error(ShapeError, f"{what} got no arrays", "give at least one")
    return x


def _join_rows(rows: Any, axis: int | None) -> Any:
    """Concatenate the rows of an array along an axis of theirs."""
    if axis is None:
        return reshape(rows, (-1,))
    n, *shape = aval_of(rows).shape
    d = axis_of(axis, len(shape), "fnp.concatenate")
    return reshape(moveaxis(rows, 0, d), (*shape[:d], n * shape[d], *shape[d + 1 :]))


def _joined(tup: Any, what: str, missing: Missing, axis: int, dtype: Any = None) -> Any:
    """Concatenate arrays, each with the dimensions that it lacks, along an axis, or the last one if there are fewer."""
    if promotion.is_array(tup) and ndim(tup):
        rows = widened(_rows(tup, what), missing, rows=True)
        return concatenate(rows, min(axis, ndim(rows) - 2), dtype)
    parts = [widened(a, missing) for a in _parts(tup, what)]
    return concatenate(parts, min(axis, ndim(parts[0]) - 1), dtype)


def _parts(arrays: Any, what: str) -> list[Any]:
    if promotion.is_array(arrays):
        return [asarray(arrays[i]) for i in range(aval_of(arrays).shape[0])] if ndim(arrays) else [arrays]
    parts = list(arrays)
    if not all(map(promotion.is_array, parts)):
        parts = [asarray(a) for a in given(*parts)]
    if not parts:
        raise promotion.error(ShapeError, f"{what} got no arrays", "give at least one")
    return parts


@eager_jit(static=("dimension",))
def _concatenate(parts: Any, dimension: int) -> Any:
    return structural.concatenate(*promotion.promote(*parts), dimension=dimension)


def stack(arrays: Arrays, axis: int = 0, out: None = None, dtype: DTypeLike | None = None) -> Array:
    """Join arrays of one shape along a new axis.

    Args:
        arrays: sequence of arrays of one shape; promoted to a common dtype.
        axis: int: position of the new axis in the result.
        out: not supported: arrays are immutable.
        dtype: dtype of the result.

    Returns:
        An array of the common dtype, with one more dimension than the arrays.

    Raises:
        ShapeError: where the shapes differ.

    >>> fnp.stack([fnp.zeros(2), fnp.ones(2)], axis=1).tolist()
    [[0.0, 1.0], [0.0, 1.0]]
    """
    promotion.no_out(out, "fnp.stack")
    if promotion.is_array(arrays) and ndim(arrays):
        rows = _rows(arrays, "fnp.stack")
        made = moveaxis(rows, 0, axis_of(axis, ndim(rows), "fnp.stack"))
        return made if dtype is None else asarray(made, dtype)
    parts = _parts(arrays, "fnp.stack")
    shapes = [aval_of(p).shape for p in parts]
    if len(set(shapes)) > 1:
        raise promotion.error(ShapeError, f"cannot stack arrays of shapes {sorted(set(shapes))}", "give all one shape")
    made = _stack(parts, at=axis_of(axis, len(shapes[0]) + 1, "fnp.stack"))
    return made if dtype is None else asarray(made, dtype)


@eager_jit(static=("at",))
def _stack(parts: Any, at: int) -> Any:
    shape = aval_of(parts[0]).shape
    wide = (*shape[:at], 1, *shape[at:])
    return structural.concatenate(*[structural.reshape(p, shape=wide) for p in promotion.promote(*parts)], dimension=at)


def vstack(tup: Arrays, dtype: DTypeLike | None = None) -> Array:
    """Join arrays as rows, one below the other.

    Args:
        tup: sequence of arrays; promoted to a common dtype.
        dtype: dtype of the result.

    Returns:
        An array of two dimensions or more.

    >>> fnp.vstack([fnp.zeros(2), fnp.ones((1, 2))]).shape
    (2, 2)
    """
    return _joined(tup, "fnp.vstack", TWO, 0, dtype)


def hstack(tup: Arrays, dtype: DTypeLike | None = None) -> Array:
    """Join arrays side by side: along the second axis, or the only one.

    Args:
        tup: sequence of arrays; promoted to a common dtype.
        dtype: dtype of the result.

    Returns:
        An array of the common dtype.

    >>> fnp.hstack([fnp.zeros(2), fnp.ones(1)]).shape
    (3,)
    """
    return _joined(tup, "fnp.hstack", ONE, 1, dtype)


def dstack(tup: Arrays, dtype: DTypeLike | None = None) -> Array:
    """Join arrays along the third axis.

    Args:
        tup: sequence of arrays; promoted to a common dtype.
        dtype: dtype of the result.

    Returns:
        An array of three dimensions or more.

    >>> fnp.dstack([fnp.zeros(2), fnp.ones(2)]).shape
    (1, 2, 2)
    """
    return _joined(tup, "fnp.dstack", THREE, 2, dtype)


def column_stack(tup: Arrays) -> Array:
    """Join one-dimensional arrays as columns of a matrix.

    Args:
        tup: sequence of arrays of one or two dimensions.

    Returns:
        A matrix.

    >>> fnp.column_stack([fnp.zeros(2), fnp.ones(2)]).tolist()
    [[0.0, 1.0], [0.0, 1.0]]
    """
    return _joined(tup, "fnp.column_stack", COLUMN, 1)


@with_kernel(2)
def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """Append values to the end of an array; both are flattened if no axis is given.

    Args:
        arr: array.
        values: array, alike in all other dimensions where an axis is given.
        axis: int: the axis; None flattens both.

    Returns:
        An array: one-dimensional without an axis, else as `concatenate` gives it; the dtype is common to both.

    >>> fnp.append(fnp.arange(2), 7).tolist()
    [0, 1, 7]
    """
    return concatenate([asarray(v) for v in given(arr, values)], axis)


# ----------------------------------------------------------------------------------------------------------- splitting
def _cut(x: Any, d: int, start: int, stop: int) -> Any:
    shape = aval_of(x).shape
    low = tuple(start if k == d else 0 for k in range(len(shape)))
    high = tuple(stop if k == d else n for k, n in enumerate(shape))
    return structural.slice(x, start_indices=low, limit_indices=high, strides=None)


def split(
    ary: ArrayLike, indices_or_sections: int | Sequence[int] | np.ndarray[Any, Any], axis: int = 0
) -> list[Array]:
    """Split an array into parts along an axis.

    Args:
        ary: array.
        indices_or_sections: number of equal parts; or the positions at which it is cut.
        axis: the axis.

    Returns:
        A list of arrays.

    Raises:
        ShapeError: where the axis does not divide into equal parts.

    >>> [a.tolist() for a in fnp.split(fnp.arange(4), 2)]
    [[0, 1], [2, 3]]
    """
    ary = arr(ary, "fnp.split")
    n = aval_of(ary).shape[axis_of(axis, ndim(ary), "fnp.split")]
    indices_or_sections = _parts_or_cuts(indices_or_sections)
    if isinstance(indices_or_sections, (int, np.integer)) and (indices_or_sections < 1 or n % indices_or_sections):
        raise promotion.error(
            ShapeError, f"a size of {n} does not divide into {indices_or_sections} equal parts", "use fnp.array_split"
        )
    return array_split(ary, indices_or_sections, axis)


def _parts_or_cuts(given: Any) -> Any:
    """Return a number of parts as an int where it is an array of rank 0."""
    return operator.index(given) if promotion.is_array(given) and not aval_of(given).ndim else given


def array_split(
    ary: ArrayLike, indices_or_sections: int | Sequence[int] | np.ndarray[Any, Any], axis: int = 0
) -> list[Array]:
    """Split an array into parts along an axis; the first ones are larger if it does not divide evenly.

    Args:
        ary: array.
        indices_or_sections: int: number of parts; or the positions at which it is cut.
        axis: int: the axis.

    Returns:
        A list of arrays.

    Raises:
        ArgumentError: for fewer than one part.

    >>> [a.tolist() for a in fnp.array_split(fnp.arange(3), 2)]
    [[0, 1], [2]]
    """
    ary = arr(ary, "fnp.array_split")
    d = axis_of(axis, ndim(ary), "fnp.array_split")
    n = aval_of(ary).shape[d]
    indices_or_sections = _parts_or_cuts(indices_or_sections)
    if isinstance(indices_or_sections, (int, np.integer)):
        parts = int(indices_or_sections)
        if parts < 1:
            raise promotion.error(ArgumentError, f"fnp.array_split into {parts} parts", "use 1 or more")
        small, rest = divmod(n, parts)
        cuts = [k * small + min(k, rest) for k in range(1, parts)]
    else:
        cuts = [operator.index(i) for i in indices_or_sections]
    ends = [min(max(i + n if i < 0 else i, 0), n) for i in cuts]
    sizes = tuple(b - a for a, b in zip([0, *ends], [*ends, n], strict=True))
    if min(sizes) >= 0:
        return list((_split.inline if isinstance(ary, Tracer) else _split)(ary, sizes, d))
    return [_cut(ary, d, a, max(a, b)) for a, b in zip([0, *ends], [*ends, n], strict=True)]


@eager_jit(static=("sizes", "axis"))
def _split(x: Any, sizes: tuple[int, ...], axis: int) -> Any:
    # One primitive, whose transpose concatenates; the transpose of slices would sum as many arrays as there are parts.
    return tuple(split_primitive(x, sizes=sizes, axis=axis))


def hsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | np.ndarray[Any, Any]) -> list[Array]:
    """Split an array along the second axis, or the only one.

    Args:
        ary: array.
        indices_or_sections: int: number of equal parts; or the positions at which it is cut.

    Returns:
        A list of arrays.

    >>> len(fnp.hsplit(fnp.ones((2, 4)), 2))
    2
    """
    return split(ary, indices_or_sections, 0 if ndim(ary) == 1 else 1)


def vsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | np.ndarray[Any, Any]) -> list[Array]:
    """Split an array along the first axis.

    Args:
        ary: array.
        indices_or_sections: int: number of equal parts; or the positions at which it is cut.

    Returns:
        A list of arrays.

    >>> len(fnp.vsplit(fnp.ones((2, 4)), 2))
    2
    """
    return split(ary, indices_or_sections, 0)


def dsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | np.ndarray[Any, Any]) -> list[Array]:
    """Split an array along the third axis.

    Args:
        ary: array.
        indices_or_sections: int: number of equal parts; or the positions at which it is cut.

    Returns:
        A list of arrays.

    Raises:
        ShapeError: for fewer than three dimensions.

    >>> len(fnp.dsplit(fnp.ones((2, 2, 4)), 2))
    2
    """
    if ndim(ary) < 3:
        raise promotion.error(
            ShapeError, f"fnp.dsplit of {aval_of(ary)!r}", "give an array of three dimensions or more"
        )
    return split(ary, indices_or_sections, 2)


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices of an array along an axis, without that axis.

    Args:
        x: array.
        axis: int: the axis.

    Returns:
        A tuple of arrays.

    >>> [a.tolist() for a in fnp.unstack(fnp.asarray([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    d = axis_of(axis, ndim(x), "fnp.unstack")
    shape = aval_of(x).shape
    if not shape[d]:
        return ()
    return tuple(structural.reshape(part, shape=shape[:d] + shape[d + 1 :]) for part in _split(x, (1,) * shape[d], d))
