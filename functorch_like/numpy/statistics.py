"""Means, variances, medians and quantiles; sums along an axis; reductions that skip NaN."""

from __future__ import annotations

from typing import Any

from functorch_like import dtypes
from functorch_like.core import Tracer, aval_of
from functorch_like.errors import ArgumentError
from functorch_like.kernels import kernel
from functorch_like.numpy import promotion as P
from functorch_like.numpy import reductions as N
from functorch_like.numpy.axes import axes_of, hashable
from functorch_like.numpy.logic import truth
from functorch_like.primitives import elementwise as E
from functorch_like.primitives import sorting
from functorch_like.primitives import structure as S

_STATIC = ("axis", "dtype", "keepdims")


def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None
) -> Any:
    """Mean over axes.

    Args:
        a: array; integers and booleans become the default float. 16-bit floats are summed in 32 bits.
        axis: int, tuple of ints, or None for all.
        dtype: to compute in.
        out: not supported, arrays are immutable.
        keepdims: keep the reduced axes, with size 1.
        where: boolean array: which elements to take.

    Raises:
        ShapeError: where there is no such axis.

    >>> float(fnp.mean(fnp.asarray([1.0, 2.0, 6.0])))
    3.0
    """
    call = _mean.inline if isinstance(a, Tracer) else _mean
    return call(*P.numbers(a), hashable(axis), N._dtype(dtype), bool(keepdims), where)


@kernel(static=_STATIC)
def _mean(a: Any, axis: Any, dtype: Any, keepdims: bool, where: Any = None) -> Any:
    x = N.plain(a)
    out = dtype or P.inexact_dtype(aval_of(x).dtype)
    x = P.convert(x, _accumulator(out), aval_of(x).weak_type and dtype is None)
    total = N._sum.inline(x, axis, None, keepdims, None, where)
    return P.convert(E.div(total, _counted(x, axis, keepdims, where, total)), out, aval_of(total).weak_type)


def _accumulator(dtype: Any) -> Any:
    return dtypes.float32 if dtypes.is_float(dtype) and dtype.itemsize < 4 else dtype


def _counted(x: Any, axis: Any, keepdims: bool, where: Any, like: Any) -> Any:
    """How many elements each result is made of, in the shape and dtype of `like`."""
    aval = aval_of(x)
    if where is None:
        return S.full_like(like, N.count(aval.shape, axes_of(axis, aval.ndim, "fnp.mean")))
    _, mask = P.spread(x, truth(where))
    return P.convert(N._sum.inline(mask, axis, None, keepdims), aval_of(like).dtype)


def var(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: int = 0, keepdims: bool = False, *,
    where: Any = None, correction: int | float | None = None,
) -> Any:  # fmt: skip
    """Variance over axes: the mean of |a - mean(a)|**2.

    Args:
        a: array; integers and booleans become the default float.
        axis: int, tuple of ints, or None for all.
        dtype: to compute in.
        out: not supported, arrays are immutable.
        ddof: the sum is divided by the number of elements minus this.
        keepdims: keep the reduced axes, with size 1.
        where: boolean array: which elements to take.
        correction: the array API's name of `ddof`.

    >>> float(fnp.var(fnp.asarray([1.0, 3.0])))
    1.0
    """
    return _spread(_var, a, axis, dtype, keepdims, ddof if correction is None else correction, where)


def _spread(measure: Any, a: Any, axis: Any, dtype: Any, keepdims: Any, ddof: Any, where: Any) -> Any:
    return measure(*P.numbers(a), hashable(axis), N._dtype(dtype), bool(keepdims), ddof, where)


