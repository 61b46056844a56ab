"""Diagonals, and indices of diagonals and triangles."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import axis_of
from functorch_like.numpy.creation import asarray
from functorch_like.numpy.indexing import getitem
from functorch_like.numpy.ranges import diagonal_band
from functorch_like.numpy.reductions import _widened
from functorch_like.numpy.shapes import arr
from functorch_like.primitives import elementwise, structural
from functorch_like.transforms.eager_jit import eager_jit, with_kernel

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike


@with_kernel(1)
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The diagonals of matrices, as the last dimension.

    Args:
        a: array of at least two dimensions.
        offset: the diagonal: 0 the main one, positive above it.
        axis1: the dimension of the rows.
        axis2: the dimension of the columns.

    Returns:
        An array without the two axes, with the diagonal as its last dimension.

    Raises:
        ShapeError: for fewer dimensions.

    >>> fnp.diagonal(fnp.asarray([[1, 2], [3, 4]])).tolist()
    [1, 4]
    """
    a = arr(a, "fnp.diagonal")
    n = aval_of(a).ndim
    if n < 2:
        raise promotion.error(ShapeError, f"{aval_of(a)!r} is not a matrix", "give an array of two dimensions or more")
    i, j = _plane(axis1, axis2, n, "fnp.diagonal")
    k = operator.index(offset)
    a = structural.transpose(a, permutation=(*(d for d in range(n) if d not in (i, j)), i, j))
    rows, columns = aval_of(a).shape[-2:]
    size = max(0, min(rows + min(k, 0), columns - max(k, 0)))
    at = np.arange(size)
    if not size:
        outer = aval_of(a).shape[:-2]
        none = structural.slice(a, start_indices=(0,) * n, limit_indices=(*outer, 0, 0), strides=None)
        return structural.reshape(none, shape=(*outer, 0))
    return getitem(a, (Ellipsis, at - min(k, 0), at + max(k, 0)))


def _plane(axis1: int, axis2: int, n: int, what: str) -> tuple[int, int]:
    """Return the dimensions of rows and columns, counted from 0."""
    i, j = axis_of(axis1, n, what), axis_of(axis2, n, what)
    if i == j:
        raise promotion.error(ShapeError, f"{what}: axis1={axis1} and axis2={axis2} are equal", "name two dimensions")
    return i, j


