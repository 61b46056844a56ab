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
from functorch_like.primitives.reductions.recurrence import recurrence


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


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, axis: int, reverse: bool = False) -> tuple[Any, Any]:
    """The mean of the tangents so far, weighted by exp(x): a sum over the sum of weights.

    The sum of weights exp(x - out) is one but for the rounding errors of `out`, which the quotient does not have.
    """
    (x,), (dx,) = primals, tangents
    out = cumlogsumexp(x, axis=axis, reverse=reverse)
    if not aval_of(x).size:
        return out, dx
    whole = structural.stop_gradient(out)
    weight = _share(x, whole)
    folded = lambda terms: recurrence(whole, terms, axis=axis, reverse=reverse, logs=True)
    total = folded(weight)
    empty = elementwise.eq(total, structural.full_like(total, 0))
    total = elementwise.select_n(empty, total, structural.full_like(total, 1))
    return out, elementwise.div(folded(elementwise.mul(weight, dx)), total)


def _takes(dtype: Any) -> bool:
    return dtypes.is_float(dtype) and dtype not in dtypes.FLOAT8  # some of which have no infinity to start from


cumlogsumexp = running(
    "cumlogsumexp", _both, np.logaddexp, lowest, _takes, _jvp,
    NotDefined("a logarithm of sums is not linear in its elements; differentiate it with its jvp rule"),
    "float32", "float64", "bfloat16", "float16",
)  # fmt: skip