@kernel(static=(*_STATIC, "ddof"))
def _var(a: Any, axis: Any, dtype: Any, keepdims: bool, ddof: float, where: Any = None) -> Any:
    x = N.plain(a)
    given = dtype or P.inexact_dtype(aval_of(x).dtype)
    x = P.convert(x, _accumulator(given), aval_of(x).weak_type and dtype is None)
    centre = _mean.inline(x, axis, None, True, where)
    gap = E.sub(*P.align(x, centre))
    square = E.real(E.mul(gap, E.conj(gap))) if aval_of(gap).dtype.kind == "c" else E.square(gap)
    total = N._sum.inline(square, axis, None, keepdims, None, where)
    n = _counted(x, axis, keepdims, where, total)
    n = E.sub(n, S.full_like(n, ddof)) if ddof else n
    n = E.max(n, S.full_like(n, 0))
    return P.convert(E.div(total, n), dtypes.real_part(given), aval_of(total).weak_type)


def std(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: int = 0, keepdims: bool = False, *,
    where: Any = None, correction: int | float | None = None,
) -> Any:  # fmt: skip
    """Standard deviation over axes: the square root of `var`, with the same arguments.

    >>> float(fnp.std(fnp.asarray([1.0, 3.0])))
    1.0
    """
    return _spread(_std, a, axis, dtype, keepdims, ddof if correction is None else correction, where)


@kernel(static=(*_STATIC, "ddof"))
def _std(a: Any, axis: Any, dtype: Any, keepdims: bool, ddof: float, where: Any = None) -> Any:
    return E.sqrt(_var.inline(a, axis, dtype, keepdims, ddof, where))


def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, keepdims: bool = False) -> Any:
    """Weighted mean over axes.

    Args:
        a: array.
        axis: int, tuple of ints, or None for all.
        weights: array of the shape of `a`, or of the size of one axis; equal weights if None.
        returned: return the sum of the weights too.
        keepdims: keep the reduced axes, with size 1.

    >>> float(fnp.average(fnp.asarray([1.0, 4.0]), weights=fnp.asarray([2.0, 1.0])))
    2.0
    """
    if weights is None:
        out = mean(a, axis, keepdims=keepdims)
        total = E.div(S.full_like(out, aval_of(a).size), S.full_like(out, aval_of(out).size or 1))
    else:
        out, total = _average(a, weights, hashable(axis), bool(keepdims))
    return (out, total) if returned else out


@kernel(static=("axis", "keepdims"))
def _average(a: Any, weights: Any, axis: Any, keepdims: bool) -> tuple[Any, Any]:
    shape = aval_of(a).shape
    if aval_of(weights).shape != shape:
        axes = axes_of(axis, len(shape), "fnp.average")
        if axis is None or tuple(shape[d] for d in axes) != aval_of(weights).shape:
            raise P.error(
                ArgumentError,
                f"weights {aval_of(weights)!r} do not fit {aval_of(a)!r} along axis={axis}",
                "give weights of the shape of the array, or of the size of the axis",
            )
        weights = S.broadcast_in_dim(weights, shape=shape, broadcast_dimensions=axes)
    a, weights = P.align_inexact(a, weights)
    total = N._sum.inline(weights, axis, None, keepdims)
    return E.div(N._sum.inline(E.mul(a, weights), axis, None, keepdims), total), total


