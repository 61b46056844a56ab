"""Computed margins for `pad`: statistics of the elements beside them, and ramps to an end value."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError
from functorch_like.numpy import promotion, quantiles, reductions, statistics
from functorch_like.numpy.apply_along_axis import apply_along_axis
from functorch_like.numpy.indexing import getitem
from functorch_like.numpy.unary import rint
from functorch_like.primitives import elementwise, structural
from functorch_like.transforms.eager_jit import eager_jit


def lengths_of(pairs: Any) -> tuple[tuple[int | None, int | None], ...]:
    """Return pairs of `stat_length` as ints; None stands for the whole axis.

    Raises:
        ArgumentError: for a length that is not an int of at least 1.
    """
    checked = tuple(tuple(None if n is None else _length(n) for n in pair) for pair in pairs)
    return checked  # pyright: ignore[reportReturnType]


def _length(n: Any) -> int:
    try:
        length = operator.index(n)
    except TypeError:
        length = 0
    if length < 1:
        raise promotion.error(
            ArgumentError,
            f"fnp.pad got stat_length={n!r}",
            "give an int of at least 1, or None for the whole axis",
        )
    return length


@eager_jit(static=("widths", "mode", "lengths"))
def pad_statistics(a: Any, widths: Any, mode: str, lengths: Any) -> Any:
    """Pad one axis after the other by a statistic of the `lengths` elements at each end of it."""
    for d, ((low, high), (first, last)) in enumerate(zip(widths, lengths, strict=True)):
        n = aval_of(a).shape[d]
        before = _repeated(_statistic(_part(a, d, 0, min(first or n, n)), mode, d), d, low) if low else None
        after = _repeated(_statistic(_part(a, d, n - min(last or n, n), n), mode, d), d, high) if high else None
        a = _joined(before, a, after, d)
    return a


def _statistic(x: Any, mode: str, d: int) -> Any:
    """Return a statistic along axis d as a slice, in the dtype of x; of integers rounded to even, as in NumPy."""
    if mode in ("maximum", "minimum"):
        return (reductions.max if mode == "maximum" else reductions.min)(x, axis=d, keepdims=True)
    dtype = aval_of(x).dtype
    exact = dtypes.is_integer(dtype) or dtype == dtypes.bool_
    out = (statistics.mean if mode == "mean" else quantiles.median)(
        promotion.convert(x, dtypes.float64) if exact else x, axis=d, keepdims=True
    )
    return _as(rint(out) if dtypes.is_integer(dtype) else out, dtype)


@eager_jit(static=("widths",), ints=True)
def pad_ramps(a: Any, ends: Any, widths: Any) -> Any:
    """Pad one axis after the other by numbers that run evenly from `ends` to the outermost elements."""
    for d, ((low, high), (start, stop)) in enumerate(zip(widths, ends, strict=True)):
        n = aval_of(a).shape[d]
        before = _ramp(_part(a, d, 0, 1), start, d, low) if low else None
        after = structural.rev(_ramp(_part(a, d, n - 1, n), stop, d, high), dimensions=(d,)) if high else None
        a = _joined(before, a, after, d)
    return a


def _ramp(edge: Any, end: Any, d: int, width: int) -> Any:
    dtype = aval_of(edge).dtype
    wide = dtype if dtypes.is_inexact(dtype) else dtypes.float64
    edge, end = promotion.convert(edge, wide), promotion.convert(end, wide)
    shape = tuple(width if k == d else n for k, n in enumerate(aval_of(edge).shape))
    real = dtypes.real_part(wide)
    part = elementwise.div(structural.iota(dtype=real, shape=shape, dimension=d), structural.full(shape, width, real))
    edge, end = _repeated(edge, d, width), promotion.broadcast(end, shape)
    out = elementwise.add(end, elementwise.mul(elementwise.sub(edge, end), promotion.convert(part, wide)))
    return _as(elementwise.floor(out) if dtypes.is_integer(dtype) else out, dtype)


@eager_jit(static=("d", "low", "high", "mode"))
def pad_odd(a: Any, d: int, low: int, high: int, mode: str) -> Any:
    """Pad axis d by mirror images through the outermost elements: twice the element, minus the mirrored one.

    The images follow each other; the k-th one after the array is mirrored if k is odd. If x is the first element and y
    the last, it is k (y - x) + element for even k, and (k + 1) y - (k - 1) x - element for odd k.
    """
    shape, dtype = aval_of(a).shape, aval_of(a).dtype
    n = shape[d]
    period = max(n - 1, 1) if mode == "reflect" else n
    image, place = np.divmod(np.arange(-low, n + high), period)
    turned = image % 2 == 1
    place = np.where(turned, n - 1 - place, place).clip(0, n - 1)  # an array of one element is its own mirror image
    along = tuple(len(place) if k == d else 1 for k in range(len(shape)))
    wide = (*shape[:d], len(place), *shape[d + 1 :])
    numbers = lambda values: promotion.broadcast(values.astype(dtype).reshape(along), wide)
    ends = [
        elementwise.mul(_repeated(_part(a, d, at, at + 1), d, len(place)), numbers(times))
        for at, times in ((n - 1, image + turned), (0, image - turned))
    ]
    mirrored = elementwise.mul(getitem(a, (slice(None),) * d + (place,)), numbers(np.where(turned, -1, 1)))
    return elementwise.add(mirrored, elementwise.sub(*ends))


def pad_by(fill: Callable[..., Any], a: Any, d: int, width: tuple[int, int], options: dict[str, Any]) -> Any:
    """Let a user's function fill the margin of all vectors along axis d."""
    return apply_along_axis(lambda row: fill(row, width, d, options), d, a)


def _as(x: Any, dtype: np.dtype[Any]) -> Any:
    return elementwise.ne(x, promotion.like(x, 0)) if dtype == dtypes.bool_ else promotion.convert(x, dtype)


def _part(a: Any, d: int, start: int, stop: int) -> Any:
    shape = aval_of(a).shape
    limits = tuple(stop if k == d else n for k, n in enumerate(shape))
    starts = tuple(start if k == d else 0 for k in range(len(shape)))
    return structural.slice(a, start_indices=starts, limit_indices=limits, strides=None)


def _repeated(x: Any, d: int, width: int) -> Any:
    shape = tuple(width if k == d else n for k, n in enumerate(aval_of(x).shape))
    return structural.broadcast_in_dim(x, shape=shape, broadcast_dimensions=tuple(range(len(shape))))


def _joined(before: Any, a: Any, after: Any, d: int) -> Any:
    parts = [x for x in (before, a, after) if x is not None]
    return structural.concatenate(*parts, dimension=d) if len(parts) > 1 else a
