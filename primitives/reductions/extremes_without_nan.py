"""reduce_fmax and reduce_fmin: the greatest and the least of the numbers along dimensions; NaN where there are none."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import Primitive, SampleInput
from functorch_like.primitives.base import kernels
from functorch_like.primitives.base.lanes import LANES, MOST, fits, fold_rows
from functorch_like.primitives.base.lowering import Alternative, Lowering
from functorch_like.primitives.elementwise.extremes_cpu import is_nan
from functorch_like.primitives.reductions.makers import extreme_jvp, highest, lowest, reduction, sampled

#: Elements of a row, and of the whole operand, from which lanes are faster.
LEAST, LARGE = 512, 4096


def _nan(dtype: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.array(math.nan).astype(dtype)


def _folded(kind: str, identity: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return `fold(e, x, aval, axes, out)`, which emits a fold of numbers, and looks whether there are any."""

    def fold(e: Any, x: Any, aval: ShapedArray, axes: Sequence[int], out: ShapedArray) -> Any:
        missing, start = is_nan(e, x, aval), identity(aval.dtype)
        x = e.op("stablehlo.select", [missing, e.full(start, aval), x], [aval])
        found = e.reduce(kind, x, start, axes, out)
        none = e.reduce("and", missing, True, axes, out.update(dtype=dtypes.bool_, weak_type=False))
        return e.op("stablehlo.select", [none, e.full(math.nan, out), found], [out])

    return fold


def _by_lanes(fold: Callable[..., Any], kept: str) -> Alternative:
    """Return the form for rows; `kept` is the comparison of a lane with an element that leaves the lane as it is."""

    def takes(ins: Sequence[ShapedArray], outs: Sequence[ShapedArray], *, axes: tuple[int, ...]) -> bool:
        (x,) = ins
        return x.dtype.itemsize >= 4 and x.size >= LARGE and fits(x, axes, LEAST)

    def lower(e: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
        (aval,), (out,) = e.ins, e.outs
        if not kernels.allowed(e):
            return fold(e, x, aval, axes, out)
        lane = ShapedArray((1, LANES), aval.dtype)
        flags = lane.update(dtype=dtypes.bool_)

        def step(e: Any, piece: Any, at: Any, best: Any) -> list[Any]:
            stays = e.op(
                "stablehlo.or", [e.compare(kept, best, piece, flags, "FLOAT"), is_nan(e, piece, lane)], [flags]
            )
            return [e.op("stablehlo.select", [stays, best, piece], [lane])]

        finish = lambda e, best: fold(e, best, lane, (1,), lane.update(shape=(1,)))
        first = lambda e: [e.full(math.nan, lane)]  # no number compares with it, and so the first one takes its place
        return fold_rows(e, x, aval, out.ndim, out, first, [lane], step, finish)

    def edges() -> list[tuple[SampleInput, bool]]:
        cases = [
            ((LARGE,), (0,), "float32", True), ((LARGE - 1,), (0,), "float32", False),
            ((8, LEAST), (1,), "float64", True), ((9, LEAST - 1), (1,), "float64", False),
            ((3, 40, 50), (1, 2), "float32", True), ((3, 40, 50), (0, 1), "float32", False),
            ((2, 2051), (1,), "bfloat16", False), ((2, 2051), (1,), "float32", True),
        ]  # fmt: skip
        holes = np.resize(np.array([np.nan, -np.inf, np.nan, 3.5, -0.5], np.float32), (6, 1003))
        holes[1], holes[2], holes[3] = np.nan, -np.inf, np.inf
        holes[4, 1:] = holes[5, :-1] = np.nan
        return [
            *((SampleInput((ShapedArray(s, d),), {"axes": a}, smooth=False), taken) for s, a, d, taken in cases),
            (SampleInput((holes,), {"axes": (1,)}, smooth=False), True),
        ]

    limits = f"rows of at least {LEAST} floats of 32 or 64 bits, {LARGE:,} to {MOST:,} elements in all"
    return Alternative("lanes", limits, takes, lower, edges, slow_compile=True, optimised_only=True)


def _samples() -> list[SampleInput]:
    holes = np.array([[np.nan, 2, -np.inf, 1], [np.nan] * 4, [np.inf, np.nan, 0.5, np.nan]], np.float32)
    made = [SampleInput((holes,), {"axes": axes}, smooth=False) for axes in ((0,), (1,), (0, 1), ())]
    return sampled("float32", "float64", "bfloat16")() + made


def _extreme(name: str, kind: str, fold: np.ufunc, identity: Callable[[Any], Any], kept: str) -> Primitive:
    folded = _folded(kind, identity)

    def standard(e: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
        return folded(e, x, e.ins[0], axes, e.outs[0])

    primitive = reduction(
        name,
        kind,
        lambda x, axes, start: fold.reduce(x, axes, initial=start),
        _nan,
        dtypes.is_float,
        "real floats",
        extreme_jvp(lambda: primitive, may_lack=True),
        _samples,
        Lowering(name, standard, _by_lanes(folded, kept)),
    )
    return primitive


reduce_fmax = _extreme("reduce_fmax", "maximum", np.fmax, lowest, "GE")
reduce_fmin = _extreme("reduce_fmin", "minimum", np.fmin, highest, "LE")
