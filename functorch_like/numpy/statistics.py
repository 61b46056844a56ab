"""Means, variances and standard deviations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from functorch_like import dtypes
from functorch_like.core import Tracer, aval_of
from functorch_like.errors import ArgumentError
from functorch_like.numpy import promotion, reductions
from functorch_like.numpy.axes import axes_of, hashable, ordered_axes
from functorch_like.numpy.logic import truth
from functorch_like.primitives import elementwise, structural
from functorch_like.transforms.eager_jit import eager_jit, with_kernel

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, Axis, DTypeLike

_STATIC = ("axis", "dtype", "keepdims")


@with_kernel(1, values=("where",))
def mean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Mean over axes.

    Args:
        a: array; integers and booleans become the default float. 16-bit floats are summed in 32 bits.
        axis: int, tuple of ints, or None for all.
        dtype: dtype to compute in.
        out: not supported: arrays are immutable.
        keepdims: keep the reduced axes, with size 1.
        where: boolean array: the elements to take.

    Returns:
        An array without the reduced axes, in floating point.

    Raises:
        ShapeError: where there is no such axis.

    >>> float(fnp.mean(fnp.asarray([1.0, 2.0, 6.0])))
    3.0
    """
    promotion.no_out(out, "fnp.mean")
    call = _mean.inline if isinstance(a, Tracer) else _mean
    (where,) = promotion.numbers(where)
    return call(*promotion.numbers(a), hashable(axis), reductions._dtype(dtype), bool(keepdims), where)


@eager_jit(static=_STATIC, checked=True)
def _mean(a: Any, axis: Any, dtype: Any, keepdims: bool, where: Any = None) -> Any:
    x = reductions.plain(a)
    out = dtype or dtypes.inexact_dtype(aval_of(x).dtype)
    kind, weak = dtypes.accumulator(out), aval_of(x).weak_type and dtype is None
    counts = aval_of(x).dtype == dtypes.bool_  # of which integers are exact, and faster
    x = x if counts else promotion.convert(x, kind, weak)
    total = reductions._sum.inline(x, axis, None, keepdims, None, where)
    total = promotion.convert(total, kind, weak) if counts else total
    return promotion.convert(
        elementwise.div(total, _counted(x, axis, keepdims, where, total)), out, aval_of(total).weak_type
    )


def _counted(x: Any, axis: Any, keepdims: bool, where: Any, like: Any) -> Any:
    """Return the number of elements of each result, in the shape and dtype of `like`."""
    aval = aval_of(x)
    if where is None:
        return structural.full_like(like, reductions.count(aval.shape, axes_of(axis, aval.ndim, "fnp.mean")))
    _, mask = promotion.broadcast_arrays(x, truth(where))
    return promotion.convert(reductions._sum.inline(mask, axis, None, keepdims), aval_of(like).dtype)


@with_kernel(1, values=("where", "mean"))
def var(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: int | float | None = None,
) -> Array:
    """Variance over axes: the mean of |a - mean(a)|**2.

    Args:
        a: array; integers and booleans become the default float.
        axis: int, tuple of ints, or None for all.
        dtype: dtype to compute in.
        out: not supported: arrays are immutable.
        ddof: the sum is divided by the number of elements minus this.
        keepdims: keep the reduced axes, with size 1.
        where: boolean array: the elements to take.
        mean: the mean, if it is known already, with the reduced axes kept.
        correction: the array API's name for `ddof`.

    Returns:
        An array without the reduced axes, of real floats.

    >>> float(fnp.var(fnp.asarray([1.0, 3.0])))
    1.0
    """
    promotion.no_out(out, "fnp.var")
    return _spread(_var, a, axis, dtype, keepdims, one_name(ddof, correction, "fnp.var"), where, mean)


def one_name(ddof: Any, correction: Any, what: str) -> Any:
    """Return the number to subtract from that of the elements, which has two names; raise where both are used."""
    if correction is not None and ddof:
        why = f"{what} got both ddof={ddof} and correction={correction}"
        raise promotion.error(ArgumentError, why, "give one: they are two names of the same number")
    return ddof if correction is None else correction


def _spread(measure: Any, a: Any, axis: Any, dtype: Any, keepdims: Any, ddof: Any, where: Any, mean: Any) -> Any:
    (a,), (where,), (mean,) = promotion.numbers(a), promotion.numbers(where), promotion.numbers(mean)
    return measure(a, hashable(axis), reductions._dtype(dtype), bool(keepdims), ddof, where, mean)