@with_kernel(1)
def trace(
    a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """The sum of the diagonal of matrices.

    Args:
        a: array of two or more dimensions.
        offset: int: above the main diagonal if positive.
        axis1: int: dimension of the rows.
        axis2: int: dimension of the columns.
        dtype: dtype to sum in.
        out: not supported: arrays are immutable.

    Returns:
        An array without the two dimensions.

    >>> float(fnp.trace(fnp.eye(3)))
    3.0
    """
    promotion.no_out(out, "fnp.trace")
    return _trace(
        arr(a, "fnp.trace"), operator.index(offset), axis1, axis2, None if dtype is None else dtypes.as_dtype(dtype)
    )


#: Elements from which reading the diagonal is faster than a sum over the whole matrix, with zeros beside the diagonal.
_READ = 1024


@eager_jit(static=("offset", "axis1", "axis2", "dtype"))
def _trace(a: Any, offset: int, axis1: int, axis2: int, dtype: Any) -> Any:
    n, aval = aval_of(a).ndim, aval_of(a)
    i, j = _plane(axis1, axis2, n, "fnp.trace")
    if aval.size >= _READ and aval.explicit is None:  # dimensions that Explicit axes split cannot be read by positions
        return structural.reduce_sum(_widened(diagonal(a, offset, i, j), dtype), axes=(n - 2,))
    order = (*(d for d in range(n) if d not in (i, j)), i, j)
    a = _widened(structural.transpose(a, permutation=order), dtype)
    on = diagonal_band(aval_of(a).shape, offset, elementwise.eq)
    return structural.reduce_sum(elementwise.select_n(on, structural.full_like(a, 0), a), axes=(n - 2, n - 1))


@with_kernel(1)
def diag(v: ArrayLike, k: int = 0) -> Array:
    """The diagonal of a matrix; or of a vector, the matrix with that diagonal.

    Args:
        v: array of one or two dimensions.
        k: the diagonal.

    Returns:
        A matrix with v on a diagonal for a vector; the diagonal, a vector, for a matrix.

    Raises:
        ShapeError: for other numbers of dimensions.

    >>> fnp.diag(fnp.asarray([1, 2])).tolist()
    [[1, 0], [0, 2]]
    """
    v = v if promotion.is_array(v) else asarray(v)
    n = aval_of(v).ndim
    if n == 2:
        return diagonal(v, k)
    if n != 1:
        raise promotion.error(
            ShapeError, f"fnp.diag of {aval_of(v)!r}", "give a vector or a matrix; fnp.diagonal takes more"
        )
    return _diag(v, k=operator.index(k))


@eager_jit(static=("k",))
def _diag(v: Any, k: int) -> Any:
    n = aval_of(v).size + abs(k)
    zero = promotion.convert(0, aval_of(v).dtype, aval_of(v).weak_type)
    padded = structural.pad(v, zero, padding_config=((max(k, 0), max(-k, 0), 0),))
    rows = structural.broadcast_in_dim(padded, shape=(n, n), broadcast_dimensions=(1,))
    return elementwise.select_n(diagonal_band((n, n), k, elementwise.eq), structural.full_like(rows, 0), rows)


def fill_diagonal(a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True) -> Array:
    """A copy of a matrix with another diagonal.

    Args:
        a: array of at least two dimensions, all of one size if more than two.
        val: number or array; of an array the elements fill the diagonal in order, from the first one again where they
            are too few.
        wrap: whether the diagonal of a matrix with more rows than columns starts anew below a row that it leaves out.
        inplace: must be False: arrays are immutable, and the result is returned.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        ArgumentError: where `inplace` is not False.
        ShapeError: for fewer than two dimensions, or more than two of different sizes.

    >>> fnp.fill_diagonal(fnp.zeros((2, 2)), 1, inplace=False).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if inplace:
        raise promotion.error(
            ArgumentError, "fnp.fill_diagonal cannot change an array in place", "pass inplace=False and use the result"
        )
    a = arr(a, "fnp.fill_diagonal")
    shape = aval_of(a).shape
    if len(shape) < 2 or (len(shape) > 2 and len(set(shape)) > 1):
        raise promotion.error(
            ShapeError,
            f"fnp.fill_diagonal takes a matrix, or an array whose dimensions all have one size, got the shape {shape}",
            "slice or reshape it before",
        )
    columns = max(shape[1], 1)
    places = np.arange(0, shape[0] * columns, columns + 1) if wrap and len(shape) == 2 else None
    index = (np.arange(min(shape)),) * len(shape) if places is None else divmod(places, columns)
    given = asarray(val)
    if given.ndim:
        count = len(index[0])
        if count and not given.size:
            raise promotion.error(ShapeError, f"fnp.fill_diagonal with {aval_of(given)!r}", "give at least one number")
        val = given.ravel()[np.arange(count) % max(given.size, 1)]
    return asarray(a).at[index].set(val)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """Indices of the main diagonal.

    Args:
        n: int: size of each dimension.
        ndim: int: number of dimensions.

    Returns:
        A tuple of `ndim` integer arrays of shape (n,).

    >>> [i.tolist() for i in fnp.diag_indices(2)]
    [[0, 1], [0, 1]]
    """
    return (asarray(np.arange(operator.index(n), dtype=dtypes.default_int())),) * operator.index(ndim)


def _triangle_of(n: Any, k: Any, m: Any) -> tuple[int, int, int | None]:
    return operator.index(n), operator.index(k), None if m is None else operator.index(m)


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Indices of the lower triangle of a matrix.

    Args:
        n: int: number of rows.
        k: int: the diagonal that bounds the triangle; above the main one if positive.
        m: int: number of columns; `n` if None.

    Returns:
        A pair of integer arrays: rows and columns.

    >>> [i.tolist() for i in fnp.tril_indices(2)]
    [[0, 1, 1], [0, 0, 1]]
    """
    rows, columns = (asarray(i.astype(dtypes.default_int())) for i in np.tril_indices(*_triangle_of(n, k, m)))
    return rows, columns


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Indices of the upper triangle of a matrix.

    Args:
        n: int: number of rows.
        k: int: the diagonal that bounds the triangle; above the main one if positive.
        m: int: number of columns; `n` if None.

    Returns:
        A pair of integer arrays: rows and columns.

    >>> [i.tolist() for i in fnp.triu_indices(2)]
    [[0, 0, 1], [0, 1, 1]]
    """
    rows, columns = (asarray(i.astype(dtypes.default_int())) for i in np.triu_indices(*_triangle_of(n, k, m)))
    return rows, columns