# --------------------------------------------------------------------------------------------------- medians, quantiles
def median(a: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    """Median over axes; NaN if there is one.

    >>> float(fnp.median(fnp.asarray([3.0, 1.0, 2.0])))
    2.0
    """
    return quantile(a, 0.5, axis, keepdims=keepdims)


_METHODS = ("linear", "lower", "higher", "nearest", "midpoint")


def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> Any:
    """Quantiles over axes; NaN if there is one.

    Args:
        a: array of real numbers.
        q: from 0 to 1: number or one-dimensional array, which gives the result a first dimension.
        axis: int, tuple of ints, or None for all.
        out: not supported, arrays are immutable.
        overwrite_input: ignored.
        method: between two elements: "linear", "lower", "higher", "nearest" or "midpoint".
        keepdims: keep the reduced axes, with size 1.

    Raises:
        ArgumentError: for another method.

    >>> float(fnp.quantile(fnp.arange(5.0), 0.25))
    1.0
    """
    if method not in _METHODS:
        raise P.error(
            ArgumentError, f"fnp.quantile does not know method={method!r}", f"use one of {', '.join(_METHODS)}"
        )
    return _quantile(*P.numbers(a, q), axis=hashable(axis), method=method, keepdims=bool(keepdims))


def percentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> Any:
    """As `quantile`, with q from 0 to 100.

    >>> float(fnp.percentile(fnp.arange(5.0), 25))
    1.0
    """
    return quantile(a, _hundredth(*P.numbers(q)), axis, None, False, method, keepdims)


@kernel(ints=True)
def _hundredth(q: Any) -> Any:
    q = P.to_inexact(q)
    return E.div(q, S.full_like(q, 100))


@kernel(static=("axis", "method", "keepdims"), ints=True)
def _quantile(a: Any, q: Any, axis: Any, method: str, keepdims: bool) -> Any:
    x = P.to_inexact(a)
    shape, dtype = aval_of(x).shape, aval_of(x).dtype
    axes = axes_of(axis, len(shape), "fnp.quantile")
    others = tuple(d for d in range(len(shape)) if d not in axes)
    n = N.count(shape, axes)
    x = S.transpose(x, permutation=(*others, *axes))
    x = S.reshape(x, shape=(*(shape[d] for d in others), n))
    (x,) = sorting.sort(x, dimension=len(others), is_stable=True, num_keys=1)
    kept = aval_of(x).shape[:-1]
    qs = P.convert(q, dtypes.float64 if dtype == dtypes.float64 else dtypes.float32)
    place = E.mul(qs, S.full_like(qs, n - 1))
    low, high = E.floor(place), E.ceil(place)
    ends = [_pick(x, at, len(kept)) for at in (low, high)]
    part = P.convert(E.sub(place, low), dtype)
    if method == "lower":
        out = ends[0]
    elif method == "higher":
        out = ends[1]
    else:
        if method == "nearest":
            part = E.round(part, rounding_method=1)  # whole: takes one of the two
            odd = E.ne(E.rem(low, S.full_like(low, 2)), S.full_like(low, 0))
            half = E.eq(E.sub(place, low), S.full_like(place, 0.5))
            part = E.select_n(half, part, P.convert(odd, dtype))
        elif method == "midpoint":
            part = E.select_n(E.eq(low, high), S.full_like(part, 0.5), S.full_like(part, 0))
        first = len(aval_of(part).shape)
        part = S.broadcast_in_dim(part, shape=aval_of(ends[0]).shape, broadcast_dimensions=tuple(range(first)))
        zero = S.full_like(part, 0)
        step = E.mul(E.sub(ends[1], ends[0]), part)
        out = E.select_n(E.eq(part, zero), E.add(ends[0], step), ends[0])  # inf - inf must not spoil exact places
    last = S.slice(x, start_indices=(*(0 for _ in kept), n - 1), limit_indices=(*kept, n), strides=None)
    last = S.reshape(last, shape=kept)  # NaN sorts last
    out, last = P.align(out, last)
    out = E.select_n(E.ne(last, last), out, last)
    if keepdims:
        inner = tuple(1 if d in axes else size for d, size in enumerate(shape))
        out = S.reshape(out, shape=(*aval_of(out).shape[: aval_of(q).ndim], *inner))
    return out


def _pick(x: Any, at: Any, lead: int) -> Any:
    """Elements along the last axis at positions that are data: [positions..., others...]."""
    from_end = aval_of(x).shape[-1]
    position = S.iota(dtype=aval_of(at).dtype, shape=(from_end,), dimension=0)
    where, many = aval_of(at).shape, aval_of(x).shape
    full = (*where, *many)
    k = len(where)
    hit = E.eq(
        S.broadcast_in_dim(position, shape=full, broadcast_dimensions=(len(full) - 1,)),
        S.broadcast_in_dim(at, shape=full, broadcast_dimensions=tuple(range(k))),
    )
    values = S.broadcast_in_dim(x, shape=full, broadcast_dimensions=tuple(range(k, len(full))))
    return S.reduce_sum(E.select_n(hit, S.full_like(values, 0), values), axes=(len(full) - 1,))
