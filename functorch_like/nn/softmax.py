"""Softmaxes and their relatives, along axes, with elements left out where a mask says so."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import ArrayImpl, Tracer, aval_of
from functorch_like.errors import AxisError, DtypeError, ShapeError
from functorch_like.numpy import promotion as P
from functorch_like.primitives.elementwise import names as E
from functorch_like.primitives.reductions import reductions as R
from functorch_like.primitives.structural import data_movement as S
from functorch_like.transforms.eager_jit import kernel

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, Axis


# --------------------------------------------------------------------------------------------------------- what all use
def axes_of(axis: Any, ndim: int, name: str) -> tuple[int, ...]:
    """Dimensions counted from 0, sorted; None is all.

    Raises:
        ShapeError: where one is not there, or is named twice.
    """
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, (tuple, list, range)) else (axis,)
    if not all(isinstance(a, (int, np.integer)) and -ndim <= a < ndim for a in given):
        raise P.error(AxisError, f"{name} was given axis={axis!r} of an array of rank {ndim}", "name dimensions it has")
    found = sorted(int(a) % ndim for a in given)
    if len(set(found)) != len(found):
        raise P.error(ShapeError, f"{name} was given axis={axis!r}", "name each dimension once")
    return tuple(found)


def array_of(x: Any) -> Any:
    """An array, or a number; lists become NumPy arrays."""
    return x if isinstance(x, (ArrayImpl, Tracer)) or type(x) in P.NUMBERS else np.asarray(x)


def over(row: Any, x: Any, axes: tuple[int, ...]) -> Any:
    """A reduction, repeated back to the shape of its operand."""
    return R.spread(row(x, axes=axes), aval_of(x).shape, axes)


def shift_of(x: Any, axes: tuple[int, ...]) -> Any:
    """The greatest elements along axes, repeated; a constant for derivatives, of which nothing depends on it."""
    return over(R.reduce_max, S.stop_gradient(x), axes)


def floats_of(x: Any, name: str) -> Any:
    """Real numbers as floats."""
    if dtypes.is_complex(aval_of(x).dtype):
        raise P.error(DtypeError, f"nn.{name} takes real numbers, got {aval_of(x)!r}", "take the real part")
    return P.to_inexact(x)


def mask_of(where: Any, x: Any) -> Any:
    """A mask in the shape of x."""
    if aval_of(where).dtype != dtypes.bool_:
        raise P.error(
            DtypeError, f"where, {aval_of(where)!r}, is not of booleans", "compare, or convert with astype(bool)"
        )
    return P.broadcast(where, aval_of(x).shape)


def _without(x: Any, where: Any) -> Any:
    """-inf where the mask is False."""
    return E.select_n(where, S.full_like(x, -math.inf), x)


# -------------------------------------------------------------------------------------------------------------- softmax
def softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """exp(x) / sum(exp(x)), without overflow.

    Args:
        x: array; integers become floats.
        axis: int, or several, or None for all: what the sum goes over.
        where: booleans that broadcast to x; what is False counts as -inf, and where nothing is left all is 0.

    Returns:
        An array of the shape of x.

    Raises:
        ShapeError: where there is no such axis.
        DtypeError: for complex numbers.

    >>> nn.softmax(np.array([0.0, 0.0, 5.0]), where=np.array([True, True, False])).tolist()
    [0.5, 0.5, 0.0]
    """
    x = array_of(x)
    return _softmax(x, where, axes=axes_of(axis, aval_of(x).ndim, "nn.softmax"))


@kernel(static=("axes",))
def _softmax(x: Any, where: Any, axes: tuple[int, ...]) -> Any:
    x = floats_of(x, "softmax")
    if where is None:
        e = E.exp(E.sub(x, shift_of(x, axes)))
        return E.div(e, over(S.reduce_sum, e, axes))
    return masked_softmax(x, mask_of(where, x), axes)


def masked_softmax(x: Any, where: Any, axes: tuple[int, ...]) -> Any:
    """The softmax of what the mask leaves; 0 elsewhere, and where it leaves nothing."""
    zero = S.full_like(x, 0)
    top = shift_of(_without(x, where), axes)
    top = E.select_n(E.eq(top, S.full_like(x, -math.inf)), top, zero)
    # Masked twice: before exp, so that no infinity meets a zero derivative, and after it.
    e = E.select_n(where, zero, E.exp(E.select_n(where, zero, E.sub(x, top))))
    total = over(S.reduce_sum, e, axes)
    return E.div(e, E.select_n(E.eq(total, zero), total, S.full_like(x, 1)))


def log_softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """x - log(sum(exp(x))), without overflow.

    Args:
        x: array; integers become floats.
        axis: int, or several, or None for all: what the sum goes over.
        where: booleans that broadcast to x; what is False counts, and comes out, as -inf.

    Returns:
        An array of the shape of x.

    Raises:
        ShapeError: where there is no such axis.
        DtypeError: for complex numbers.

    >>> np.exp(np.asarray(nn.log_softmax(np.array([1e4, 1e4])))).tolist()
    [0.5, 0.5]
    """
    x = array_of(x)
    return _log_softmax(x, where, axes=axes_of(axis, aval_of(x).ndim, "nn.log_softmax"))


@kernel(static=("axes",))
def _log_softmax(x: Any, where: Any, axes: tuple[int, ...]) -> Any:
    x = floats_of(x, "log_softmax")
    if where is None:
        shifted = E.sub(x, shift_of(x, axes))
        return E.sub(shifted, over(lambda v, axes: E.log(S.reduce_sum(v, axes=axes)), E.exp(shifted), axes))
    where = mask_of(where, x)
    total = R.spread(_logsumexp_of(_without(x, where), axes), aval_of(x).shape, axes)
    total = E.select_n(where, S.full_like(x, 0), total)
    return _without(E.sub(E.select_n(where, S.full_like(x, 0), x), total), where)


# ------------------------------------------------------------------------------------------------------------ logsumexp
def _finite(top: Any) -> Any:
    return E.select_n(E.is_finite(top), S.full_like(top, 0), top)


def _safe_log(total: Any) -> Any:
    """log, with derivative 0 where the result is -inf."""
    empty = E.eq(total, S.full_like(total, 0))
    return E.select_n(empty, E.log(E.select_n(empty, total, S.full_like(total, 1))), S.full_like(total, -math.inf))


def _logsumexp_of(x: Any, axes: tuple[int, ...]) -> Any:
    top = _finite(R.reduce_max(S.stop_gradient(x), axes=axes))
    e = E.exp(E.sub(x, R.spread(top, aval_of(x).shape, axes)))
    return E.add(_safe_log(S.reduce_sum(e, axes=axes)), top)


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
        a: array; integers become floats.
        axis: int, or several, or None for all: what the sum goes over.
        b: factors that broadcast to a; 1 by default.
        keepdims: leave the axes with size 1.
        return_sign: return log(|sum|) and the sign of the sum; otherwise a negative sum gives NaN.
        where: booleans that broadcast to a; what is False is left out.

    Returns:
        An array without the axes, or two. Where nothing is left it is -inf, with derivative 0.

    Raises:
        ShapeError: where there is no such axis, or b does not broadcast.
        DtypeError: for complex numbers.

    >>> round(float(nn.logsumexp(np.array([1000.0, 1000.0]))), 3)
    1000.693
    """
    a = array_of(a)
    axes = axes_of(axis, aval_of(a).ndim, "nn.logsumexp")
    return _logsumexp(a, b, where, axes=axes, keepdims=bool(keepdims), signed=bool(return_sign))


