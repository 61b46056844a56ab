"""Norms of vectors and matrices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.numpy import promotion, reductions
from functorch_like.numpy.axes import axis_of
from functorch_like.numpy.shapes import arr
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.linalg.svd import svd
from functorch_like.primitives.reductions import reductions as reduction_primitives
from functorch_like.transforms.eager_jit import eager_jit, with_kernel

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, Axis


@with_kernel(1)
def norm(x: ArrayLike, ord: int | float | str | None = None, axis: Axis = None, keepdims: bool = False) -> Array:
    """Norm of vectors or matrices.

    Args:
        x: array.
        ord: order of the norm. Of vectors: a number, inf, -inf or 0 (count of non-zeros); of matrices: "fro", "nuc", 1,
            -1, 2, -2, inf, -inf. By default the square root of the sum of squares.
        axis: int for vectors, pair of ints for matrices; the whole array if None.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        Real floats, without the reduced axes.

    Raises:
        ArgumentError: for an unknown `ord`.

    >>> float(fnp.linalg.norm(fnp.asarray([3.0, 4.0])))
    5.0
    """
    x = arr(x, "fnp.linalg.norm")
    n = aval_of(x).ndim
    if axis is None and ord is not None and n not in (1, 2):
        raise promotion.error(
            ShapeError, f"a norm of order {ord!r} of {aval_of(x)!r}, neither vector nor matrix", "name the axes"
        )
    axes = range(n) if axis is None else axis if isinstance(axis, (list, tuple, range)) else (axis,)
    dims = tuple(axis_of(d, n, "fnp.linalg.norm") for d in axes)
    if len(set(dims)) != len(dims):
        raise promotion.error(ShapeError, f"fnp.linalg.norm over axis={axis}", "name different axes")
    return _norm(x, ord, dims, bool(keepdims))


def _root(total: Any, order: float = 2) -> Any:
    """Return the root of a sum of powers; at zero its derivative is zero, the smallest subgradient of the norm."""
    zero = elementwise.eq(total, structural.full_like(total, 0))
    known = elementwise.select_n(zero, total, structural.full_like(total, 1))
    root = elementwise.sqrt(known) if order == 2 else elementwise.pow(known, structural.full_like(total, 1 / order))
    return elementwise.select_n(zero, root, structural.full_like(total, 0))


def _wide(x: Any) -> tuple[Any, Any]:
    """Convert numbers to the dtype for sums of their powers, and return the dtype of their norm."""
    x = promotion.to_inexact(x)
    dtype = aval_of(x).dtype
    return promotion.convert(x, dtypes.accumulator(dtype)), dtypes.real_part(dtype)


def _squared(x: Any) -> Any:
    return (
        elementwise.real(elementwise.mul(x, elementwise.conj(x)))
        if aval_of(x).dtype.kind == "c"
        else elementwise.square(x)
    )


@eager_jit(static=("ord", "axes", "keepdims"))
def _norm(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    x, dtype = _wide(x)
    shape = aval_of(x).shape
    over = tuple(sorted(axes))
    if ord is None or (ord == "fro" and len(axes) == 2) or (ord == 2 and len(axes) == 1):
        out = _root(structural.reduce_sum(_squared(x), axes=over))
    elif len(axes) == 1:
        out = _vector(elementwise.abs(x), ord, over)
    elif len(axes) == 2 and ord in (1, -1, math.inf, -math.inf):
        first = axes[0] if abs(ord) == 1 else axes[1]
        sums = reductions.keep(structural.reduce_sum(elementwise.abs(x), axes=(first,)), shape, (first,))
        out = (_greatest if ord > 0 else reduction_primitives.reduce_min)(sums, axes=over)
    elif len(axes) == 2 and ord in ("nuc", 2, -2):
        others = [d for d in range(len(shape)) if d not in axes]
        (s,) = svd(structural.transpose(x, permutation=(*others, *axes)), full_matrices=False, compute_uv=False)
        fold = structural.reduce_sum if ord == "nuc" else _greatest if ord == 2 else reduction_primitives.reduce_min
        out = fold(s, axes=(len(others),))
    else:
        raise promotion.error(
            ArgumentError,
            f"fnp.linalg.norm of {len(axes)} axes: ord={ord!r} is unknown",
            "vectors take any number; matrices 'fro', 'nuc', 1, -1, 2, -2, inf and -inf",
        )
    return promotion.convert(reductions.keep(out, shape, over) if keepdims else out, dtype)


def _greatest(sizes: Any, axes: tuple[int, ...]) -> Any:
    """Return the greatest of non-negative numbers; 0, the norm of nothing, where there are none."""
    fold = reduction_primitives.reduce_max if all(aval_of(sizes).shape[d] for d in axes) else structural.reduce_sum
    return fold(sizes, axes=axes)


def _vector(size: Any, ord: Any, axes: tuple[int, ...]) -> Any:
    if ord == math.inf:
        return _greatest(size, axes=axes)
    if ord == -math.inf:
        return reduction_primitives.reduce_min(size, axes=axes)
    if ord == 0:
        return structural.reduce_sum(
            promotion.convert(elementwise.ne(size, structural.full_like(size, 0)), aval_of(size).dtype), axes=axes
        )
    if ord == 1:
        return structural.reduce_sum(size, axes=axes)
    if not isinstance(ord, (int, float)):
        raise promotion.error(ArgumentError, f"a vector norm of order {ord!r}", "use a number, inf or -inf")
    total = structural.reduce_sum(elementwise.pow(size, structural.full_like(size, ord)), axes=axes)
    # Below order 1 it is not a norm, and has no subgradient at 0.
    return _root(total, ord) if ord > 1 else elementwise.pow(total, structural.full_like(total, 1 / ord))


@with_kernel(1)
def vector_norm(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False, ord: int | float | str = 2) -> Array:
    """Norm of vectors: of the whole array taken as one if no axis is given.

    Args:
        x: array.
        axis: int, tuple of ints, or None for all axes.
        keepdims: keep the reduced axes, with size 1.
        ord: number, inf or -inf: the order of the norm.

    Returns:
        Real floats, without the reduced axes.

    >>> float(fnp.linalg.vector_norm(fnp.ones((2, 2))))
    2.0
    """
    x = arr(x, "fnp.linalg.vector_norm")
    n = aval_of(x).ndim
    axes = range(n) if axis is None else axis if isinstance(axis, (list, tuple, range)) else (axis,)
    over = tuple(sorted(axis_of(d, n, "fnp.linalg.vector_norm") for d in axes))
    return _vector_norm(x, ord, over, bool(keepdims))


@eager_jit(static=("ord", "axes", "keepdims"))
def _vector_norm(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    x, dtype = _wide(x)
    out = _root(structural.reduce_sum(_squared(x), axes=axes)) if ord == 2 else _vector(elementwise.abs(x), ord, axes)
    return promotion.convert(reductions.keep(out, aval_of(x).shape, axes) if keepdims else out, dtype)


@with_kernel(1)
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: int | float | str | None = "fro") -> Array:
    """Norm of the matrices in the last two dimensions; orders as for `norm`.

    Args:
        x: array of shape (..., m, n).
        keepdims: keep the reduced axes, with size 1.
        ord: "fro", "nuc", 1, -1, 2, -2, inf or -inf.

    Returns:
        An array of shape (...).

    >>> float(fnp.linalg.matrix_norm(fnp.ones((2, 2))))
    2.0
    """
    return norm(x, ord, (-2, -1), keepdims)
