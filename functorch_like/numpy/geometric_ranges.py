"""Geometric sequences, powers in columns, and phases without jumps."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import axis_of
from functorch_like.numpy.binary import floor_divide
from functorch_like.numpy.creation import asarray
from functorch_like.numpy.joining import _cut
from functorch_like.numpy.ranges import aligned_in_widest, whole_below, widest, with_all_digits
from functorch_like.numpy.reductions import plain
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.reductions import cumulative
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike


def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """A geometric sequence: each number is the one before it times a constant.

    Args:
        start: first number, or array of first numbers; not 0.
        stop: last number, or array of last numbers; of the sign of `start`, or complex.
        num: the number of elements.
        endpoint: whether `stop` is one of them.
        dtype: float32 by default.
        axis: the axis of the result along which the numbers lie, if start or stop is an array.

    Returns:
        An array; NaN where no such real sequence exists.

    Raises:
        ArgumentError: for negative `num`.

    >>> [round(float(x), 3) for x in fnp.geomspace(1, 1000, 4)]
    [1.0, 10.0, 100.0, 1000.0]
    """
    n = operator.index(num)
    if n < 0:
        raise promotion.error(ArgumentError, f"fnp.geomspace takes a non-negative num, got {n}", "use 0 or more")
    start, stop = (v if promotion.is_array(v) or type(v) in promotion.NUMBERS else asarray(v) for v in (start, stop))
    promoted = dtypes.inexact_dtype(dtypes.promote(aval_of(start), aval_of(stop))[0])
    result_dtype = promoted if dtype is None else dtypes.as_dtype(dtype)
    start, stop = with_all_digits(widest(promoted, result_dtype), start, stop)
    return _geomspace(
        *promotion.numbers(start, stop), num=n, endpoint=bool(endpoint), axis=operator.index(axis), dtype=result_dtype
    )


@eager_jit(static=("num", "endpoint", "axis", "dtype"), ints=True)
def _geomspace(start: Any, stop: Any, num: int, endpoint: bool, axis: int, dtype: Any) -> Any:
    start, stop = aligned_in_widest(start, stop)
    aval = aval_of(start)
    d = axis_of(axis, aval.ndim + 1, "fnp.geomspace")
    shape = (*aval.shape[:d], num, *aval.shape[d:])
    others = tuple(k for k in range(len(shape)) if k != d)
    spread = lambda v: structural.broadcast_in_dim(v, shape=shape, broadcast_dimensions=others)
    # By the logarithms of both, since their quotient may overflow.
    if aval.dtype.kind == "c":
        low = elementwise.log(elementwise.abs(start))
        turn = elementwise.div(start, structural.convert_element_type(elementwise.abs(start), new_dtype=aval.dtype))
        high = elementwise.log(elementwise.div(stop, turn))
        low = structural.convert_element_type(low, new_dtype=aval.dtype)
    else:
        turn = elementwise.sign(start)
        low, high = elementwise.log(elementwise.mul(start, turn)), elementwise.log(elementwise.mul(stop, turn))
    places = structural.iota(dtype=dtypes.real_part(aval.dtype), shape=shape, dimension=d)
    spaces = max(num - 1 if endpoint else num, 1)
    part = elementwise.div(places, structural.full_like(places, spaces))
    part = part if aval.dtype.kind != "c" else structural.convert_element_type(part, new_dtype=aval.dtype)
    low, high, turn = spread(low), spread(high), spread(turn)
    out = elementwise.mul(
        turn, elementwise.exp(elementwise.add(low, elementwise.mul(elementwise.sub(high, low), part)))
    )
    out = elementwise.select_n(elementwise.eq(places, structural.full_like(places, 0)), out, spread(start))
    if endpoint and num > 1:
        out = elementwise.select_n(elementwise.eq(places, structural.full_like(places, num - 1)), out, spread(stop))
    if dtypes.is_integer(dtype):
        out = whole_below(out, elementwise.abs(out))
    return promotion.convert(out, dtype)


def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """The Vandermonde matrix: powers of the elements of a vector, in columns.

    Args:
        x: vector.
        N: the number of columns; that of elements by default.
        increasing: whether powers ascend from 0, rather than descend to it.

    Returns:
        (n, N), in the dtype of x.

    Raises:
        ShapeError: where x is not a vector.
        ArgumentError: for negative N.

    >>> fnp.vander(fnp.asarray([1, 2, 3]), 3).tolist()
    [[1, 1, 1], [4, 2, 1], [9, 3, 1]]
    """
    x = x if promotion.is_array(x) else asarray(x)
    if aval_of(x).ndim != 1:
        raise promotion.error(ShapeError, f"fnp.vander of {aval_of(x)!r}", "give a vector")
    n = aval_of(x).size if N is None else operator.index(N)
    if n < 0:
        raise promotion.error(ArgumentError, f"fnp.vander takes a non-negative N, got {n}", "use 0 or more")
    return _vander(x, n=n, increasing=bool(increasing))


@eager_jit(static=("n", "increasing"))
def _vander(x: Any, n: int, increasing: bool) -> Any:
    kept = dtypes.STRONG_SCALARS.value and aval_of(x).dtype != dtypes.bool_  # JAX keeps narrow integers
    if not dtypes.is_inexact(aval_of(x).dtype) and not kept:  # powers soon outgrow small integers
        x = promotion.convert(x, dtypes.result_type(aval_of(x).dtype, dtypes.narrow_int()))
    m = aval_of(x).size
    one = structural.full((m, min(n, 1)), 1, aval_of(x).dtype)
    factors = structural.broadcast_in_dim(x, shape=(m, max(n - 1, 0)), broadcast_dimensions=(0,))
    out = cumulative.cumprod(structural.concatenate(one, factors, dimension=1), axis=1, reverse=False)
    return out if increasing else structural.rev(out, dimensions=(1,))


def unwrap(p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 2 * math.pi) -> Array:
    """Phases without jumps: multiples of the period are added such that no step is longer than half of it.

    Args:
        p: phases, in radians unless there is another period.
        discont: the least step that is taken as a jump; half the period by default, and never less.
        axis: the axis.
        period: the difference between equal phases.

    Returns:
        Floats, of the shape of p.

    Raises:
        ShapeError: where there is no such axis.

    >>> fnp.unwrap(fnp.asarray([0, 3, 1, 0]), period=4).tolist()
    [0, -1, -3, -4]
    """
    p = p if promotion.is_array(p) else asarray(p)
    d = axis_of(axis, aval_of(p).ndim, "fnp.unwrap")
    return _unwrap(*promotion.numbers(p, discont, period), d=d)


@eager_jit(static=("d",), ints=True)
def _unwrap(p: Any, discont: Any, period: Any, d: int) -> Any:
    both = [plain(v) for v in promotion.promote(p, period)]
    p, period = (promotion.to_inexact(v) for v in both) if aval_of(both[0]).dtype == dtypes.bool_ else both
    n = aval_of(p).shape[d]
    if n < 2:
        return p
    step = elementwise.sub(_cut(p, d, 1, n), _cut(p, d, 0, n - 1))
    fill = lambda v: promotion.broadcast(promotion.convert(v, aval_of(step).dtype), aval_of(step).shape)
    period, up = fill(period), elementwise.gt(step, promotion.like(step, 0))
    # Whole periods to subtract; none for a step of half a period, of either sign.
    if dtypes.is_integer(aval_of(step).dtype):
        half = elementwise.div(period, promotion.like(step, 2))
        rest = elementwise.sub(elementwise.sub(period, promotion.like(step, 1)), half)
        divide: Any = floor_divide
        turns = divide.body(elementwise.add(step, elementwise.select_n(up, half, rest)), period)
    else:
        half = elementwise.mul(period, promotion.like(step, 0.5))
        part = elementwise.div(step, period)
        turns = elementwise.select_n(
            up,
            elementwise.floor(elementwise.add(part, promotion.like(part, 0.5))),
            elementwise.ceil(elementwise.sub(part, promotion.like(part, 0.5))),
        )
    change = elementwise.neg(elementwise.mul(period, turns))
    if discont is not None:
        half = elementwise.max(half, fill(discont))
    change = elementwise.select_n(elementwise.lt(elementwise.abs(step), half), change, promotion.like(step, 0))
    change = cumulative.cumsum(change, axis=d, reverse=False)
    return structural.concatenate(_cut(p, d, 0, 1), elementwise.add(_cut(p, d, 1, n), change), dimension=d)
