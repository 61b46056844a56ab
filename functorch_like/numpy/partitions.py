"""Elements classified by order: partitions, bins, and the order of complex numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, DtypeError, ShapeError
from functorch_like.lax.rearranging import top_k as lax_top_k
from functorch_like.lax.slicing import slice_in_dim
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import axis_of, ints_of
from functorch_like.numpy.creation import asarray
from functorch_like.numpy.indexing import take_along_axis
from functorch_like.numpy.shapes import ndim, reshape
from functorch_like.numpy.sorting_searching import METHODS, _searchsorted, argsort, sort
from functorch_like.primitives import elementwise, structural
from functorch_like.transforms.eager_jit import eager_jit, with_kernel

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


def _checked(a: Any, kth: Any, axis: int | None, what: str) -> tuple[Any, int]:
    """Return the array and the axis of its partition, after a check of the places."""
    a = a if promotion.is_array(a) else asarray(a)
    a, axis = (reshape(a, (aval_of(a).size,)), 0) if axis is None else (a, axis)
    d = axis_of(axis, ndim(a), what)
    n = aval_of(a).shape[d]
    for k in ints_of(kth):
        if n and not -n <= k < n:
            raise promotion.error(
                ShapeError, f"{what}: kth={k} is out of bounds for axis {d} of {aval_of(a)!r}", f"use {-n} to {n - 1}"
            )
    return a, d


def partition(
    a: ArrayLike, kth: ArrayLike, axis: int | None = -1, kind: str = "introselect", order: None = None
) -> Array:
    """Reorder elements so that the k-th is where sorting puts it, with none greater before it and none less after it.

    XLA has no fast selection, so all elements are sorted.

    Args:
        a: array.
        kth: int, or sequence of ints.
        axis: the axis; None for the flattened array.
        kind: ignored.
        order: not supported.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        ShapeError: for positions out of bounds.

    >>> fnp.partition(fnp.asarray([3, 1, 2]), 1).tolist()[1]
    2
    """
    a, d = _checked(a, kth, axis, "fnp.partition")
    return sort(a, d)


def argpartition(
    a: ArrayLike, kth: ArrayLike, axis: int | None = -1, kind: str = "introselect", order: None = None
) -> Array:
    """Positions that partition an array; arguments as for `partition`.

    Args:
        a: array.
        kth: int, or sequence of ints: positions whose elements are those of the sorted array.
        axis: int; None for the flattened array.
        kind: ignored.
        order: not supported.

    Returns:
        An array of integers, of the shape of `a`.

    >>> fnp.argpartition(fnp.asarray([3, 1, 2]), 1).tolist()[1]
    2
    """
    a, d = _checked(a, kth, axis, "fnp.argpartition")
    return argsort(a, d)


def sort_complex(a: ArrayLike) -> Array:
    """Sort along the last axis as complex numbers: by real parts, then by imaginary ones.

    Args:
        a: array.

    Returns:
        An array of complex numbers.

    >>> fnp.sort_complex(fnp.asarray([3.0, 1.0])).tolist()
    [(1+0j), (3+0j)]
    """
    a = sort(a)
    return promotion.convert(a, dtypes.complex_of(aval_of(a).dtype))


def top_k(
    a: ArrayLike, k: int, /, *, axis: int = -1, mode: str = "largest", sorted: bool = True
) -> tuple[Array, Array]:
    """The k greatest or least elements along an axis, in order, and their positions.

    Args:
        a: array of real numbers.
        k: the number of elements.
        axis: the axis.
        mode: "largest", or "smallest". NaN counts as greatest.
        sorted: ignored; the elements are always in order, and equal ones keep their order.

    Returns:
        Values and int32 positions, with k elements along the axis.

    Raises:
        ArgumentError: where the axis has fewer elements, and for an unknown mode.

    >>> [x.tolist() for x in fnp.top_k(fnp.asarray([3, 1, 2]), 2, mode="smallest")]
    [[1, 2], [1, 2]]
    """
    if mode not in ("largest", "smallest"):
        raise promotion.error(ArgumentError, f"fnp.top_k: mode={mode!r} is unknown", "use 'largest' or 'smallest'")
    a = a if promotion.is_array(a) else asarray(a)
    d = axis_of(axis, ndim(a), "fnp.top_k")
    (count,) = ints_of((k,))
    n = aval_of(a).shape[d]
    if not 0 <= count <= n:
        raise promotion.error(
            ArgumentError, f"fnp.top_k: k={count} for axis {d} of {aval_of(a)!r}", f"use k from 0 to {n}"
        )
    if mode == "largest":
        return lax_top_k(a, count, axis=d)
    places = slice_in_dim(promotion.convert(argsort(a, d), dtypes.int32), 0, count, axis=d)
    return take_along_axis(a, places, d), places


@with_kernel(2)
def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None) -> Array:
    """The number of the bin that each element belongs to.

    Bin i holds bins[i-1] <= x < bins[i] where the edges ascend, and bins[i-1] > x >= bins[i] where they descend.

    Args:
        x: real numbers.
        bins: the edges, one-dimensional, ascending or descending.
        right: whether bins contain their right edge rather than their left one.
        method: accepted for compatibility with JAX; the search is always a bisection.

    Returns:
        Integers from 0 to len(bins), of the shape of x.

    Raises:
        ShapeError: for edges of another number of dimensions.
        DtypeError: for complex numbers.

    >>> fnp.digitize(fnp.asarray([0.5, 1.0, 9.0]), fnp.asarray([0.0, 1.0, 2.0])).tolist()
    [1, 2, 3]
    """
    bins = bins if promotion.is_array(bins) else asarray(bins)
    x = x if promotion.is_array(x) else asarray(promotion.comparable(x, bins)[0])
    if method not in METHODS:
        raise promotion.error(ArgumentError, f"fnp.digitize: method={method!r} is unknown", "leave method out")
    if ndim(bins) != 1:
        raise promotion.error(
            ShapeError, f"fnp.digitize takes edges in one dimension, got {aval_of(bins)!r}", "ravel them"
        )
    if "c" in (aval_of(x).dtype.kind, aval_of(bins).dtype.kind):
        raise promotion.error(DtypeError, "fnp.digitize takes real numbers", "take fnp.real or fnp.abs")
    return _digitize(x, bins, right=bool(right))


@eager_jit(static=("right",))
def _digitize(x: Any, bins: Any, right: bool) -> Any:
    n = aval_of(bins).size
    side = "left" if right else "right"
    up = _searchsorted.inline(bins, x, side)
    if n < 2:
        return up
    down = _searchsorted.inline(structural.rev(bins, dimensions=(0,)), x, side)
    end = lambda i: structural.reshape(
        structural.slice(bins, start_indices=(i,), limit_indices=(i + 1,), strides=None), shape=()
    )
    ascending = promotion.broadcast(elementwise.ge(end(n - 1), end(0)), aval_of(x).shape)
    return elementwise.select_n(ascending, elementwise.sub(structural.full_like(down, n), down), up)
