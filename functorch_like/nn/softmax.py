"""softmax, log_softmax, logsumexp and logmeanexp along axes, with a mask of elements."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import AxisError, DtypeError, ShapeError
from functorch_like.numpy import creation, promotion
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.reductions import makers, reductions
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, Axis


# --------------------------------------------------------------------------------------------------------- shared parts
def axes_of(axis: Any, ndim: int, name: str) -> tuple[int, ...]:
    """Return dimensions counted from 0, sorted; all for None.

    Raises:
        AxisError: for an axis that the array does not have.
        ShapeError: for an axis that is named twice.
    """
    if axis is None:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, (tuple, list, range)) else (axis,)
    if not all(isinstance(a, (int, np.integer)) and -ndim <= a < ndim for a in axes):
        raise promotion.error(
            AxisError, f"{name} got axis={axis!r} for an array of rank {ndim}", "name axes that the array has"
        )
    result = sorted(int(a) % ndim for a in axes)
    if len(set(result)) != len(result):
        raise promotion.error(ShapeError, f"{name} takes different axes, got axis={axis!r}", "name each axis once")
    return tuple(result)


def over(primitive: Any, x: Any, axes: tuple[int, ...]) -> Any:
    """Apply a reduction, and repeat the result to the shape of its operand."""
    return makers.spread(primitive(x, axes=axes), aval_of(x).shape, axes)


def _top(x: Any, axes: tuple[int, ...]) -> Any:
    """Return the greatest real parts along axes; a constant, since no derivative depends on it."""
    fixed = structural.stop_gradient(x)
    return reductions.reduce_max_number(elementwise.real(fixed) if _is_complex(x) else fixed, axes=axes)


def _is_complex(x: Any) -> bool:
    return dtypes.is_complex(aval_of(x).dtype)


def shift_of(x: Any, axes: tuple[int, ...]) -> Any:
    """Return the greatest real parts along axes, repeated, in the dtype of x; a constant."""
    return over(lambda x, axes: promotion.convert(_top(x, axes), aval_of(x).dtype), x, axes)


def floats_of(x: Any, name: str) -> Any:
    """Convert real numbers to floats."""
    if dtypes.is_complex(aval_of(x).dtype):
        raise promotion.error(DtypeError, f"nn.{name} takes real numbers, got {aval_of(x)!r}", "take the real part")
    return promotion.to_inexact(x)


def mask_of(where: Any, x: Any) -> Any:
    """Return a mask in the shape of x."""
    if aval_of(where).dtype != dtypes.bool_:
        raise promotion.error(
            DtypeError, f"where, {aval_of(where)!r}, is not of booleans", "compare, or convert with astype(bool)"
        )
    return promotion.broadcast(where, aval_of(x).shape)


def _without(x: Any, where: Any) -> Any:
    """Return x, with -inf where the mask is False."""
    return elementwise.select_n(where, structural.full_like(x, -math.inf), x)


# -------------------------------------------------------------------------------------------------------------- softmax
def softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """exp(x) / sum(exp(x)), without overflow.

    Args:
        x: array; integers become floats, complex numbers stay complex.
        axis: int, or several, or None for all: the axes to sum over.
        where: booleans that broadcast to x. Elements where it is False count as -inf; if all are, the result is 0.

    Returns:
        An array of the shape of x.

    Raises:
        ShapeError: for an axis that x does not have.
        DtypeError: for a `where` that is not of booleans.

    >>> nn.softmax(np.array([0.0, 0.0, 5.0]), where=np.array([True, True, False])).tolist()
    [0.5, 0.5, 0.0]
    """
    x = creation.operand_of(x)
    return _softmax(x, where, axes=axes_of(axis, aval_of(x).ndim, "nn.softmax"))


def _inverse_of_sum(x: Any, axes: tuple[int, ...]) -> Any:
    total = structural.reduce_sum(x, axes=axes)
    return elementwise.div(structural.full_like(total, 1), total)


@eager_jit(static=("axes",))
def _softmax(x: Any, where: Any, axes: tuple[int, ...]) -> Any:
    x = promotion.to_inexact(x)
    if where is None:
        e = elementwise.exp(elementwise.sub(x, shift_of(x, axes)))
        if aval_of(x).dtype not in (dtypes.float32, dtypes.float64):
            return elementwise.div(e, over(structural.reduce_sum, e, axes))
        # XLA makes such products of quotients, but not of those in gradients.
        return elementwise.mul(e, over(_inverse_of_sum, e, axes))
    return masked_softmax(x, mask_of(where, x), axes)


def masked_softmax(x: Any, where: Any, axes: tuple[int, ...]) -> Any:
    """Return the softmax of the elements in the mask; 0 elsewhere, and for empty masks."""
    zero = structural.full_like(x, 0)
    top = shift_of(_without(x, where), axes)
    top = elementwise.select_n(elementwise.eq(top, structural.full_like(x, -math.inf)), top, zero)
    # Masked twice: before exp, so that no infinity meets a zero derivative, and after it.
    e = elementwise.select_n(where, zero, elementwise.exp(elementwise.select_n(where, zero, elementwise.sub(x, top))))
    total = over(structural.reduce_sum, e, axes)
    return elementwise.div(e, elementwise.select_n(elementwise.eq(total, zero), total, structural.full_like(x, 1)))


def log_softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """x - log(sum(exp(x))), without overflow.

    Args:
        x: array; integers become floats, complex numbers stay complex.
        axis: int, or several, or None for all: the axes to sum over.
        where: booleans that broadcast to x. Elements where it is False count as -inf, also in the result.

    Returns:
        An array of the shape of x.

    Raises:
        ShapeError: for an axis that x does not have.
        DtypeError: for a `where` that is not of booleans.

    >>> np.exp(np.asarray(nn.log_softmax(np.array([1e4, 1e4])))).tolist()
    [0.5, 0.5]
    """
    x = creation.operand_of(x)
    return _log_softmax(x, where, axes=axes_of(axis, aval_of(x).ndim, "nn.log_softmax"))


@eager_jit(static=("axes",))
def _log_softmax(x: Any, where: Any, axes: tuple[int, ...]) -> Any:
    x = promotion.to_inexact(x)
    if where is None:
        shifted = elementwise.sub(x, shift_of(x, axes))
        return elementwise.sub(
            shifted,
            over(lambda v, axes: elementwise.log(structural.reduce_sum(v, axes=axes)), elementwise.exp(shifted), axes),
        )
    where = mask_of(where, x)
    total = makers.spread(_logsumexp_of(_without(x, where), axes), aval_of(x).shape, axes)
    total = elementwise.select_n(where, structural.full_like(x, 0), total)
    return _without(elementwise.sub(elementwise.select_n(where, structural.full_like(x, 0), x), total), where)


# ------------------------------------------------------------------------------------------------------------ logsumexp
def _finite(top: Any) -> Any:
    return elementwise.select_n(elementwise.is_finite(top), structural.full_like(top, 0), top)


def _safe_log(total: Any) -> Any:
    """Return log(x), with derivative 0 where the result is -inf."""
    empty = elementwise.eq(total, structural.full_like(total, 0))
    return elementwise.select_n(
        empty,
        elementwise.log(elementwise.select_n(empty, total, structural.full_like(total, 1))),
        structural.full_like(total, -math.inf),
    )


def _logsumexp_of(x: Any, axes: tuple[int, ...]) -> Any:
    return _log_of(*_sum_of_exponentials(x, None, axes))


def _log_of(total: Any, top: Any) -> Any:
    """Return the logarithm of total * exp(top)."""
    return elementwise.add(_safe_log(total), promotion.convert(top, aval_of(total).dtype))


def _sum_of_exponentials(x: Any, factors: Any, axes: tuple[int, ...]) -> tuple[Any, Any]:
    """Return the sum of factors * exp(x - top), and top, which is real."""
    top = _finite(_top(x, axes))
    shift = promotion.convert(top, aval_of(x).dtype)
    e = elementwise.exp(elementwise.sub(x, makers.spread(shift, aval_of(x).shape, axes)))
    return structural.reduce_sum(e if factors is None else elementwise.mul(factors, e), axes=axes), top


@overload
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: Literal[False] = False,
    where: ArrayLike | None = None,
) -> Array: ...
@overload
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    *,
    return_sign: Literal[True],
    where: ArrayLike | None = None,
) -> tuple[Array, Array]: ...
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Any:
    """log(sum(b exp(a))), without overflow.

    Args:
        a: array; integers become floats, complex numbers stay complex.
        axis: int, or several, or None for all: the axes to sum over.
        b: factors that broadcast to a; 1 by default.
        keepdims: True to keep the axes, with size 1.
        return_sign: True to return log(|sum|) and the sign of the sum, which is sum / |sum| for complex numbers.
            Otherwise a negative sum gives NaN, and a complex one its logarithm with an imaginary part in [-pi, pi].
        where: booleans that broadcast to a; elements where it is False are left out.

    Returns:
        An array without the axes, or two with return_sign. If all elements are left out it is -inf, with derivative 0.

    Raises:
        ShapeError: for an axis that a does not have; if b or where does not broadcast.
        DtypeError: for a `where` that is not of booleans.

    >>> round(float(nn.logsumexp(np.array([1000.0, 1000.0]))), 3)
    1000.693
    """
    a = creation.operand_of(a)
    axes = axes_of(axis, aval_of(a).ndim, "nn.logsumexp")
    return _logsumexp(a, b, where, axes=axes, keepdims=bool(keepdims), signed=bool(return_sign))


@eager_jit(static=("axes", "keepdims", "signed"))
def _logsumexp(a: Any, b: Any, where: Any, axes: tuple[int, ...], keepdims: bool, signed: bool) -> Any:
    a = promotion.to_inexact(a)
    if b is not None:
        a, b = promotion.align_inexact(a, b)
    if where is not None:
        a = _without(a, mask_of(where, a))
    if b is not None:  # 0 times an infinity counts as 0
        zero = elementwise.eq(b, structural.full_like(b, 0))
        a = elementwise.select_n(zero, a, structural.full_like(a, -math.inf))
    total, top = _sum_of_exponentials(a, b, axes)
    sign = None
    if signed:
        sign, total = elementwise.sign(total), elementwise.abs(total)
    out = _log_of(total, top)
    if keepdims:
        shape = tuple(1 if d in axes else n for d, n in enumerate(aval_of(a).shape))
        out, sign = (
            structural.reshape(out, shape=shape),
            None if sign is None else structural.reshape(sign, shape=shape),
        )
    return (out, sign) if signed else out


def logmeanexp(x: ArrayLike, axis: Axis = None, where: ArrayLike | None = None, keepdims: bool = False) -> Array:
    """log(mean(exp(x))), without overflow.

    Args:
        x: array; integers become floats.
        axis: int, or several, or None for all: the axes of the mean.
        where: booleans that broadcast to x; elements where it is False are left out. If all are, the result is NaN.
        keepdims: True to keep these dimensions, with size 1.

    Returns:
        Floats, without the reduced axes.

    Raises:
        ShapeError: for an axis that x does not have.
        DtypeError: for complex numbers; for a `where` that is not of booleans.

    >>> round(nn.logmeanexp(np.array([1000.0, 1000.0])).item(), 4)
    1000.0
    """
    x = creation.operand_of(x)
    axes = axes_of(axis, aval_of(x).ndim, "nn.logmeanexp")
    mask = np.ones(aval_of(x).shape, bool) if where is None else where
    return _logmeanexp(x, mask, axes=axes, keepdims=bool(keepdims))


@eager_jit(static=("axes", "keepdims"))
def _logmeanexp(x: Any, where: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    x = floats_of(x, "logmeanexp")
    mask = mask_of(where, x)
    total = logsumexp(x, axis=axes, where=mask, keepdims=keepdims)
    count = structural.reduce_sum(promotion.convert(mask, aval_of(x).dtype), axes=axes)
    return elementwise.sub(total, elementwise.log(structural.reshape(count, shape=aval_of(total).shape)))