@kernel(static=("axes", "keepdims", "signed"))
def _logsumexp(a: Any, b: Any, where: Any, axes: tuple[int, ...], keepdims: bool, signed: bool) -> Any:
    a = floats_of(a, "logsumexp")
    if b is not None:
        a, b = P.align_inexact(a, floats_of(b, "logsumexp"))
    if where is not None:
        a = _without(a, mask_of(where, a))
    if b is None:
        out = _logsumexp_of(a, axes)
        sign = S.full_like(out, 1) if signed else None
    else:
        a = E.select_n(E.eq(b, S.full_like(b, 0)), a, S.full_like(a, -math.inf))  # 0 times an infinity counts as 0
        top = _finite(R.reduce_max(S.stop_gradient(a), axes=axes))
        e = E.exp(E.sub(a, R.spread(top, aval_of(a).shape, axes)))
        total = S.reduce_sum(E.mul(b, e), axes=axes)
        sign = E.sign(total)
        out = E.add(_safe_log(E.abs(total) if signed else total), top)
    if keepdims:
        shape = tuple(1 if d in axes else n for d, n in enumerate(aval_of(a).shape))
        out, sign = S.reshape(out, shape=shape), None if sign is None else S.reshape(sign, shape=shape)
    return (out, sign) if signed else out


def logmeanexp(x: ArrayLike, axis: Axis = None, where: ArrayLike | None = None, keepdims: bool = False) -> Array:
    """log(mean(exp(x))), without overflow.

    Args:
        x: array; integers become floats.
        axis: int, or several, or None for all: what the mean goes over.
        where: booleans that broadcast to x; what is False is left out.
        keepdims: keep these dimensions, with size 1.

    Raises:
        ShapeError: where there is no such axis.
        DtypeError: for complex numbers.

    >>> round(nn.logmeanexp(np.array([1000.0, 1000.0])).item(), 4)
    1000.0
    """
    x = array_of(x)
    axes = axes_of(axis, aval_of(x).ndim, "nn.logmeanexp")
    mask = np.ones(aval_of(x).shape, bool) if where is None else where
    return _logmeanexp(x, mask, axes=axes, keepdims=bool(keepdims))


@kernel(static=("axes", "keepdims"))
def _logmeanexp(x: Any, where: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    x = floats_of(x, "logmeanexp")
    mask = mask_of(where, x)
    total = logsumexp(x, axis=axes, where=mask, keepdims=keepdims)
    count = S.reduce_sum(P.convert(mask, aval_of(x).dtype), axes=axes)
    return E.sub(total, E.log(S.reshape(count, shape=aval_of(total).shape)))
