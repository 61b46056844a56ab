"""Running sums, products and extremes; differences; integrals."""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import axis_of
from functorch_like.numpy.coordinates import distance
from functorch_like.numpy.creation import asarray
from functorch_like.numpy.joining import _cut, concatenate
from functorch_like.numpy.operands import given
from functorch_like.numpy.reductions import _dtype, _widened, plain
from functorch_like.numpy.shapes import arr, expand_dims, moveaxis, ndim
from functorch_like.numpy.unary import _isfinite
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.reductions import cumulative
from functorch_like.transforms.custom.custom_jvp import custom_jvp
from functorch_like.transforms.eager_jit import eager_jit, with_kernel

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike, NestedArrayLike


def _running(primitive: Any, name: str) -> Any:
    def body(x: Any, axis: Any, dtype: Any, reverse: bool = False) -> Any:
        x = _widened(plain(x), dtype)
        if axis is None:
            x, axis = structural.reshape(x, shape=(aval_of(x).size,)), 0
        d = axis_of(axis, aval_of(x).ndim, f"fnp.{name}")
        if aval_of(x).dtype == dtypes.bool_:  # asked for as dtype: a sum is "or", a product "and"
            counts = primitive(promotion.convert(x, dtypes.default_int()), axis=d, reverse=reverse)
            return promotion.convert(counts, dtypes.bool_)
        return primitive(x, axis=d, reverse=reverse)

    body.__name__ = name
    return eager_jit(static=("axis", "dtype", "reverse"))(body)


_cumsum, _cumprod = _running(cumulative.cumsum, "cumsum"), _running(cumulative.cumprod, "cumprod")


@with_kernel(1)
def cumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Running sum along an axis.

    Args:
        a: array; booleans and small integers are summed in the default integer dtype.
        axis: the axis; None for the flattened array.
        dtype: dtype to convert to first.
        out: not supported: arrays are immutable.

    Returns:
        An array of the shape of `a`; of one dimension if axis is None. Booleans and narrow integers become the default
        int.

    >>> fnp.cumsum(fnp.asarray([1, 2, 3])).tolist()
    [1, 3, 6]
    """
    promotion.no_out(out, "fnp.cumsum")
    return _cumsum(*promotion.numbers(a), axis, _dtype(dtype))


def cumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Running product along an axis; arguments as for `cumsum`.

    Args:
        a: array.
        axis: int; None for the flattened array.
        dtype: dtype to multiply in.
        out: not supported: arrays are immutable.

    Returns:
        An array of the shape of `a`, or flattened.

    >>> fnp.cumprod(fnp.asarray([1, 2, 3])).tolist()
    [1, 2, 6]
    """
    promotion.no_out(out, "fnp.cumprod")
    return _cumprod(*promotion.numbers(a), axis, _dtype(dtype))


