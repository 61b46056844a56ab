"""Discrete distributions: booleans, signs, integers, categories."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.backends import random as settings
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, DtypeError, NumberError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import shape_of
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.reductions import reductions
from functorch_like.random.arguments import check_key
from functorch_like.random.cipher import U64
from functorch_like.random.continuous import (
    F32,
    F64,
    Digits,
    checked_mode,
    computed_in,
    gumbels,
    parameter,
    spread,
    unit,
)
from functorch_like.random.generators import raw_bits
from functorch_like.random.jax_numbers import or_jax
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike, Shape

I64 = dtypes.int64


# --------------------------------------------------------------------------------------------------------------- coins
def bernoulli(
    key: ArrayLike, p: ArrayLike = 0.5, shape: Shape | None = None, mode: Literal["low", "high"] = "low"
) -> Array:
    """Booleans that are True with probability p.

    Args:
        key: uint32[2].
        p: number, or array of floats; resolved to 2**-24 in float32, 2**-53 in float64.
        shape: shape of the result; by default that of p.
        mode: "high" resolves p to 2**-53 in float32, too.

    Returns:
        Booleans of that shape.

    Raises:
        ArgumentError: for another mode.
        DtypeError: for anything but a key, or a p that is not a float.
        ShapeError: where p does not broadcast to the shape.

    >>> random.bernoulli(random.key(0), 1.0, (3,)).tolist()
    [True, True, True]
    """
    what = "random.bernoulli"
    aval = aval_of(p)
    if not dtypes.is_float(aval.dtype) and not (isinstance(p, (int, np.integer)) and p in (0, 1)):
        raise promotion.error(DtypeError, f"{what} takes floats as p, got {aval!r}", "give a number from 0.0 to 1.0")
    sizes = aval.shape if shape is None else shape_of(shape, what)
    if settings.are_native():
        dtype = F64 if aval.dtype == F64 and not aval.weak_type else F32
    else:
        dtype = aval.dtype if dtypes.is_float(aval.dtype) else dtypes.default_float()
    digits = checked_mode(mode, what)
    return _bernoulli(check_key(key, what), parameter(p, dtype, sizes, "p"), shape=sizes, dtype=dtype, mode=digits)


@eager_jit(static=("shape", "dtype", "mode"))
@or_jax("discrete.bernoulli")
def _bernoulli(key: Any, p: Any, shape: tuple[int, ...], dtype: Any, mode: Digits) -> Any:
    dtype = dtype if mode == "low" else F64
    return elementwise.lt(unit(key, shape, dtype), spread(p, dtype, shape))


def rademacher(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Random signs: -1 or 1, equally likely.

    Args:
        key: uint32[2].
        shape: shape of the result; int or sequence of ints.
        dtype: int32 by default; any signed integer or float.

    Returns:
        An array of that shape, with elements -1 and 1.

    Raises:
        DtypeError: for anything but a key, or a dtype that cannot hold -1.

    >>> set(random.rademacher(random.key(0), (100,)).tolist()) == {-1, 1}
    True
    """
    result_dtype = dtypes.default_int() if dtype is None else dtypes.as_dtype(dtype)
    if result_dtype not in (*dtypes.SIGNED, *dtypes.FLOATS, *dtypes.COMPLEX):
        raise promotion.error(
            DtypeError,
            f"random.rademacher gives -1 and 1, which {result_dtype.name} cannot hold",
            "use a signed integer or a float",
        )
    return _rademacher(
        check_key(key, "random.rademacher"), shape=shape_of(shape, "random.rademacher"), dtype=result_dtype
    )


