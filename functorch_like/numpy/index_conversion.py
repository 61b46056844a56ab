"""Indices of flattened arrays, of triangles and diagonals, and of open grids."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, BoundsError, ConcretizationError, DtypeError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import shape_of
from functorch_like.numpy.creation import asarray, ones
from functorch_like.numpy.diagonals import diag, diag_indices, tril_indices, triu_indices
from functorch_like.numpy.selection import clip
from functorch_like.numpy.shapes import ndim, ravel, reshape, shape
from functorch_like.numpy.sorting_searching import nonzero
from functorch_like.numpy.unique import known

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike, Shape


def _integers(x: Any, what: str) -> Any:
    x = x if promotion.is_array(x) else asarray(x)
    if not dtypes.is_integer(aval_of(x).dtype):
        raise promotion.error(DtypeError, f"{what} takes integers, got {aval_of(x)!r}", "convert with astype('int32')")
    return x


def _index_dtype(sizes: Sequence[int]) -> Any:
    return dtypes.default_int() if math.prod(sizes) <= promotion.bounds(dtypes.default_int())[1] + 1 else dtypes.int64


def _strides(sizes: tuple[int, ...], order: str, what: str) -> list[int]:
    if order not in ("C", "F"):
        raise promotion.error(ArgumentError, f"{what}: order={order!r} is unknown", "use 'C' or 'F'")
    k = range(len(sizes))
    return [math.prod(sizes[i + 1 :]) if order == "C" else math.prod(sizes[:i]) for i in k]


def ravel_multi_index(
    multi_index: Sequence[ArrayLike],
    dims: Sequence[int],
    mode: str | Sequence[str] = "raise",
    order: str = "C",
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """Convert an index for each dimension to positions in the flattened array.

    Args:
        multi_index: integer arrays, one for each dimension; they broadcast.
        dims: the shape of the array.
        mode: treatment of positions out of bounds: "raise" (for known values), "wrap" (modulo the size) or "clip";
            or one of these for each dimension.
        order: order of the elements, "C" or "F".
        dtype: dtype of the result; by default the default int, or int64 where that does not hold all positions.

    Returns:
        Integers, of the shape that the indices broadcast to.

    Raises:
        BoundsError: in mode "raise", for positions out of bounds.
        ConcretizationError: in mode "raise", where positions are traced.

    >>> fnp.ravel_multi_index((fnp.asarray([0, 1]), fnp.asarray([2, 0])), (2, 3)).tolist()
    [2, 3]
    """
    sizes = shape_of(dims, "fnp.ravel_multi_index")
    arrays = [_integers(i, "fnp.ravel_multi_index") for i in multi_index]
    modes = (mode,) * len(sizes) if isinstance(mode, str) else tuple(mode)
    if len(arrays) != len(sizes) or len(modes) != len(sizes):
        raise promotion.error(
            ShapeError, f"fnp.ravel_multi_index: {len(arrays)} indices for {len(sizes)} dimensions", "give one for each"
        )
    result_dtype = _index_dtype(sizes) if dtype is None else dtypes.as_dtype(dtype)
    total: Any = 0
    for i, n, how, stride in zip(arrays, sizes, modes, _strides(sizes, order, "fnp.ravel_multi_index"), strict=True):
        total = total + promotion.convert(_bounded(i, n, how), result_dtype) * stride
    return asarray(total, result_dtype)


def _bounded(i: Any, n: int, mode: str) -> Any:
    if mode == "clip":
        return clip(i, 0, max(n - 1, 0))
    if mode == "wrap":
        return i % max(n, 1)
    if mode != "raise":
        raise promotion.error(
            ArgumentError, f"fnp.ravel_multi_index: mode={mode!r} is unknown", "use 'raise', 'wrap', 'clip'"
        )
    host = known(i)
    if host is None:
        raise promotion.error(
            ConcretizationError,
            f"fnp.ravel_multi_index of a traced {aval_of(i)!r} cannot raise for positions out of bounds",
            "use mode='clip' or mode='wrap'",
        )
    if host.size and not (host.min() >= 0 and host.max() < n):
        raise promotion.error(BoundsError, f"a position is outside of 0 to {n - 1}", "use mode='clip' or mode='wrap'")
    return i


def unravel_index(indices: ArrayLike, shape: Shape, order: str = "C") -> tuple[Array, ...]:
    """Convert positions in the flattened array to an index for each dimension.

    Args:
        indices: integers. Negative ones count from the end; those out of bounds are moved to the nearest element.
        shape: shape of the array.
        order: order of its elements, "C" or "F".

    Returns:
        A tuple of integer arrays of the shape of the indices, one for each dimension.

    Raises:
        DtypeError: for anything but integers.

    >>> [i.tolist() for i in fnp.unravel_index(fnp.asarray([2, 3]), (2, 3))]
    [[0, 1], [2, 0]]
    """
    sizes = shape_of(shape, "fnp.unravel_index")
    flat, total = _integers(indices, "fnp.unravel_index"), math.prod(sizes)
    if aval_of(flat).dtype == dtypes.uint64:  # all positions beyond the end give the last element
        flat = clip(flat, None, 2**62)
    flat = promotion.convert(flat, dtypes.int64)
    flat = clip(flat + total * (flat < 0), 0, max(total - 1, 0))
    flat = promotion.convert(asarray(flat), _index_dtype(sizes))
    strides = _strides(sizes, order, "fnp.unravel_index")
    return tuple(flat // max(s, 1) % max(n, 1) for n, s in zip(sizes, strides, strict=True))


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """Indices of the main diagonal of an array whose dimensions have one size.

    Args:
        arr: array of two or more dimensions of one size.

    Returns:
        A tuple of integer arrays, one for each dimension.

    Raises:
        ShapeError: for fewer than two dimensions, or unequal sizes.

    >>> [i.tolist() for i in fnp.diag_indices_from(fnp.ones((2, 2)))]
    [[0, 1], [0, 1]]
    """
    sizes = shape(arr)
    if len(sizes) < 2 or len(set(sizes)) > 1:
        why = f"fnp.diag_indices_from of an array of shape {sizes}"
        raise promotion.error(ShapeError, why, "give two dimensions or more, all of one size")
    return diag_indices(sizes[0], len(sizes))


def _matrix(arr: Any, what: str) -> tuple[int, int]:
    sizes = shape(arr)
    if len(sizes) != 2:
        raise promotion.error(ShapeError, f"{what} of an array of shape {sizes}", "give a matrix")
    return sizes[0], sizes[1]


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """Indices of the lower triangle of a matrix.

    Args:
        arr: matrix.
        k: int: the diagonal that bounds the triangle.

    Returns:
        A pair of integer arrays: rows and columns.

    >>> [i.tolist() for i in fnp.tril_indices_from(fnp.ones((2, 2)))]
    [[0, 1, 1], [0, 0, 1]]
    """
    rows, columns = _matrix(arr, "fnp.tril_indices_from")
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """Indices of the upper triangle of a matrix.

    Args:
        arr: matrix.
        k: int: the diagonal that bounds the triangle.

    Returns:
        A pair of integer arrays: rows and columns.

    >>> [i.tolist() for i in fnp.triu_indices_from(fnp.ones((2, 2)))]
    [[0, 0, 1], [0, 1, 1]]
    """
    rows, columns = _matrix(arr, "fnp.triu_indices_from")
    return triu_indices(rows, k, columns)


def mask_indices(
    n: int, mask_func: Callable[[Array, int], Array], k: int = 0, *, size: int | None = None
) -> tuple[Array, Array]:
    """Indices where a function of a matrix of ones, such as `fnp.triu`, is not zero.

    Args:
        n: rows and columns of the matrix.
        mask_func: called as mask_func(matrix, k).
        k: its second argument.
        size: the number of results; required where the function returns traced values.

    Returns:
        A pair of integer arrays, to index an n by n matrix with.

    >>> [i.tolist() for i in fnp.mask_indices(2, fnp.triu)]
    [[0, 0, 1], [0, 1, 1]]
    """
    rows, columns = nonzero(mask_func(ones((n, n)), k), size=size)
    return rows, columns


def ix_(*args: Array | np.ndarray[Any, Any] | Sequence[int] | Sequence[bool]) -> tuple[Array, ...]:
    """Indices of an open grid: `x[fnp.ix_(rows, columns)]` is the part of x at these rows and columns.

    Args:
        args: one-dimensional arrays or lists, of integers, or of booleans whose values are known.

    Returns:
        A tuple of integer arrays, each with its elements along a dimension of its own, to index with.

    Raises:
        ShapeError: for other numbers of dimensions.

    >>> fnp.arange(6).reshape(2, 3)[fnp.ix_([0, 1], [2, 0])].tolist()
    [[2, 0], [5, 3]]
    """
    out = []
    for k, arg in enumerate(args):
        a: Any = arg if promotion.is_array(arg) else asarray(np.asarray(arg, np.intp) if len(arg) == 0 else arg)
        if ndim(a) != 1:
            raise promotion.error(ShapeError, f"fnp.ix_ takes vectors, got {aval_of(a)!r}", "give one dimension each")
        a = nonzero(a)[0] if aval_of(a).dtype == dtypes.bool_ else a
        out.append(reshape(a, tuple(aval_of(a).size if i == k else 1 for i in range(len(args)))))
    return tuple(out)


def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """A matrix with the elements of an array on a diagonal, zeros elsewhere.

    Args:
        v: array; it is flattened.
        k: int: the diagonal; above the main one if positive.

    Returns:
        A square matrix.

    >>> fnp.diagflat(fnp.asarray([[1, 2]])).tolist()
    [[1, 0], [0, 2]]
    """
    return diag(ravel(v if promotion.is_array(v) else asarray(v)), k)