def cumulative_sum(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """Running sum along an axis: the array API's name for `cumsum`.

    Args:
        x: array; booleans and small integers are summed in the default integer dtype.
        axis: the axis; may be left out if there is only one.
        dtype: dtype to convert to first.
        include_initial: put 0 in front.

    Returns:
        An array of the shape of x; one longer along the axis with `include_initial`.

    Raises:
        ShapeError: where axis is left out and x does not have exactly one dimension.

    >>> fnp.cumulative_sum(fnp.asarray([1, 2, 3]), include_initial=True).tolist()
    [0, 1, 3, 6]
    """
    return _from_initial(cumsum, x, axis, dtype, include_initial, 0)


def cumulative_prod(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """Running product along an axis, optionally with 1 in front; arguments as for `cumulative_sum`.

    Args:
        x: array.
        axis: int; may be left out if there is only one dimension.
        dtype: dtype to multiply in.
        include_initial: put 1 in front.

    Returns:
        An array of the shape of x; one longer along the axis with `include_initial`.

    >>> fnp.cumulative_prod(fnp.asarray([1, 2, 3]), include_initial=True).tolist()
    [1, 1, 2, 6]
    """
    return _from_initial(cumprod, x, axis, dtype, include_initial, 1)


def _from_initial(running: Any, x: Any, axis: int | None, dtype: Any, include_initial: bool, first: int) -> Any:
    what = f"fnp.cumulative_{running.__name__[3:]}"
    x = arr(x, what)
    if ndim(x) == 0 or (axis is None and ndim(x) != 1):
        why = f"{what} takes an axis of the array, got {aval_of(x)!r} with axis={axis}"
        raise promotion.error(
            ShapeError, why, "give an array of one dimension or more; with more than one, give the axis, too"
        )
    d = axis_of(axis or 0, ndim(x), what)
    out = running(x, d, dtype)
    if not include_initial:
        return out
    shape = aval_of(out).shape
    return concatenate([structural.full((*shape[:d], 1, *shape[d + 1 :]), first, aval_of(out).dtype), out], d)


@with_kernel(1, values=("prepend", "append"))
def diff(
    a: ArrayLike,
    n: int = 1,
    axis: int = -1,
    prepend: NestedArrayLike | None = None,
    append: NestedArrayLike | None = None,
) -> Array:
    """Differences of neighbouring elements along an axis.

    Args:
        a: array.
        n: the order.
        axis: the axis.
        prepend: number or array to join in front first.
        append: number or array to join at the end first.

    Returns:
        An array of `a`'s dtype, n shorter along the axis.

    Raises:
        ArgumentError: for negative n.
        ShapeError: for a scalar.

    >>> fnp.diff(fnp.asarray([1, 4, 9])).tolist()
    [3, 5]
    """
    a = arr(a, "fnp.diff")
    n = operator.index(n)
    if n < 0:
        raise promotion.error(ArgumentError, f"fnp.diff takes a non-negative n, got {n}", "use 0 or more")
    if ndim(a) == 0:
        raise promotion.error(ShapeError, "a scalar has no differences", "give an array of one dimension or more")
    d = axis_of(axis, ndim(a), "fnp.diff")
    if not n:  # as in NumPy, nothing is prepended or appended
        return asarray(a)
    ends = []
    for extra in given(a, prepend, append)[1:]:
        if extra is not None:
            extra = asarray(extra)
            if ndim(extra) == 0:
                shape = aval_of(a).shape
                extra = promotion.broadcast(extra, (*shape[:d], 1, *shape[d + 1 :]))
        ends.append([] if extra is None else [extra])
    if prepend is not None or append is not None:
        a = concatenate([*ends[0], a, *ends[1]], d)
    return _diff(a, n=n, d=d)


@eager_jit(static=("n", "d"))
def _diff(a: Any, n: int, d: int) -> Any:
    for _ in range(n):
        size = aval_of(a).shape[d]
        if size < 2:
            return _cut(a, d, 0, 0)
        high, low = _cut(a, d, 1, size), _cut(a, d, 0, size - 1)
        a = elementwise.ne(high, low) if aval_of(a).dtype == dtypes.bool_ else elementwise.sub(high, low)
    return a


@with_kernel(1, values=("to_end", "to_begin"))
def ediff1d(ary: ArrayLike, to_end: NestedArrayLike | None = None, to_begin: NestedArrayLike | None = None) -> Array:
    """Differences of neighbouring elements of the flattened array.

    Args:
        ary: array.
        to_end: number or array to put after the differences, flattened and in their dtype.
        to_begin: number or array to put in front of them.

    Returns:
        A one-dimensional array.

    >>> fnp.ediff1d(fnp.asarray([[1, 4], [9, 16]]), to_end=0).tolist()
    [3, 5, 7, 0]
    """
    out = diff(structural.reshape(arr(ary, "fnp.ediff1d"), shape=(aval_of(ary).size,)))
    _, to_begin, to_end = given(out, to_begin, to_end)
    flat = lambda e: promotion.convert(structural.reshape(e, shape=(aval_of(e).size,)), aval_of(out).dtype)
    front, back = ([] if e is None else [flat(asarray(e))] for e in (to_begin, to_end))
    return concatenate([*front, out, *back]) if front or back else out


@with_kernel(1, values=("x", "dx"))
def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """Integral along an axis by the trapezoidal rule.

    Args:
        y: values.
        x: the points of the samples; None for points at equal distances `dx`.
        dx: the distance.
        axis: the axis.

    Returns:
        An array without the axis, in floating point.

    >>> float(fnp.trapezoid(fnp.asarray([1.0, 2.0, 3.0])))
    4.0
    """
    return _trapezoid(*promotion.numbers(y, x, dx), axis=operator.index(axis))


def _sum_and_half_ends(d: int, y: Any) -> tuple[Any, Any]:
    first, last = (structural.reduce_sum(_cut(y, d, k - 1, k), axes=(d,)) for k in (1, aval_of(y).shape[d]))
    ends = elementwise.mul(elementwise.add(first, last), structural.full_like(first, 0.5))
    return structural.reduce_sum(y, axes=(d,)), ends  # the inner elements alone would be copied first


@functools.partial(custom_jvp, nondiff_argnums=(0,))
def _less_half_ends(d: int, y: Any) -> Any:
    """The sum of the elements along dimension d, with half of both ends."""
    total, ends = _sum_and_half_ends(d, y)
    # Infinity less half of infinity is no number, but the sum already is what it should be.
    return elementwise.select_n(_isfinite(ends), total, elementwise.sub(total, ends))


@_less_half_ends.defjvp
def _less_half_ends_jvp(d: int, primals: Any, tangents: Any) -> Any:
    """The function is linear; the choice between its two forms is not."""
    return _less_half_ends(d, *primals), elementwise.sub(*_sum_and_half_ends(d, *tangents))


@eager_jit(static=("axis",), ints=True)
def _trapezoid(y: Any, x: Any, dx: Any, axis: int) -> Any:
    y = promotion.to_inexact(
        y if x is None else promotion.promote(y, x)[0]
    )  # integers combined with float64 keep their digits
    if x is not None and aval_of(x).ndim not in (1, aval_of(y).ndim):
        y, x = (moveaxis(v, axis, -1) for v in (y, x))
        rank, axis = max(aval_of(y).ndim, aval_of(x).ndim), -1
        y, x = (expand_dims(v, tuple(range(rank - aval_of(v).ndim))) for v in (y, x))
    d = axis_of(axis, aval_of(y).ndim, "fnp.trapezoid")
    n = aval_of(y).shape[d]
    if x is None and aval_of(dx).ndim == 0 and n > 1:
        total, width = promotion.promote_and_broadcast(_less_half_ends(d, y), dx)
        return elementwise.mul(total, width)
    middle = elementwise.add(_cut(y, d, min(1, n), n), _cut(y, d, 0, max(n - 1, 0)))
    if x is None:
        width = dx
    else:
        along = 0 if aval_of(x).ndim == 1 else d
        size = aval_of(x).shape[along]
        width = distance(_cut(x, along, min(1, size), size), _cut(x, along, 0, max(size - 1, 0)))
        width = promotion.convert(width, dtypes.inexact_dtype(aval_of(x).dtype))
        if aval_of(x).ndim == 1:
            width = structural.broadcast_in_dim(width, shape=aval_of(middle).shape, broadcast_dimensions=(d,))
    middle, width = promotion.promote_and_broadcast(middle, width)
    half = elementwise.mul(elementwise.mul(middle, width), structural.full_like(middle, 0.5))
    return structural.reduce_sum(half, axes=(d,))