@eager_jit(static=("shape", "dtype"))
@or_jax("discrete.rademacher")
def _rademacher(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    word = elementwise.bitcast_convert_type(raw_bits(key, shape, 32), new_dtype=dtypes.int32)
    sign = elementwise.or_(
        elementwise.shift_right_arithmetic(word, structural.full_like(word, 31)), structural.full_like(word, 1)
    )
    return promotion.convert(sign, dtype)


# ------------------------------------------------------------------------------------------------------------ integers
def randint(
    key: ArrayLike, shape: Shape, minval: ArrayLike, maxval: ArrayLike, dtype: DTypeLike | None = None
) -> Array:
    """Integers from minval to maxval - 1, equally likely (to within 2**-32; 2**-64 for 64-bit dtypes).

    Args:
        key: uint32[2].
        shape: shape of the result; int or sequence of ints.
        minval: int, or array of integers that broadcasts to the shape.
        maxval: likewise; where it is not above minval, the result is minval.
        dtype: int32 by default; any integer.

    Returns:
        Integers of that shape.

    Raises:
        DtypeError: for anything but a key, or bounds or a dtype that are not integers.
        NumberError: for an int that the dtype cannot hold (maxval may be one more than the greatest).
        ShapeError: where bounds do not broadcast to the shape.

    >>> x = random.randint(random.key(0), (1000,), -3, 3)
    >>> x.min().item(), x.max().item()
    (-3, 2)
    """
    what = "random.randint"
    key = check_key(key, what)
    result_dtype = dtypes.default_int() if dtype is None else dtypes.as_dtype(dtype)
    if result_dtype not in (*dtypes.SIGNED, *dtypes.UNSIGNED):
        raise promotion.error(
            DtypeError, f"random.randint gives integers, not {result_dtype.name}", "use an integer dtype"
        )
    sizes = shape_of(shape, what)
    wide = result_dtype if result_dtype.itemsize == 8 else I64
    low, first = _bound(minval, result_dtype, sizes, "minval"), promotion.bounds(result_dtype)[0]
    end: Any = maxval
    closed = isinstance(end, (int, np.integer)) and end != first
    high = _bound(end - 1 if closed else end, result_dtype, sizes, "maxval - 1" if closed else "maxval")
    if _exceeds(low, result_dtype):
        low = _clipped(low, dtype=result_dtype)
    if _exceeds(high, result_dtype):
        high, closed = _last(high, dtype=result_dtype), True
    low, high = (structural.full((), v, wide) if isinstance(v, int) else v for v in (low, high))
    return _randint(key, low, high, shape=sizes, dtype=result_dtype, closed=bool(closed))


def _bound(x: Any, dtype: Any, shape: tuple[int, ...], name: str) -> Any:
    """Return a checked bound: a Python int, or an array."""
    if isinstance(x, (int, np.integer)) and not isinstance(x, bool):
        low, high = promotion.bounds(dtype)
        if not low <= x <= high:
            raise promotion.error(
                NumberError, f"{name}={int(x)} is out of bounds for {dtype.name}", f"stay within {low} to {high}"
            )
        return int(x)
    aval = aval_of(x)
    if not dtypes.is_integer(aval.dtype):
        raise promotion.error(DtypeError, f"{name} is an integer, got {aval!r}", "round it first")
    if aval.shape and promotion.broadcast_shapes(aval.shape, shape) != shape:
        raise promotion.error(
            ShapeError,
            f"{name}, {aval!r}, does not broadcast to the shape {shape}",
            "give a shape that it broadcasts to",
        )
    return x


def _exceeds(x: Any, dtype: Any) -> bool:
    """Return True if a bound is an array that may hold integers which a dtype does not."""
    if isinstance(x, int):
        return False
    (least, most), (first, last) = promotion.bounds(aval_of(x).dtype), promotion.bounds(dtype)
    return least < first or most > last


@eager_jit(static=("dtype",))
def _clipped(x: Any, dtype: Any) -> Any:
    """Return the nearest integers that another dtype holds, in that dtype."""
    (least, most), (first, last) = promotion.bounds(aval_of(x).dtype), promotion.bounds(dtype)
    low, high = (structural.full_like(x, v) for v in (max(least, first), min(most, last)))
    return promotion.convert(elementwise.clamp(low, x, high), dtype)


@eager_jit(static=("dtype",))
def _last(end: Any, dtype: Any) -> Any:
    """Return the last integers before `end` in another dtype: its greatest one where `end` is beyond it."""
    whole = min(promotion.bounds(aval_of(end).dtype)[1], promotion.bounds(dtype)[1])
    clipped = _clipped.inline(end, dtype)
    above = elementwise.gt(clipped, structural.full_like(clipped, promotion.bounds(dtype)[0]))
    less = elementwise.and_(above, elementwise.le(end, structural.full_like(end, whole)))
    return elementwise.sub(clipped, promotion.convert(less, dtype))


@eager_jit(static=("shape", "dtype", "closed"))
@or_jax("discrete.randint")
def _randint(key: Any, low: Any, high: Any, shape: tuple[int, ...], dtype: Any, closed: bool) -> Any:
    """Draw integers; with `closed`, `high` is included, since the dtype may not hold the integer after it."""
    wide = dtype if dtype.itemsize == 8 else I64
    low, high = spread(low, wide, shape), spread(high, wide, shape)
    last = (
        high
        if closed
        else elementwise.select_n(elementwise.gt(high, low), low, elementwise.sub(high, structural.full_like(high, 1)))
    )
    start, end = (_unsigned(v) for v in (low, elementwise.max(low, last)))
    span = elementwise.add(elementwise.sub(end, start), structural.full(shape, 1, U64))  # 0 stands for 2**64
    if wide != dtype:
        # A fraction of 64 bits times the span: floor(word * span / 2**64), without overflow.
        word = raw_bits(key, shape, 64)
        top, bottom = _halves(word)
        offset = _down(elementwise.add(elementwise.mul(top, span), _down(elementwise.mul(bottom, span))))
    else:
        words = raw_bits(key, (2, *shape), 64)
        part = lambda i: structural.reshape(
            structural.slice(words, start_indices=(i, *[0] * len(shape)), limit_indices=(i + 1, *shape), strides=None),
            shape=shape,
        )
        first, second = part(0), part(1)
        # A fraction of 128 bits times the span: the high word of first * span, and the carry of the lower words.
        low_word = elementwise.mul(first, span)
        total = elementwise.add(low_word, _high_word(second, span))
        carry = structural.convert_element_type(elementwise.lt(total, low_word), new_dtype=U64)
        offset = elementwise.add(_high_word(first, span), carry)
        offset = elementwise.select_n(elementwise.eq(span, structural.full_like(span, 0)), offset, first)
    return promotion.convert(elementwise.bitcast_convert_type(elementwise.add(start, offset), new_dtype=wide), dtype)


def _unsigned(x: Any) -> Any:
    return elementwise.bitcast_convert_type(x, new_dtype=U64)


def _down(x: Any) -> Any:
    return elementwise.shift_right_logical(x, structural.full_like(x, 32))


def _halves(x: Any) -> tuple[Any, Any]:
    return _down(x), elementwise.and_(x, structural.full_like(x, 0xFFFFFFFF))


def _high_word(x: Any, y: Any) -> Any:
    """Return the upper 64 bits of a product."""
    (x1, x0), (y1, y0) = _halves(x), _halves(y)
    (a1, a0), (b1, b0) = _halves(elementwise.mul(x1, y0)), _halves(elementwise.mul(x0, y1))
    middle = elementwise.add(elementwise.add(a0, b0), _down(elementwise.mul(x0, y0)))
    return elementwise.add(elementwise.add(elementwise.mul(x1, y1), _down(middle)), elementwise.add(a1, b1))


# ---------------------------------------------------------------------------------------------------------- categories
def categorical(
    key: ArrayLike,
    logits: ArrayLike,
    axis: int = -1,
    shape: Shape | None = None,
    replace: bool = True,
    mode: Digits = "low",
) -> Array:
    """Indices, each with a probability proportional to the exponential of its logit.

    The index of the greatest of logits + Gumbel samples (E. J. Gumbel, "Statistical theory of extreme values", 1954).

    Args:
        key: uint32[2].
        logits: array of floats; -inf for categories that are never drawn.
        axis: the dimension of the categories.
        shape: shape of the result, which must end with that of logits without axis; by default that.
        replace: whether an index may be drawn twice from one distribution. If not, the indices of the greatest sums
            are the samples (W. Kool et al., "Stochastic beams and where to find them", arXiv:1903.06059).
        mode: digits of the Gumbel samples, as in `gumbel`.

    Returns:
        int32 indices of that shape.

    Raises:
        ArgumentError: for more indices than categories, without replacement; for another mode.
        DtypeError: for anything but a key, or logits that are not floats.
        ShapeError: where axis is empty or does not exist, or the shape does not end with that of the logits.

    >>> random.categorical(random.key(0), np.array([-np.inf, 0.0]), shape=(3,)).tolist()
    [1, 1, 1]
    """
    what = "random.categorical"
    digits = checked_mode(mode, what)
    aval = aval_of(logits)
    if not dtypes.is_float(aval.dtype):
        raise promotion.error(DtypeError, f"{what} takes float logits, got {aval!r}", "convert them with astype")
    at = check_axis(axis, aval.ndim, what)
    if not aval.shape[at]:
        raise promotion.error(
            ShapeError, f"{what} got no categories along dimension {at} of {aval!r}", "give at least one category"
        )
    batch = (*aval.shape[:at], *aval.shape[at + 1 :])
    sizes = batch if shape is None else shape_of(shape, what)
    if sizes[len(sizes) - len(batch) :] != batch or len(sizes) < len(batch):
        raise promotion.error(
            ShapeError,
            f"the shape {sizes} does not end with {batch}, that of the logits without axis",
            f"use (..., *{batch})",
        )
    lead = sizes[: len(sizes) - len(batch)]
    if replace or not lead:
        return _categorical(check_key(key, what), logits, lead=lead, axis=at, mode=digits)
    if math.prod(lead) > aval.shape[at]:
        raise promotion.error(
            ArgumentError,
            f"{what} draws {math.prod(lead)} of {aval.shape[at]} categories without replacement",
            "draw fewer, or with replacement",
        )
    return _distinct(check_key(key, what), logits, lead=lead, axis=at, mode=digits)


@eager_jit(static=("lead", "axis", "mode"))
@or_jax("discrete.categorical")
def _categorical(key: Any, logits: Any, lead: tuple[int, ...], axis: int, mode: Digits) -> Any:
    aval = aval_of(logits)
    dtype = F64 if aval.dtype == F64 else F32
    shape = (*lead, *aval.shape)
    noise = gumbels(key, shape, dtype, mode)
    noisy = elementwise.add(noise, spread(logits, aval_of(noise).dtype, shape))
    return reductions.argmax(noisy, axes=(len(lead) + axis,), index_dtype=dtypes.int32)


@eager_jit(static=("lead", "axis", "mode"))
def _distinct(key: Any, logits: Any, lead: tuple[int, ...], axis: int, mode: Digits) -> Any:
    aval = aval_of(logits)
    dtype = computed_in(aval.dtype)
    noise = gumbels(key, aval.shape, dtype, mode)
    noisy = elementwise.add(noise, promotion.convert(logits, aval_of(noise).dtype))
    last = fnp.moveaxis(noisy, axis, -1)
    result = fnp.argsort(last, descending=True)[..., : math.prod(lead)]
    return promotion.convert(fnp.moveaxis(result, -1, 0).reshape(*lead, *result.shape[:-1]), dtypes.int32)


def check_axis(axis: int, ndim: int, what: str) -> int:
    """Return a dimension counted from 0.

    Raises:
        ShapeError: where the array does not have it.
    """
    if not isinstance(axis, (int, np.integer)) or not -ndim <= axis < ndim:
        raise promotion.error(
            ShapeError, f"{what} got axis={axis!r} for an array of rank {ndim}", "name an axis that the array has"
        )
    return int(axis) % ndim
