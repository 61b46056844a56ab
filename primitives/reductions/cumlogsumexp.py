"""cumlogsumexp: logarithms of running sums of exponentials, without overflow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import NotDefined, aval_of
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.reductions.cumulative import running
from functorch_like.primitives.reductions.makers import lowest
from functorch_like.primitives.reductions.recurrence import recurrence, shifted
from functorch_like.primitives.reductions.running_loop import SPAN


def _both(e: Any, a: Any, b: Any, aval: ShapedArray) -> Any:
    """log(exp(a) + exp(b)): the greater, and what the smaller adds to it. Equal infinities add up to themselves."""
    op = lambda name, *xs: e.op(f"stablehlo.{name}", xs, [aval])
    gap = op("subtract", a, b)
    added = op("add", op("maximum", a, b), op("log_plus_one", op("exponential", op("negate", op("abs", gap)))))
    nan = e.compare("NE", gap, gap, aval.update(dtype=dtypes.bool_), "FLOAT")
    return e.op("stablehlo.select", [nan, op("add", a, b), added], [aval])


def _share(part: Any, whole: Any) -> Any:
    """exp(part - whole), which is 0 where `whole` is -inf, the logarithm of an empty sum."""
    nothing = elementwise.eq(whole, structural.full_like(whole, -np.inf))
    return elementwise.exp(elementwise.sub(part, elementwise.select_n(nothing, whole, structural.full_like(whole, 0))))


def _mean(whole: Any, terms: Any, axis: int) -> Any:
    """y[k] = exp(whole[k-1] - whole[k]) y[k-1] + terms[k]: spans of elements, then one of the last in each span.

    A product of many factors near one would be less exact than the factor between the last elements of two spans.
    """
    n = aval_of(whole).shape[axis]
    if n <= 2 * SPAN:
        return recurrence(_share(shifted(whole, 1, -np.inf, axis, False), whole), terms, axis=axis, reverse=False)
    count = -(-n // SPAN)
    highest = dtypes.finfo(aval_of(whole).dtype).max  # of padding, whose factors are 0 and 1
    spans = [_spans(x, axis, count * SPAN - n, fill) for x, fill in ((whole, highest), (terms, 0))]
    inside = _mean(*spans, axis + 1)
    last = [_along(x, axis + 1, SPAN - 1, SPAN) for x in (spans[0], inside)]
    thin = tuple(m for d, m in enumerate(aval_of(last[0]).shape) if d != axis + 1)
    ends, means = (structural.reshape(x, shape=thin) for x in last)
    means = shifted(_mean(ends, means, axis), 1, 0, axis, False)
    before = shifted(ends, 1, -np.inf, axis, False)
    shape = aval_of(spans[0]).shape
    kept = tuple(d for d in range(len(shape)) if d != axis + 1)
    before, means = (structural.broadcast_in_dim(x, shape=shape, broadcast_dimensions=kept) for x in (before, means))
    both = elementwise.add(elementwise.mul(_share(before, spans[0]), means), inside)
    flat = (*shape[:axis], count * SPAN, *shape[axis + 2 :])
    return _along(structural.reshape(both, shape=flat), axis, 0, n)


def _spans(x: Any, axis: int, padding: int, fill: Any) -> Any:
    """The array with its axis cut into spans, after padding at the end."""
    aval = aval_of(x)
    config = tuple((0, padding if d == axis else 0, 0) for d in range(aval.ndim))
    x = structural.pad(x, structural.full((), fill, aval.dtype), padding_config=config)
    shape = (*aval.shape[:axis], (aval.shape[axis] + padding) // SPAN, SPAN, *aval.shape[axis + 1 :])
    return structural.reshape(x, shape=shape)


def _along(x: Any, axis: int, start: int, stop: int) -> Any:
    """A slice of one axis."""
    shape = aval_of(x).shape
    first = tuple(start if d == axis else 0 for d in range(len(shape)))
    limit = tuple(stop if d == axis else n for d, n in enumerate(shape))
    return structural.slice(x, start_indices=first, limit_indices=limit, strides=None)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, axis: int, reverse: bool = False) -> tuple[Any, Any]:
    """The mean of the tangents so far, weighted by exp(x): a sum over the sum of weights.

    The sum of weights exp(x - out) is one but for the rounding errors of `out`, which the quotient does not have.
    """
    (x,), (dx,) = primals, tangents
    out = cumlogsumexp(x, axis=axis, reverse=reverse)
    if not aval_of(x).size:
        return out, dx
    turn = (lambda v: structural.rev(v, dimensions=(axis,))) if reverse else (lambda v: v)
    whole = structural.stop_gradient(out)
    weight, whole = _share(x, whole), turn(whole)
    total = turn(_mean(whole, turn(weight), axis))
    empty = elementwise.eq(total, structural.full_like(total, 0))
    total = elementwise.select_n(empty, total, structural.full_like(total, 1))
    return out, elementwise.div(turn(_mean(whole, turn(elementwise.mul(weight, dx)), axis)), total)


def _takes(dtype: Any) -> bool:
    return dtypes.is_float(dtype) and dtype not in dtypes.FLOAT8  # some of which have no infinity to start from


cumlogsumexp = running(
    "cumlogsumexp", _both, np.logaddexp, lowest, _takes, _jvp,
    NotDefined("a logarithm of sums is not linear in its elements; differentiate it with its jvp rule"),
    "float32", "float64", "bfloat16", "float16",
)  # fmt: skip
