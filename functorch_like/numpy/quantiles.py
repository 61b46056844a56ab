"""Medians, quantiles and percentiles, of all elements or of those that are not NaN.

The methods are those of R. J. Hyndman and Y. Fan, "Sample quantiles in statistical packages", The American Statistician
50 (1996), under NumPy's names, and NumPy's older ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import Tracer, aval_of
from functorch_like.errors import ArgumentError, DtypeError
from functorch_like.numpy import promotion, reductions
from functorch_like.numpy.axes import axes_of, hashable
from functorch_like.numpy.operands import given
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.ordering import sort
from functorch_like.primitives.ordering.order_statistics import order_statistics
from functorch_like.primitives.reductions import reductions as reduction_primitives
from functorch_like.primitives.reductions.cumulative import cumsum
from functorch_like.transforms.eager_jit import eager_jit, with_kernel

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, Axis, NestedArrayLike

#: alpha and beta: of n elements, the quantile q stands at n q + alpha + q (1 - alpha - beta) - 1, counted from 0.
_PLACES = {
    "linear": (1.0, 1.0),
    "lower": (1.0, 1.0),
    "higher": (1.0, 1.0),
    "nearest": (1.0, 1.0),
    "midpoint": (1.0, 1.0),
    "inverted_cdf": (0.0, 1.0),
    "averaged_inverted_cdf": (0.0, 1.0),
    "closest_observation": (-0.5, 1.5),
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}

#: Methods whose result jumps where a position becomes whole.
_STEPS = ("lower", "higher", "midpoint", "inverted_cdf", "averaged_inverted_cdf", "closest_observation")

#: Up to this many elements, positions are computed in float32; beyond that in float64, which holds their fractions.
EXACT = 1 << 16


def _index(n: int) -> Any:
    return dtypes.int32 if n < 2**31 else dtypes.int64


def _public(
    a: Any, q: Any, axis: Any, out: None, method: str, keepdims: bool, skip: bool, weights: Any, what: str, end: int = 1
) -> Any:
    promotion.no_out(out, what)
    q = given(a, q)[1] if isinstance(q, (list, tuple)) else q
    if method not in _PLACES:
        raise promotion.error(
            ArgumentError, f"{what}: method={method!r} is unknown", f"use one of {', '.join(_PLACES)}"
        )
    if "c" in (aval_of(a).dtype.kind, aval_of(q).dtype.kind):
        raise promotion.error(DtypeError, f"{what} takes real numbers, got {aval_of(a)!r}", "take fnp.real or fnp.abs")
    _check_range(q, end, what)
    how = {"axis": hashable(axis), "keepdims": bool(keepdims), "skip": skip, "end": end}
    if weights is not None:
        if method != "inverted_cdf":
            why = f"{what} got weights with method={method!r}"
            raise promotion.error(ArgumentError, why, "use method='inverted_cdf', the only one that takes weights")
        a, q, weights = promotion.numbers(a, q, weights)
        return _weighted(a, q, weights, **how)
    return _quantile(*promotion.numbers(a, q), method=method, **how)


def _check_range(q: Any, end: int, what: str) -> None:
    """Raise for known q that are not from 0 to `end`; traced ones give NaN there."""
    if isinstance(q, Tracer):
        return
    values = np.asarray(q).reshape(-1)
    outside = values[~((values >= 0) & (values <= end))]
    if outside.size:
        fix = "divide percentages by 100, or call fnp.percentile" if end == 1 else "give percentages"
        raise promotion.error(ArgumentError, f"{what} takes q from 0 to {end}, got {outside[0]}", fix)


def quantile(
    a: ArrayLike,
    q: NestedArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """Quantiles over axes; NaN if an element is NaN.

    Args:
        a: array of real numbers.
        q: from 0 to 1: number or array, whose dimensions come first in the result. Traced values outside give NaN.
        axis: int, tuple of ints, or None for all.
        out: not supported: arrays are immutable.
        overwrite_input: ignored.
        method: the value between two elements: "linear", "lower", "higher", "nearest", "midpoint", "inverted_cdf",
            "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull",
            "median_unbiased" or "normal_unbiased".
        keepdims: keep the reduced axes, with size 1.
        weights: the multiplicity of each element, of the shape of `a` or of its axes; with "inverted_cdf" alone.

    Returns:
        An array without the reduced axes; the dimensions of q come first. In floating point.

    Raises:
        ArgumentError: for q out of range, another method, or weights that do not fit.
        DtypeError: for complex numbers.

    >>> float(fnp.quantile(fnp.arange(5.0), 0.25))
    1.0
    """
    return _public(a, q, axis, out, method, keepdims, False, weights, "fnp.quantile")


def percentile(
    a: ArrayLike,
    q: NestedArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """Percentiles over axes: `quantile` with q from 0 to 100.

    Args:
        a: array of numbers.
        q: from 0 to 100: number or array, whose dimensions come first in the result. Traced values outside give NaN.
        axis: int, tuple of ints, or None for all axes.
        out: not supported: arrays are immutable.
        overwrite_input: ignored.
        method: the value between two elements, as for `quantile`.
        keepdims: keep the reduced axes, with size 1.
        weights: the multiplicity of each element, of the shape of `a` or of its axes; with "inverted_cdf" alone.

    Returns:
        An array without the reduced axes; the dimensions of q come first. In floating point.

    >>> float(fnp.percentile(fnp.arange(5.0), 25))
    1.0
    """
    return _public(a, q, axis, out, method, keepdims, False, weights, "fnp.percentile", 100)


@with_kernel(1)
def median(
    a: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    """Median over axes; NaN if an element is. Complex numbers are ordered by their real parts, then the imaginary ones.

    Args:
        a: array of numbers.
        axis: int, tuple of ints, or None for all axes.
        out: not supported: arrays are immutable.
        overwrite_input: ignored.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        An array without the reduced axes, in floating point.

    >>> float(fnp.median(fnp.asarray([3.0, 1.0, 2.0])))
    2.0
    """
    if aval_of(a).dtype.kind == "c":
        promotion.no_out(out, "fnp.median")
        return _complex_median(*promotion.numbers(a), axis=hashable(axis), keepdims=bool(keepdims))
    return _public(a, 0.5, axis, out, "linear", keepdims, False, None, "fnp.median")


@eager_jit(static=("axis", "keepdims"))
def _complex_median(a: Any, axis: Any, keepdims: bool) -> Any:
    from functorch_like.numpy import complex_order  # few programs need it

    return complex_order.median(promotion.convert(a, aval_of(a).dtype), axis, keepdims, "median")


def nanquantile(
    a: ArrayLike,
    q: NestedArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """Quantiles over axes of the elements that are not NaN; NaN where there are none.

    Args:
        a: array of numbers.
        q: from 0 to 1: number or array, whose dimensions come first in the result. Traced values outside give NaN.
        axis: int, tuple of ints, or None for all axes.
        out: not supported: arrays are immutable.
        overwrite_input: ignored.
        method: the value between two elements, as for `quantile`.
        keepdims: keep the reduced axes, with size 1.
        weights: the multiplicity of each element, of the shape of `a` or of its axes; with "inverted_cdf" alone.

    Returns:
        An array without the reduced axes; the dimensions of q come first. In floating point.

    >>> float(fnp.nanquantile(fnp.asarray([1.0, fnp.nan, 3.0]), 0.5))
    2.0
    """
    return _public(a, q, axis, out, method, keepdims, True, weights, "fnp.nanquantile")


def nanpercentile(
    a: ArrayLike,
    q: NestedArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """Percentiles over axes of the elements that are not NaN; NaN where there are none.

    Args:
        a: array of numbers.
        q: from 0 to 100: number or array, whose dimensions come first in the result. Traced values outside give NaN.
        axis: int, tuple of ints, or None for all axes.
        out: not supported: arrays are immutable.
        overwrite_input: ignored.
        method: the value between two elements, as for `quantile`.
        keepdims: keep the reduced axes, with size 1.
        weights: the multiplicity of each element, of the shape of `a` or of its axes; with "inverted_cdf" alone.

    Returns:
        An array without the reduced axes; the dimensions of q come first. In floating point.

    >>> float(fnp.nanpercentile(fnp.asarray([1.0, fnp.nan, 3.0]), 50))
    2.0
    """
    return _public(a, q, axis, out, method, keepdims, True, weights, "fnp.nanpercentile", 100)


@with_kernel(1)
def nanmedian(
    a: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    """Median over axes of the elements that are not NaN; NaN where there are none.

    Args:
        a: array of numbers.
        axis: int, tuple of ints, or None for all axes.
        out: not supported: arrays are immutable.
        overwrite_input: ignored.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        An array without the reduced axes, in floating point.

    >>> float(fnp.nanmedian(fnp.asarray([3.0, fnp.nan, 2.0, 1.0])))
    2.0
    """
    return _public(a, 0.5, axis, out, "linear", keepdims, True, None, "fnp.nanmedian")


@eager_jit(static=("axis", "method", "keepdims", "skip", "end"), ints=True)
def _quantile(a: Any, q: Any, axis: Any, method: str, keepdims: bool, skip: bool, end: int) -> Any:
    x = promotion.to_inexact(a)
    shape, dtype = aval_of(x).shape, aval_of(x).dtype
    axes = axes_of(axis, len(shape), "fnp.quantile")
    x = _behind(x, axes)
    n = aval_of(x).shape[-1]
    kept, lead = aval_of(x).shape[:-1], aval_of(q).shape
    qs, valid = _parts(q, end, dtypes.float64 if dtype == dtypes.float64 or n > EXACT else dtypes.float32)
    if not n:
        out = structural.full((*lead, *kept), float("nan"), dtype)
    else:
        full = (*lead, *kept)
        spread = lambda v, dims: structural.broadcast_in_dim(v, shape=full, broadcast_dimensions=tuple(dims))
        numbers = promotion.convert(
            structural.reduce_sum(promotion.convert(elementwise.eq(x, x), dtypes.int32), axes=(len(kept),)),
            aval_of(qs).dtype,
        )
        behind = range(len(lead), len(full))
        # Without NaN the positions are equal in all slices, and need no dimensions for them.
        places, count = (
            (spread(qs, range(len(lead))), spread(numbers, behind)) if skip else (qs, structural.full_like(qs, n))
        )
        low, high, part = _between(places, count, method)
        if not skip and not lead and n < 2**31:
            ends = _neighbours(x, low)
        else:
            (x,) = sort.sort(x, dimension=len(kept), is_stable=True, num_keys=1)  # NaN sorts last
            ends = [_pick(x, at, len(lead) if skip else None) for at in (low, high)]
        part = part if skip else spread(part, range(len(lead)))
        part = promotion.convert(part, dtype)
        zero = structural.full_like(part, 0)
        gap = elementwise.sub(ends[1], ends[0])
        out = elementwise.add(ends[0], elementwise.mul(gap, part))
        # If the distance is infinite or NaN, the weighted mean still gives the right infinity or NaN.
        rest = elementwise.sub(structural.full_like(part, 1), part)
        mean = elementwise.add(elementwise.mul(ends[0], rest), elementwise.mul(ends[1], part))
        out = elementwise.select_n(
            elementwise.is_finite(gap), elementwise.select_n(elementwise.eq(part, zero), mean, ends[0]), out
        )
        none = elementwise.lt(numbers, structural.full_like(numbers, 1 if skip else n))
        known = elementwise.and_(elementwise.not_(spread(none, behind)), spread(valid, range(len(lead))))
        out = elementwise.select_n(known, structural.full_like(out, float("nan")), out)
    return structural.reshape(out, shape=(*lead, *_kept(shape, axes))) if keepdims else out


def _behind(x: Any, axes: tuple[int, ...]) -> Any:
    """Merge the axes into a last dimension."""
    shape = aval_of(x).shape
    others = tuple(d for d in range(len(shape)) if d not in axes)
    x = structural.transpose(x, permutation=(*others, *axes))
    return structural.reshape(x, shape=(*(shape[d] for d in others), reductions.count(shape, axes)))


def _kept(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(1 if d in axes else size for d, size in enumerate(shape))


def _parts(q: Any, end: int, dtype: Any) -> tuple[Any, Any]:
    """Return q scaled from 0 ... `end` to 0 ... 1, and whether it is in that range."""
    q = promotion.convert(q, dtype)
    q = q if end == 1 else elementwise.div(q, structural.full_like(q, end))
    return q, elementwise.and_(
        elementwise.ge(q, structural.full_like(q, 0)), elementwise.le(q, structural.full_like(q, 1))
    )


@eager_jit(static=("axis", "keepdims", "skip", "end"), ints=True)
def _weighted(a: Any, q: Any, weights: Any, axis: Any, keepdims: bool, skip: bool, end: int) -> Any:
    """Return the least element up to which the weights add up to q of their sum."""
    x = promotion.to_inexact(a)
    shape, dtype = aval_of(x).shape, aval_of(x).dtype
    axes = axes_of(axis, len(shape), "fnp.quantile")
    if aval_of(weights).shape not in (shape, tuple(shape[d] for d in axes)):
        raise promotion.error(
            ArgumentError,
            f"weights {aval_of(weights)!r} do not fit {aval_of(a)!r} along axis={axis}",
            "give weights of the shape of the array, or of the sizes of the axes",
        )
    wide = dtypes.float64 if dtypes.float64 in (dtype, aval_of(weights).dtype) else dtypes.float32
    qs, valid = _parts(q, end, wide)
    dims = tuple(range(len(shape))) if aval_of(weights).shape == shape else axes
    w = structural.broadcast_in_dim(
        structural.stop_gradient(promotion.convert(weights, wide)), shape=shape, broadcast_dimensions=dims
    )
    x, w = _behind(x, axes), _behind(w, axes)
    number = elementwise.eq(x, x)
    w = elementwise.select_n(number, structural.full_like(w, 0), w) if skip else w
    last = aval_of(x).ndim - 1
    x, w = sort.sort(x, w, dimension=last, is_stable=True, num_keys=1)
    heap = cumsum(w, axis=last, reverse=False)
    full = (*aval_of(q).shape, *aval_of(x).shape)
    k = aval_of(q).ndim
    heap = structural.broadcast_in_dim(heap, shape=full, broadcast_dimensions=tuple(range(k, len(full))))
    total = structural.broadcast_in_dim(
        structural.reduce_sum(w, axes=(last,)), shape=full, broadcast_dimensions=tuple(range(k, len(full) - 1))
    )
    part = structural.broadcast_in_dim(qs, shape=full, broadcast_dimensions=tuple(range(k)))
    # Elements of weight 0 are never taken, not even for q = 0.
    below = elementwise.or_(
        elementwise.lt(heap, elementwise.mul(part, total)), elementwise.eq(heap, structural.full_like(heap, 0))
    )
    places = structural.reduce_sum(promotion.convert(below, _index(full[-1])), axes=(len(full) - 1,))
    places = elementwise.min(places, structural.full_like(places, full[-1] - 1))
    out = _pick(x, places, k)
    seen = (
        reduction_primitives.reduce_or(number, axes=(last,))
        if skip or not full[-1]
        else reduction_primitives.reduce_and(number, axes=(last,))
    )
    seen = structural.broadcast_in_dim(seen, shape=full[:-1], broadcast_dimensions=tuple(range(k, len(full) - 1)))
    seen = elementwise.and_(
        seen, structural.broadcast_in_dim(valid, shape=full[:-1], broadcast_dimensions=tuple(range(k)))
    )
    out = elementwise.select_n(seen, structural.full_like(out, float("nan")), out)
    return structural.reshape(out, shape=(*aval_of(q).shape, *_kept(shape, axes))) if keepdims else out


def _between(q: Any, n: Any, method: str) -> tuple[Any, Any, Any]:
    """Return the positions of the two elements around quantiles, and the fraction towards the second one."""
    alpha, beta = _PLACES[method]
    fill = lambda v: structural.full_like(q, v)
    last = elementwise.sub(n, fill(1))
    if alpha == beta == 1:
        place = elementwise.mul(q, last)
    else:
        place = elementwise.add(
            elementwise.mul(n, q), elementwise.add(fill(alpha - 1), elementwise.mul(q, fill(1 - alpha - beta)))
        )
    if method in _STEPS:  # a rounding error must not select another element
        near = elementwise.round(place, rounding_method=1)
        error = elementwise.mul(n, fill(4 * float(dtypes.finfo(aval_of(q).dtype).eps)))
        place = elementwise.select_n(elementwise.le(elementwise.abs(elementwise.sub(place, near)), error), place, near)
    low = elementwise.floor(place)
    part = elementwise.sub(place, low)
    whole = elementwise.eq(part, fill(0))
    if method == "lower":
        part = fill(0)
    elif method in ("higher", "inverted_cdf"):
        part = elementwise.select_n(whole, fill(1), fill(0))
    elif method == "midpoint":
        part = elementwise.select_n(whole, fill(0.5), fill(0))
    elif method == "averaged_inverted_cdf":
        part = elementwise.select_n(whole, fill(1), fill(0.5))
    elif method == "nearest":  # of two at equal distance, the one at an even position
        odd = elementwise.ne(elementwise.rem(low, fill(2)), fill(0))
        half = elementwise.eq(part, fill(0.5))
        part = elementwise.select_n(
            half, elementwise.round(part, rounding_method=1), promotion.convert(odd, aval_of(q).dtype)
        )
    elif method == "closest_observation":  # order statistics are counted from 1, so even ones are at odd positions
        even = elementwise.ne(elementwise.rem(low, fill(2)), fill(0))
        part = elementwise.select_n(elementwise.and_(whole, even), fill(1), fill(0))
    # Before the first element both positions are the first one; `_neighbours` would take the second, too.
    part = elementwise.select_n(elementwise.lt(low, fill(0)), part, fill(0))
    inside = lambda v: elementwise.max(elementwise.min(v, last), fill(0))
    return inside(low), inside(elementwise.add(low, fill(1))), part


def _neighbours(x: Any, low: Any) -> list[Any]:
    """Return the elements along the last axis that sorting puts at a position and after it."""
    both = order_statistics(x, promotion.convert(low, dtypes.int32))
    *kept, _ = aval_of(both).shape
    one = lambda k: structural.slice(both, start_indices=(*(0 for _ in kept), k), limit_indices=(*kept, k + 1))
    return [structural.reshape(one(k), shape=tuple(kept)) for k in range(2)]


def _pick(x: Any, at: Any, lead: int | None) -> Any:
    """Return elements along the last axis: [positions..., others...]. With `lead`, positions differ in the others.

    It compares with all positions, which XLA fuses into one pass; the derivative of a gather would need a scatter.
    """
    n, kept = aval_of(x).shape[-1], aval_of(x).shape[:-1]
    k = len(aval_of(at).shape) if lead is None else lead
    at = promotion.convert(at, _index(n))
    full = (*aval_of(at).shape[:k], *kept, n)
    position = structural.iota(dtype=aval_of(at).dtype, shape=full, dimension=len(full) - 1)
    hit = elementwise.eq(
        position, structural.broadcast_in_dim(at, shape=full, broadcast_dimensions=tuple(range(aval_of(at).ndim)))
    )
    values = structural.broadcast_in_dim(x, shape=full, broadcast_dimensions=tuple(range(k, len(full))))
    return structural.reduce_sum(
        elementwise.select_n(hit, structural.full_like(values, 0), values), axes=(len(full) - 1,)
    )
