"""Statistics of samples: the most frequent value, ranks, the error of the mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from functorch_like import dtypes, lax
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import axis_of
from functorch_like.numpy.operands import given
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


class ModeResult(NamedTuple):
    """The most frequent values, and how often they occur."""

    mode: Array
    count: Array


def _along(a: Any, axis: int | None, name: str, policy: str, policies: tuple[str, ...]) -> tuple[Any, int]:
    if policy not in policies:
        raise promotion.error(
            ArgumentError, f"stats.{name} with nan_policy={policy!r}", f"use one of {', '.join(policies)}"
        )
    (a,) = given(a)
    a = fnp.asarray(a)
    if axis is None:
        return fnp.ravel(a), 0
    return a, axis_of(axis, aval_of(a).ndim, f"stats.{name}")


def _runs(ordered: Any) -> Any:
    """Return True where, along the last axis of sorted values, another value begins."""
    new = ordered[..., 1:] != ordered[..., :-1]
    both = (ordered[..., 1:] != ordered[..., 1:]) & (ordered[..., :-1] != ordered[..., :-1])  # NaN equals NaN here
    first = fnp.ones((*aval_of(ordered).shape[:-1], min(1, aval_of(ordered).shape[-1])), bool)
    return fnp.concatenate([first, new & ~both], -1)


def mode(a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False) -> ModeResult:
    """The most frequent value along an axis; of equally frequent ones the least.

    Args:
        a: array of real numbers.
        axis: the axis; None for the flattened array.
        nan_policy: "propagate" counts NaN as a value like any other, "omit" leaves it out.
        keepdims: keep the reduced axis, with size 1.

    Returns:
        The values, and how often they occur.

    Raises:
        ArgumentError: for another policy.

    >>> [x.tolist() for x in ft.scipy.stats.mode([3, 1, 3, 2])]
    [3, 2]
    """
    flat, d = _along(a, axis, "mode", nan_policy, ("propagate", "omit"))
    value, count = _mode(flat, d=d, omit=nan_policy == "omit")
    if keepdims:
        rank = 1 if axis is not None else max(fnp.ndim(a), 1)
        value, count = (fnp.expand_dims(x, d if axis is not None else tuple(range(rank))) for x in (value, count))
    return ModeResult(value, count)


@eager_jit(static=("d", "omit"))
def _mode(a: Any, d: int, omit: bool) -> tuple[Any, Any]:
    x = fnp.sort(fnp.moveaxis(a, d, -1))
    lead, n = aval_of(x).shape[:-1], aval_of(x).shape[-1]
    if not n:
        return fnp.full(lead, fnp.nan, dtypes.inexact_dtype(aval_of(x).dtype)), fnp.zeros(lead, dtypes.default_int())
    places = fnp.arange(n)
    since = lax.cummax(fnp.where(_runs(x), places, 0), axis=len(lead))
    count = places - since + 1
    if omit and dtypes.is_float(aval_of(x).dtype):
        count = fnp.where(x != x, 0, count)
    best = fnp.argmax(count, -1, keepdims=True)
    value, often = (fnp.take_along_axis(v, best, -1)[..., 0] for v in (x, count))
    return fnp.where(often == 0, fnp.nan, value) if dtypes.is_float(aval_of(x).dtype) else value, often


_METHODS = ("average", "min", "max", "dense", "ordinal")


def rankdata(a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate") -> Array:
    """The rank of each element among those along an axis, counted from 1.

    Args:
        a: array of real numbers.
        method: for equal elements: "average", "min" or "max" of the ranks that they share; "dense" is "min" without
            gaps; "ordinal" goes by their order.
        axis: the axis; None for the flattened array.
        nan_policy: "propagate" gives NaN for all elements if there is a NaN; "omit" for it alone.

    Returns:
        An array of the shape of a, flattened if `axis` is None; floating point where NaN or averages need it.

    Raises:
        ArgumentError: for another method or policy.

    >>> ft.scipy.stats.rankdata([3.0, 1.0, 3.0]).tolist()
    [2.5, 1.0, 2.5]
    """
    if method not in _METHODS:
        raise promotion.error(
            ArgumentError, f"stats.rankdata with method={method!r}", f"use one of {', '.join(_METHODS)}"
        )
    flat, d = _along(a, axis, "rankdata", nan_policy, ("propagate", "omit"))
    return _rankdata(flat, d=d, method=method, omit=nan_policy == "omit")


@eager_jit(static=("d", "method", "omit"))
def _rankdata(a: Any, d: int, method: str, omit: bool) -> Any:
    x = fnp.moveaxis(a, d, -1)
    n = aval_of(x).shape[-1]
    order = fnp.argsort(x)
    back = fnp.argsort(order)
    places, ordered = fnp.arange(n), fnp.take_along_axis(x, order, -1)
    new = _runs(ordered)
    last = aval_of(x).ndim - 1
    low = lax.cummax(fnp.where(new, places, 0), axis=last) + 1
    ends = fnp.concatenate([new[..., 1:], fnp.ones_like(new[..., :1])], -1)
    high = lax.cummin(fnp.where(ends, places, max(n - 1, 0)), axis=last, reverse=True) + 1
    real = dtypes.default_float() if n < 2**23 else dtypes.float64
    if method == "average":
        ranks = promotion.convert(low + high, real) / 2
    else:
        dense = fnp.cumsum(fnp.where(new, 1, 0), -1)
        ranks = {"min": low, "max": high, "dense": dense, "ordinal": places + 1 + 0 * low}[method]
    ranks = fnp.take_along_axis(ranks, back, -1)
    if dtypes.is_float(aval_of(x).dtype):
        nan = x != x
        nan = nan if omit else fnp.any(nan, -1, keepdims=True)
        ranks = fnp.where(nan, fnp.nan, promotion.convert(ranks, real))
    return fnp.moveaxis(ranks, -1, d)


def sem(
    a: ArrayLike, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False
) -> Array:
    """The standard error of the mean: the standard deviation over the root of the number of elements.

    Args:
        a: array.
        axis: the axis; None for the flattened array.
        ddof: the variance is divided by the number of elements minus this.
        nan_policy: "propagate", or "omit" to leave NaN out.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        Floats, without the axis.

    Raises:
        ArgumentError: for another policy.

    >>> round(float(ft.scipy.stats.sem([1.0, 3.0])), 4)
    1.0
    """
    _along(a, axis, "sem", nan_policy, ("propagate", "omit"))
    (a,) = given(a)
    return _sem(fnp.asarray(a), axis=axis, ddof=ddof, omit=nan_policy == "omit", keepdims=bool(keepdims))


@eager_jit(static=("axis", "ddof", "omit", "keepdims"))
def _sem(a: Any, axis: int | None, ddof: int, omit: bool, keepdims: bool) -> Any:
    a = promotion.to_inexact(a)
    seen = a == a if omit else None
    spread = fnp.std(a, axis, ddof=ddof, keepdims=keepdims, where=seen)
    number = fnp.sum(fnp.where(a == a if omit else True, fnp.ones_like(fnp.real(a)), 0), axis, keepdims=keepdims)
    return spread / fnp.sqrt(number)
