"""Maxima and minima that are NaN where an element is, on CPUs.

XLA:CPU leaves large reductions to YNNPACK, whose maximum and minimum skip NaN, with jaxlib 0.10 to 0.12 alike. So it is
found out beside them whether an element is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import SampleInput
from functorch_like.primitives.base.lowering import Alternative
from functorch_like.primitives.elementwise.extremes_cpu import LARGE, is_nan, may_skip_nan

_FLAG = ShapedArray((), dtypes.bool_)


def extreme(
    e: Any, kind: str, x: Any, aval: ShapedArray, axes: Sequence[int], out: ShapedArray, identity: Callable[[Any], Any]
) -> Any:
    """Emit a maximum or minimum, of the meaning that they have in NumPy."""
    folded = e.reduce(kind, x, identity(out.dtype), axes, out)
    return _with_nan(e, folded, x, aval, axes, out) if may_skip_nan(e, aval) else folded


def _with_nan(e: Any, folded: Any, x: Any, aval: ShapedArray, axes: Sequence[int], out: ShapedArray) -> Any:
    some = e.reduce("or", is_nan(e, x, aval), False, axes, out.update(dtype=dtypes.bool_))
    return e.op("stablehlo.select", [some, e.full(math.nan, out), folded], [out])


def unless_nan(
    e: Any, x: Any, aval: ShapedArray, axes: Sequence[int], usual: Callable[..., Any], exact: Callable[..., Any]
) -> Any:
    """Emit two forms of a result, of which the program takes `exact` where the sum along axes is NaN.

    That is where an element is NaN, or where infinities cancel. YNNPACK adds up as fast as it looks for an extreme.

    Args:
        e: the emitter, whose one result it is.
        x: the operand.
        aval: its aval.
        axes: dimensions of it.
        usual: `usual(e, x)`, for operands without NaN.
        exact: `exact(e, x)`.
    """
    (out,) = e.outs
    sums = aval.update(shape=tuple(n for d, n in enumerate(aval.shape) if d not in axes))
    total = e.reduce("add", x, 0, axes, sums)
    wrong = is_nan(e, total, sums)
    some = e.reduce("or", wrong, False, tuple(range(sums.ndim)), _FLAG) if sums.ndim else wrong
    # Without a barrier XLA may consider both branches cheap, and compute both.
    held = lambda inner: inner.op("stablehlo.optimization_barrier", [x], [aval])
    branches = [lambda inner: [exact(inner, held(inner))], lambda inner: [usual(inner, held(inner))]]
    return e.op("stablehlo.if", [some], [out], regions=[((), branch) for branch in branches])


def beside_sums(kind: str, identity: Callable[[Any], Any]) -> Alternative:
    """Return the form that looks for NaN by a sum: half of the time of a look at each element."""

    def takes(ins: Sequence[ShapedArray], outs: Sequence[ShapedArray], *, axes: tuple[int, ...]) -> bool:
        (x,) = ins
        return dtypes.is_float(x.dtype) and x.dtype.itemsize >= 2 and x.size >= LARGE and bool(axes)

    def lower(e: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
        (aval,), (out,) = e.ins, e.outs
        if e.partitioning is not None:  # the devices would have to agree on a branch
            return extreme(e, kind, x, aval, axes, out, identity)
        folded = e.reduce(kind, x, identity(out.dtype), axes, out)
        exact = lambda inner, x: _with_nan(inner, folded, x, aval, axes, out)
        return unless_nan(e, x, aval, axes, lambda inner, x: folded, exact)

    def edges() -> list[tuple[SampleInput, bool]]:
        cases = [
            ((LARGE,), (0,), "float32", True),
            ((LARGE - 1,), (0,), "float32", False),
            ((4, LARGE // 4), (1,), "float64", True),
            ((LARGE // 4, 4), (0,), "bfloat16", True),
            ((4, LARGE // 4), (), "float32", False),
            ((LARGE,), (0,), "int32", False),
            ((70, 90), (0,), "float32", True),
            ((3, 40, 50), (0, 2), "float32", True),
        ]
        return [(SampleInput((ShapedArray(s, d),), {"axes": a}), taken) for s, a, d, taken in cases]

    return Alternative(
        "NaN found by sums",
        f"floats, of at least {LARGE:,} elements",
        takes,
        lower,
        edges,
        conditional=True,
        slow_compile=True,
    )
