"""Repeating, rolling and padding."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import ArrayImpl, Tracer, aval_of
from functorch_like.errors import ArgumentError, ConcretizationError, DtypeError, ShapeError
from functorch_like.foreign.values import quote
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import axis_of, ints_of
from functorch_like.numpy.creation import asarray
from functorch_like.numpy.guarded_sizes import checked_size, guarded_size
from functorch_like.numpy.indexing import getitem
from functorch_like.numpy.joining import _cut, concatenate
from functorch_like.numpy.shapes import arr, ndim
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.reductions.cumulative import cumsum
from functorch_like.primitives.structural.tile_split_barrier import tile as tile_primitive
from functorch_like.primitives.updates.dynamic_slice import dynamic_slice
from functorch_like.transforms.eager_jit import eager_jit, with_kernel

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, Axis, NestedArrayLike, Shape


@with_kernel(1)
def tile(A: ArrayLike, reps: Shape) -> Array:
    """Repeat an array as a whole along each dimension.

    Args:
        A: array.
        reps: int or sequence of ints: the numbers of repetitions along the last dimensions.

    Returns:
        An array of the dtype of the operand.

    >>> fnp.tile(fnp.arange(2), 2).tolist()
    [0, 1, 0, 1]
    """
    a = asarray(A)
    counts = ints_of(reps)
    n = max(len(counts), ndim(a))
    counts = [1] * (n - len(counts)) + counts
    sizes = (1,) * (n - ndim(a)) + aval_of(a).shape
    return tile_primitive(structural.reshape(a, shape=sizes), reps=tuple(counts))


@with_kernel(1)
def repeat(
    a: ArrayLike, repeats: ArrayLike | Sequence[int], axis: int | None = None, *, total_repeat_length: int | None = None
) -> Array:
    """Repeat each element.

    Args:
        a: array.
        repeats: the number of repetitions: an int, or one for each element along the axis.
        axis: the axis; None for the flattened array.
        total_repeat_length: size of the result, required where `repeats` is traced: a longer result is cut, and a
            shorter one is filled up with the last element.

    Returns:
        An array of the dtype of `a`; of one dimension if axis is None.

    Raises:
        ShapeError: where `repeats` does not fit the axis.
        ConcretizationError: for traced `repeats` without `total_repeat_length`.
        ArgumentError: for `repeats` that are negative or not ints.

    >>> fnp.repeat(fnp.arange(2), 2).tolist()
    [0, 0, 1, 1]
    """
    a = asarray(a)
    if axis is None:
        a, axis = structural.reshape(a, shape=(aval_of(a).size,)), 0
    d = axis_of(axis, ndim(a), "fnp.repeat")
    if total_repeat_length is not None:
        total_repeat_length = checked_size(total_repeat_length, "total_repeat_length")
    shape = aval_of(a).shape
    if isinstance(repeats, (int, np.integer)):
        n = operator.index(repeats)
        if n < 0:
            raise promotion.error(ArgumentError, f"fnp.repeat takes non-negative repeats, got {n}", "use 0 or more")
        dims = tuple(k if k <= d else k + 1 for k in range(len(shape)))
        wide = structural.broadcast_in_dim(a, shape=(*shape[: d + 1], n, *shape[d + 1 :]), broadcast_dimensions=dims)
        out = structural.reshape(wide, shape=(*shape[:d], shape[d] * n, *shape[d + 1 :]))
        return (
            out
            if total_repeat_length is None
            else _take(out, np.minimum(np.arange(total_repeat_length), n * shape[d] - 1), d)
        )
    if isinstance(repeats, Tracer):
        if total_repeat_length is None:
            total = promotion.broadcast(repeats, (shape[d],))
            total_repeat_length = guarded_size(structural.reduce_sum(total, axes=(0,)))
        if total_repeat_length is None:
            raise promotion.error(
                ConcretizationError,
                f"fnp.repeat got traced repeats ({aval_of(repeats)!r}), whose sum is the size of the result",
                "pass total_repeat_length=, or make repeats a NumPy array",
            )
        return _repeat_traced(a, repeats, d, total_repeat_length)
    counts = np.broadcast_to(np.asarray(repeats), (shape[d],)) if np.size(repeats) in (1, shape[d]) else None
    if counts is None:
        raise promotion.error(
            ShapeError,
            f"{np.size(repeats)} repeats do not fit axis {d} of {aval_of(a)!r}",
            "give one number for each element",
        )
    if counts.dtype.kind not in "iub":
        raise promotion.error(ArgumentError, f"fnp.repeat: repeats={quote(repeats)} are not ints", "give ints")
    places = np.repeat(np.arange(shape[d]), counts)
    if total_repeat_length is not None:
        missing = max(0, total_repeat_length - len(places))
        places = np.pad(places, (0, missing), constant_values=shape[d] - 1)[:total_repeat_length]
    return _take(a, places, d)


def _repeat_traced(a: Any, repeats: Any, d: int, total: int) -> Any:
    """Element i of the result is element k of `a`, where k counts the elements whose copies end at i or before."""
    n = aval_of(a).shape[d]
    counts = promotion.broadcast(repeats, (n,))
    if aval_of(counts).dtype == dtypes.bool_:
        counts = structural.convert_element_type(counts, new_dtype=dtypes.int32)
    ends = cumsum(counts, axis=0, reverse=False)
    ended = structural.zeros(ShapedArray((total,), dtypes.int32)).at[ends].add(1, mode="drop")
    places = cumsum(ended, axis=0, reverse=False)
    return _take(a, elementwise.min(places, structural.full_like(places, n - 1)), d)


def _take(a: Any, places: Any, d: int) -> Any:
    return getitem(a, (slice(None),) * d + (places,))


def _window(x: Any, start: Any, n: int, d: int) -> Any:
    """Return n elements along axis d from a traced position; its gradient is a slice, too, unlike that of a gather."""
    starts = [start if k == d else structural.full((), 0, np.dtype("int32")) for k in range(ndim(x))]
    sizes = tuple(n if k == d else size for k, size in enumerate(aval_of(x).shape))
    return dynamic_slice(x, *starts, slice_sizes=sizes)


@with_kernel(1)
def roll(a: ArrayLike, shift: ArrayLike | Sequence[int], axis: Axis = None) -> Array:
    """Move elements along axes; those that leave at one end come back at the other.

    Args:
        a: array.
        shift: int, or one for each axis, as a sequence or a vector; may be traced. Several along one axis add up.
        axis: int or tuple of ints; None to roll the array as if it were flattened.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        ArgumentError: where shifts and axes differ in number.
        ShapeError: for shifts in several dimensions.
        DtypeError: for shifts that are not ints.

    >>> fnp.roll(fnp.arange(4), 1).tolist()
    [3, 0, 1, 2]
    """
    x = arr(a, "fnp.roll")
    if axis is None:
        flat = roll(structural.reshape(x, shape=(aval_of(x).size,)), shift, 0)
        return structural.reshape(flat, shape=aval_of(x).shape)
    axes = axis if isinstance(axis, (list, tuple, range)) else (axis,)
    shifts = _shifts(shift, len(axes))
    if len(shifts) != len(axes):
        if len(axes) != 1:
            raise promotion.error(
                ArgumentError, f"fnp.roll with {len(shifts)} shifts along {len(axes)} axes", "give as many of each"
            )
        axes = tuple(axes) * len(shifts)
    for s, d in zip(shifts, axes, strict=True):
        d = axis_of(d, ndim(x), "fnp.roll")
        n = aval_of(x).shape[d]
        if n == 0:
            continue
        if isinstance(s, (ArrayImpl, Tracer)):
            if not dtypes.is_integer(aval_of(s).dtype):
                raise promotion.error(DtypeError, f"fnp.roll by {aval_of(s)!r}", "convert the shift with astype(int)")
            turns = (s if aval_of(s).dtype.itemsize >= 4 else promotion.convert(s, np.dtype("int32"))) % n
            turns = promotion.convert(turns, np.dtype("int32"))
            start = elementwise.sub(structural.full_like(turns, n), turns)
            x = _window(concatenate([x, x], d), start, n, d)
        elif operator.index(s) % n:
            at = n - operator.index(s) % n
            x = concatenate([_cut(x, d, at, n), _cut(x, d, 0, at)], d)
    return x


def _shifts(shift: Any, count: int) -> Any:
    """Return one shift for each axis, as a sequence; a vector of shifts has one for each axis too."""
    if isinstance(shift, (list, tuple, range)):
        return shift
    if ndim(shift) == 0:
        return (shift,) * count
    if ndim(shift) == 1:
        return tuple(shift[k] for k in range(aval_of(shift).shape[0]))
    raise promotion.error(
        ShapeError, f"fnp.roll with shifts {aval_of(shift)!r}", "give a number, or a vector with one for each axis"
    )


_MODES = (
    "constant", "edge", "reflect", "symmetric", "wrap", "empty", "mean", "maximum", "minimum", "median", "linear_ramp",
)  # fmt: skip


def pad(
    array: ArrayLike,
    pad_width: int | NestedArrayLike,
    mode: str | Callable[..., ArrayLike] = "constant",
    *,
    stat_length: int | NestedArrayLike | None = None,
    constant_values: NestedArrayLike = 0,
    end_values: NestedArrayLike = 0,
    reflect_type: str = "even",
    **kwargs: object,
) -> Array:
    """Add a margin to an array.

    Args:
        array: array.
        pad_width: int; a pair (before, after) for all dimensions; or one pair for each.
        mode: "constant", "edge" (the outermost element), "reflect" (mirrored at it), "symmetric" (mirrored beside it),
            "wrap" (from the other end), "mean", "median", "maximum" or "minimum" (of the elements along the axis), or
            "linear_ramp" (linear from an end value to the outermost element). Or a function of a vector with a margin
            of zeros, the pair of its widths, the axis, and a dict; it returns the vector with another margin, and is
            called for all vectors along one axis after the other.
        stat_length: for modes "mean", "median", "maximum" and "minimum": number of elements to take at each end; int,
            or pairs as for `pad_width`; all along the axis if None.
        constant_values: for mode "constant": number, or pairs as for `pad_width`.
        end_values: for mode "linear_ramp": number, or pairs as for `pad_width`.
        reflect_type: for modes "reflect" and "symmetric": "even", or "odd" for twice the outermost element minus the
            mirrored one, which continues slopes.
        kwargs: the dict for a function as mode.

    Returns:
        An array of the dtype of the operand, larger by the padding.

    Raises:
        ArgumentError: for another mode or reflect_type, negative widths, or a stat_length below 1.
        ShapeError: where `pad_width` does not fit the dimensions, or there is nothing to repeat.

    >>> fnp.pad(fnp.arange(2), 1).tolist(), fnp.pad(fnp.arange(3), (2, 0), mode="reflect").tolist()
    ([0, 0, 1, 0], [2, 1, 0, 1, 2])
    """
    a = arr(array, "fnp.pad")
    if kwargs and not callable(mode):
        raise promotion.error(
            ArgumentError, f"fnp.pad: mode={mode!r} takes no {', '.join(kwargs)}", "pass them with a function as mode"
        )
    if not callable(mode) and mode not in _MODES:
        raise promotion.error(ArgumentError, f"fnp.pad: mode={mode!r} is unknown", f"use one of {', '.join(_MODES)}")
    widths = tuple((operator.index(lo), operator.index(hi)) for lo, hi in _pairs(pad_width, ndim(a), "pad_width"))
    if any(lo < 0 or hi < 0 for lo, hi in widths):
        raise promotion.error(
            ArgumentError, f"fnp.pad takes non-negative widths, got pad_width={pad_width!r}", "cut with x[a:b] instead"
        )
    if callable(mode):
        out = _pad_constant(a, [(0, 0)] * len(widths), widths=widths)
        for d, width in enumerate(widths):
            out = _margins().pad_by(mode, out, d, width, kwargs)
        return out
    if mode in ("constant", "empty"):
        return _pad_constant(a, _numbers_of(a, constant_values, "constant_values"), widths=widths)
    for d, (lo, hi) in enumerate(widths):
        if (lo or hi) and aval_of(a).shape[d] == 0:
            raise promotion.error(
                ShapeError, f"fnp.pad has nothing to repeat along axis {d} of {aval_of(a)!r}", "use mode='constant'"
            )
    if mode == "linear_ramp":
        return _margins().pad_ramps(a, _numbers_of(a, end_values, "end_values"), widths=widths)
    if mode in ("mean", "median", "maximum", "minimum"):
        margins = _margins()
        lengths = margins.lengths_of(_pairs(stat_length, ndim(a), "stat_length"))
        return margins.pad_statistics(a, widths=widths, mode=mode, lengths=lengths)
    if reflect_type not in ("even", "odd"):
        raise promotion.error(ArgumentError, f"fnp.pad: {reflect_type=} is unknown", "use 'even' or 'odd'")
    if mode not in ("reflect", "symmetric") or reflect_type == "even":
        return _pad_copies(a, widths=widths, mode=mode)
    for d, (lo, hi) in enumerate(widths):
        if lo or hi:
            a = _margins().pad_odd(a, d, lo, hi, mode)
    return a


def _numbers_of(a: Any, pairs: Any, what: str) -> list[list[Any]]:
    """Return the numbers in the margins of an array, a pair for each dimension."""
    return [[promotion.numbers(a, v)[1] for v in pair] for pair in _pairs(pairs, ndim(a), what)]


def _margins() -> Any:
    from functorch_like.numpy import margins  # rarely used

    return margins


def _pairs(pairs: Any, n: int, what: str) -> list[tuple[Any, Any]]:
    if not isinstance(pairs, (list, tuple)) and not (promotion.is_array(pairs) and ndim(pairs)):
        return [(pairs, pairs)] * n
    rows = [tuple(row) if isinstance(row, (list, tuple)) or ndim(row) else row for row in pairs]
    if all(isinstance(row, tuple) for row in rows):
        rows = [row * 2 if len(row) == 1 else row for row in rows]
        rows = rows * n if len(rows) == 1 else rows
        if len(rows) == n and all(len(row) == 2 for row in rows):
            return rows  # type: ignore[return-value]
    elif len(rows) == 2:
        return [(rows[0], rows[1])] * n
    elif len(rows) == 1:
        return [(rows[0], rows[0])] * n
    raise promotion.error(
        ShapeError, f"{what}={pairs!r} does not fit {n} dimensions", "give an int, a pair, or one pair for each"
    )


#: Most pieces of which a padded axis is joined. Of more, as of mirror images of mirror images, it is a gather.
_PIECES = 8


@eager_jit(static=("widths", "mode"))
def _pad_copies(a: Any, widths: Any, mode: str) -> Any:
    """Pad one axis after the other by copies of elements: slices, reversed ones and repeated ones, joined.

    The gradient of a gather is a scatter, which takes five times as long on CPUs as that of slices.
    """
    for d, (lo, hi) in enumerate(widths):
        if not (lo or hi):
            continue
        places = np.pad(np.arange(aval_of(a).shape[d]), (lo, hi), mode=mode)  # type: ignore[call-overload]
        runs = _runs(places)
        a = concatenate([_piece(a, d, *run) for run in runs], d) if len(runs) <= _PIECES else _take(a, places, d)
    return a


def _runs(places: np.ndarray) -> list[tuple[int, int, int]]:
    """Split positions into runs with a step of 1, -1 or 0: first position, step and length of each.

    >>> _runs(np.array([2, 1, 0, 1, 2, 2, 2]))
    [(2, -1, 2), (0, 1, 3), (2, 0, 2)]
    """
    runs: list[tuple[int, int, int]] = []
    steps = np.diff(places)
    k = 0
    while k < len(places):
        step = int(steps[k]) if k < len(steps) and abs(steps[k]) <= 1 else 1
        changes = np.flatnonzero(steps[k:] != step)
        length = int(changes[0]) + 1 if len(changes) else len(places) - k
        if step < 1 and k + length < len(places) and steps[k + length - 1] == 1:
            length -= 1  # the last position begins the next run, which copies more
        runs.append((int(places[k]), step, length))
        k += length
    return runs


def _piece(a: Any, d: int, first: int, step: int, length: int) -> Any:
    """Return the elements of a run along axis d."""
    if step == 1:
        return _cut(a, d, first, first + length)
    if step == -1:
        return structural.rev(_cut(a, d, first - length + 1, first + 1), dimensions=(d,))
    one = _cut(a, d, first, first + 1)
    shape = (*aval_of(a).shape[:d], length, *aval_of(a).shape[d + 1 :])
    return structural.broadcast_in_dim(one, shape=shape, broadcast_dimensions=tuple(range(len(shape))))


@eager_jit(static=("widths",), ints=True)
def _pad_constant(a: Any, values: Any, widths: Any) -> Any:
    dtype, weak = aval_of(a).dtype, aval_of(a).weak_type
    for d, ((lo, hi), (low, high)) in enumerate(zip(widths, values, strict=True)):
        config = lambda x, y, d=d: tuple((x, y, 0) if k == d else (0, 0, 0) for k in range(len(widths)))
        if lo:
            a = structural.pad(a, promotion.convert(low, dtype, weak), padding_config=config(lo, 0))
        if hi:
            a = structural.pad(a, promotion.convert(high, dtype, weak), padding_config=config(0, hi))
    return a
