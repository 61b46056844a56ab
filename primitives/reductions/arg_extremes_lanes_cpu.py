"""Places of extreme elements in rows on CPUs, by a kernel that keeps the extreme of each lane and where it was.

Floats are compared as integers of the same order, in which NaN is the extreme and zeros of both signs are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import SampleInput
from functorch_like.primitives.base import kernels
from functorch_like.primitives.base.lanes import LANES, MOST, fits, fold_rows
from functorch_like.primitives.base.lowering import Alternative
from functorch_like.primitives.reductions.makers import highest, lowest

#: Elements of a row from which lanes are faster, of integers of 32 and 64 bits and of others, and of the whole operand.
WIDE, OTHER, LARGE = 100, 300, 4096
_TAKEN = {
    "bool",
    "bfloat16",
    "float16",
    "float32",
    "float64",
    *(f"{u}int{b}" for u in ("", "u") for b in (8, 16, 32, 64)),
}
_LAST = 2**31 - 1


def _compared(dtype: Any) -> Any:
    """The dtype of the integers that are compared."""
    return np.dtype(f"int{8 * dtype.itemsize}") if dtypes.is_float(dtype) else dtype


def _as_integers(e: Any, x: Any, aval: ShapedArray, out: ShapedArray, extreme: Callable[[Any], Any]) -> Any:
    """Emit integers of the same order. A float's bits are its sign and magnitude."""
    if not dtypes.is_float(aval.dtype):
        return x
    flags = out.update(dtype=dtypes.bool_)
    bits = e.op("stablehlo.bitcast_convert", [x], [out])
    mirrored = e.op("stablehlo.subtract", [e.full(lowest(out.dtype), out), bits], [out])
    negative = e.compare("LT", bits, e.full(0, out), flags, "SIGNED")
    key = e.op("stablehlo.select", [negative, mirrored, bits], [out])
    return e.op(
        "stablehlo.select", [e.compare("NE", x, x, flags, "FLOAT"), e.full(extreme(out.dtype), out), key], [out]
    )


def by_lanes(find: Callable[..., Any], kind: str) -> Alternative:
    """Return the form for rows.

    Args:
        find: `find(e, x, aval, axis, out)`, the standard form.
        kind: the operation that keeps the extreme of two elements, by its name in StableHLO.
    """
    extreme, start = (highest, lowest) if kind == "maximum" else (lowest, highest)
    beyond = "GT" if kind == "maximum" else "LT"

    def takes(ins: Sequence[ShapedArray], outs: Sequence[ShapedArray], *, axes: tuple[int, ...], **_: Any) -> bool:
        (x,) = ins
        least = WIDE if dtypes.is_integer(x.dtype) and x.dtype.itemsize >= 4 else OTHER
        return x.dtype.name in _TAKEN and x.size >= LARGE and fits(x, axes, least)

    def lower(e: Any, x: Any, *, axes: tuple[int, ...], index_dtype: Any) -> Any:
        (aval,), (out,) = e.ins, e.outs
        if not kernels.allowed(e):
            return find(e, x, aval, axes[0], out)
        if aval.dtype == dtypes.bool_:  # of booleans LLVM makes no vector code in some programs: ten times as long
            x, aval = e.convert(x, aval.update(dtype=dtypes.uint8)), aval.update(dtype=dtypes.uint8)
        lane = ShapedArray((1, LANES), _compared(aval.dtype))
        index, flags = lane.update(dtype=dtypes.int32), lane.update(dtype=dtypes.bool_)
        signed = "SIGNED" if dtypes.is_signed(lane.dtype) else "UNSIGNED"
        least = start(lane.dtype)

        def fold(e: Any, piece: Any, at: Any, best: Any, where: Any) -> list[Any]:
            key = _as_integers(e, piece, aval.update(shape=lane.shape), lane, extreme)
            new = e.compare(beyond, key, best, flags, signed)
            at = e.broadcast_in_dim(at, index, [])
            return [
                e.op("stablehlo.select", [new, key, best], [lane]), e.op("stablehlo.select", [new, at, where], [index])
            ]  # fmt: skip

        def finish(e: Any, best: Any, where: Any) -> Any:
            """Emit the least of the places in the lanes that hold the extreme."""
            one = lane.update(shape=(1,))
            found = e.broadcast_in_dim(e.reduce(kind, best, least, (1,), one), lane, [0])
            hit = e.compare("EQ", best, found, flags, signed)
            number = e.op("stablehlo.iota", [], [index], attrs={"iota_dimension": e.i64(1)})
            place = e.op("stablehlo.add", [where, number], [index])
            place = e.op("stablehlo.select", [hit, place, e.full(_LAST, index)], [index])
            return e.reduce("minimum", place, np.int32(_LAST), (1,), one.update(dtype=dtypes.int32))

        first = lambda e: [e.full(least, lane), e.full(0, index)]
        made = out.update(dtype=dtypes.int32)
        return e.convert(fold_rows(e, x, aval, aval.ndim - 1, made, first, [lane, index], fold, finish), out)

    def edges() -> list[tuple[SampleInput, bool]]:
        cases = [
            ((LARGE,), "int32", 0, True), ((LARGE - 1,), "int32", 0, False), ((50, WIDE), "int32", 1, True),
            ((50, WIDE - 1), "int32", 1, False), ((15, OTHER), "uint8", 1, True), ((15, OTHER - 1), "uint8", 1, False),
            ((2, 21, 131), "int64", 2, True), ((64, 101), "uint64", 1, True),
            ((101, 64), "int32", 0, False), ((5, 1031), "bool", 1, True), ((5, 1031), "bfloat16", 1, True),
            ((2, 8209), "float32", 1, True), ((8209,), "float64", 0, True), ((3, 1500), "float16", 1, True),
        ]  # fmt: skip
        made = [
            (SampleInput((ShapedArray(s, d),), {"axes": (a,), "index_dtype": dtypes.int32}, smooth=False), taken)
            for s, d, a, taken in cases
        ]
        nans = np.resize(np.array([0.0, -0.0, np.inf, -np.inf, 1e-30], np.float32), (4, 8209))
        nans[1, 7000], nans[1, 8000], nans[2] = np.nan, -np.nan, -0.0
        ends = np.resize(np.array([5, -(2**31), 2**31 - 1], np.int32), (4, 1031))
        ends[1], ends[2] = -(2**31), 2**31 - 1
        params = {"axes": (1,), "index_dtype": dtypes.int64}
        return made + [(SampleInput((x,), params, smooth=False), True) for x in (nans, ends)]

    limits = (
        f"rows of at least {WIDE} integers of 32 or 64 bits, or {OTHER} booleans, floats or narrow integers, "
        f"{LARGE:,} to {MOST:,} elements in all"
    )
    return Alternative("lanes", limits, takes, lower, edges)
