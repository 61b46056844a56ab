"""Running sums, products and extremes; differences; integrals."""

from __future__ import annotations

import operator
from typing import Any

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.kernels import kernel
from functorch_like.numpy import promotion as P
from functorch_like.numpy.axes import axis_of
from functorch_like.numpy.creation import asarray
from functorch_like.numpy.joining import _cut, concatenate
from functorch_like.numpy.reductions import _dtype, _widened, plain
from functorch_like.numpy.shapes import arr, ndim
from functorch_like.primitives import cumulative as C
from functorch_like.primitives import elementwise as E
from functorch_like.primitives import structure as S


def _running(row: Any, name: str) -> Any:
    def body(x: Any, axis: Any, dtype: Any, reverse: bool = False) -> Any:
        x = _widened(plain(x), dtype)
        if axis is None:
            x, axis = S.reshape(x, shape=(aval_of(x).size,)), 0
        d = axis_of(axis, aval_of(x).ndim, f"fnp.{name}")
        return row(x, axis=d, reverse=reverse)

    body.__name__ = name
    return kernel(static=("axis", "dtype", "reverse"))(body)


_cumsum, _cumprod = _running(C.cumsum, "cumsum"), _running(C.cumprod, "cumprod")


def cumsum(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
    """Running sum along an axis.

    Args:
        a: array; booleans and small integers are summed in the default integer dtype.
        axis: along which; of the flattened array if None.
        dtype: to convert to first.
        out: not supported, arrays are immutable.

    >>> fnp.cumsum(fnp.asarray([1, 2, 3])).tolist()
    [1, 3, 6]
    """
    return _cumsum(*P.numbers(a), axis, _dtype(dtype))


def cumprod(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
    """Running product along an axis; arguments as for `cumsum`.

    >>> fnp.cumprod(fnp.asarray([1, 2, 3])).tolist()
    [1, 2, 6]
    """
    return _cumprod(*P.numbers(a), axis, _dtype(dtype))


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbours along an axis.

    Args:
        a: array.
        n: how often.
        axis: along which.
        prepend: number or array to put in front first.
        append: number or array to put behind first.

    Raises:
        ArgumentError: for negative n.
        ShapeError: for a scalar.

    >>> fnp.diff(fnp.asarray([1, 4, 9])).tolist()
    [3, 5]
    """
    a = arr(a, "fnp.diff")
    n = operator.index(n)
    if n < 0:
        raise P.error(ArgumentError, f"fnp.diff was given n={n}", "use 0 or more")
    if ndim(a) == 0:
        raise P.error(ShapeError, "a scalar has no differences", "give an array of one dimension or more")
    d = axis_of(axis, ndim(a), "fnp.diff")
    ends = []
    for extra in (prepend, append):
        if extra is not None:
            extra = asarray(extra)
            if ndim(extra) == 0:
                shape = aval_of(a).shape
                extra = P.broadcast(extra, (*shape[:d], 1, *shape[d + 1 :]))
        ends.append([] if extra is None else [extra])
    if prepend is not None or append is not None:
        a = concatenate([*ends[0], a, *ends[1]], d)
    return _diff(a, n=n, d=d)


@kernel(static=("n", "d"))
def _diff(a: Any, n: int, d: int) -> Any:
    for _ in range(n):
        size = aval_of(a).shape[d]
        if size < 2:
            return _cut(a, d, 0, 0)
        high, low = _cut(a, d, 1, size), _cut(a, d, 0, size - 1)
        a = E.ne(high, low) if aval_of(a).dtype == dtypes.bool_ else E.sub(high, low)
    return a


def ediff1d(ary: Any) -> Any:
    """Differences of neighbours in the flattened array.

    >>> fnp.ediff1d(fnp.asarray([[1, 4], [9, 16]])).tolist()
    [3, 5, 7]
    """
    return diff(S.reshape(arr(ary, "fnp.ediff1d"), shape=(aval_of(ary).size,)))


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Integral along an axis by the trapezoidal rule.

    Args:
        y: values.
        x: where they are taken; at equal distances `dx` if None.
        dx: the distance.
        axis: along which.

    >>> float(fnp.trapezoid(fnp.asarray([1.0, 2.0, 3.0])))
    4.0
    """
    return _trapezoid(*P.numbers(y, x, dx), axis=operator.index(axis))


@kernel(static=("axis",), ints=True)
def _trapezoid(y: Any, x: Any, dx: Any, axis: int) -> Any:
    y = P.to_inexact(y)
    d = axis_of(axis, aval_of(y).ndim, "fnp.trapezoid")
    n = aval_of(y).shape[d]
    middle = E.add(_cut(y, d, min(1, n), n), _cut(y, d, 0, max(n - 1, 0)))
    if x is None:
        width = dx
    elif aval_of(x).ndim == 1:
        width = _diff.inline(x, 1, 0)
        width = S.broadcast_in_dim(width, shape=aval_of(middle).shape, broadcast_dimensions=(d,))
    else:
        width = _diff.inline(x, 1, d)
    middle, width = P.align(middle, width)
    half = E.mul(E.mul(middle, width), S.full_like(middle, 0.5))
    return S.reduce_sum(half, axes=(d,))