@eager_jit(static=(*_STATIC, "ddof"), checked=True)
def _var(a: Any, axis: Any, dtype: Any, keepdims: bool, ddof: float, where: Any = None, mean: Any = None) -> Any:
    x = reductions.plain(a)
    result_dtype = dtype or dtypes.inexact_dtype(aval_of(x).dtype)
    x = promotion.convert(x, dtypes.accumulator(result_dtype), aval_of(x).weak_type and dtype is None)
    x = reductions._masked(x, where, 0)  # elements left out must not change derivatives
    centre = _mean.inline(x, axis, None, True, where) if mean is None else promotion.convert(mean, aval_of(x).dtype)
    gap = elementwise.sub(*promotion.promote_and_broadcast(x, centre))
    square = (
        elementwise.real(elementwise.mul(gap, elementwise.conj(gap)))
        if aval_of(gap).dtype.kind == "c"
        else elementwise.square(gap)
    )
    total = reductions._sum.inline(square, axis, None, keepdims, None, where)
    n = _counted(x, axis, keepdims, where, total)
    n = elementwise.sub(n, structural.full_like(n, ddof)) if ddof else n
    n = elementwise.max(n, structural.full_like(n, 0))
    return promotion.convert(elementwise.div(total, n), dtypes.real_part(result_dtype), aval_of(total).weak_type)


@with_kernel(1, values=("where", "mean"))
def std(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: int | float | None = None,
) -> Array:
    """Standard deviation over axes: the square root of `var`, with the same arguments.

    Args:
        a: array.
        axis: int, tuple of ints, or None for all axes.
        dtype: dtype to convert to first.
        out: not supported: arrays are immutable.
        ddof: number that is subtracted from the count in the denominator.
        keepdims: keep the reduced axes, with size 1.
        where: boolean array, broadcast to `a`: the elements to take.
        mean: mean of `a` over these axes with the axes kept, if it is known.
        correction: the array API's name for `ddof`.

    Returns:
        An array without the reduced axes, of real floats.

    >>> float(fnp.std(fnp.asarray([1.0, 3.0])))
    1.0
    """
    promotion.no_out(out, "fnp.std")
    return _spread(_std, a, axis, dtype, keepdims, one_name(ddof, correction, "fnp.std"), where, mean)


@eager_jit(static=(*_STATIC, "ddof"), checked=True)
def _std(a: Any, axis: Any, dtype: Any, keepdims: bool, ddof: float, where: Any = None, mean: Any = None) -> Any:
    return deviation(_var, a, axis, dtype, keepdims, ddof, where, mean)


def deviation(variance: Any, x: Any, axis: Any, dtype: Any, *rest: Any) -> Any:
    """Return the square root of a variance, rounded once to narrow floats."""
    own = dtype or dtypes.inexact_dtype(aval_of(x).dtype)
    wide = dtypes.accumulator(own)
    if wide == own:
        return elementwise.sqrt(variance.inline(x, axis, dtype, *rest))
    return promotion.convert(elementwise.sqrt(variance.inline(x, axis, wide, *rest)), own)


@overload
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: Literal[False] = False,
    keepdims: bool = False,
) -> Array: ...
@overload
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    *,
    returned: Literal[True],
    keepdims: bool = False,
) -> tuple[Array, Array]: ...
@with_kernel(1, values=("weights",))
def average(
    a: ArrayLike, axis: Axis = None, weights: ArrayLike | None = None, returned: bool = False, keepdims: bool = False
) -> Any:
    """Weighted mean over axes.

    Args:
        a: array.
        axis: int, tuple of ints, or None for all.
        weights: array of the shape of `a`, or of the sizes of the axes in their order; equal weights if None.
        returned: return the sum of the weights too.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        An array without the reduced axes, in floating point; with `returned` a pair of it and the sum of the weights.

    >>> float(fnp.average(fnp.asarray([1.0, 4.0]), weights=fnp.asarray([2.0, 1.0])))
    2.0
    """
    if weights is None:
        out = mean(a, axis, keepdims=keepdims)
        total = elementwise.div(
            structural.full_like(out, aval_of(a).size), structural.full_like(out, aval_of(out).size or 1)
        )
    else:
        out, total = _average(a, weights, hashable(axis), bool(keepdims))
    return (out, total) if returned else out


@eager_jit(static=("axis", "keepdims"))
def _average(a: Any, weights: Any, axis: Any, keepdims: bool) -> tuple[Any, Any]:
    shape = aval_of(a).shape
    if aval_of(weights).shape != shape:
        axes = ordered_axes(axis, len(shape), "fnp.average")
        if axis is None or tuple(shape[d] for d in axes) != aval_of(weights).shape:
            raise promotion.error(
                ArgumentError,
                f"weights {aval_of(weights)!r} do not fit {aval_of(a)!r} along axis={axis}",
                "give weights of the shape of the array, or of the sizes of the axes in their order",
            )
        weights = structural.transpose(weights, permutation=tuple(sorted(range(len(axes)), key=axes.__getitem__)))
        weights = structural.broadcast_in_dim(weights, shape=shape, broadcast_dimensions=tuple(sorted(axes)))
    a, weights = promotion.align_inexact(a, weights)
    dtype = aval_of(a).dtype
    a, weights = (promotion.convert(v, dtypes.accumulator(dtype)) for v in (a, weights))
    total = reductions._sum.inline(weights, axis, None, keepdims)
    out = elementwise.div(reductions._sum.inline(elementwise.mul(a, weights), axis, None, keepdims), total)
    return promotion.convert(out, dtype), promotion.convert(total, dtype)
