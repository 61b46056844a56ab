"""Sums and extremes of integers on CPUs: XLA's loop over the last dimension folds one element after the other.

A fold of columns of 32, and then of what is left of them, computes many elements at once. XLA computes the operands of
a fold with it, such as `x > 0` in a count, and LLVM makes vector code of that for short columns alone. So a long row is
divided into parts, each of which is folded by columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import SampleInput
from functorch_like.primitives.base.lowering import Alternative
from functorch_like.primitives.base.window_geometry import emit_tap

#: Columns. Of 32-bit integers 16 are as fast, of 64-bit ones slower; 48, 96 and 128 are slower than one.
_COLUMNS = 32
#: Lengths of columns. LLVM does not unroll those of 50 and more, and computes operands one by one then.
_PARTS = range(8, 33)
#: Elements of the last dimensions, and of the operand, from which on columns are faster: 1.5 to 10 times.
LEAST, LARGE = 64, 4096


def _last(axes: Sequence[int], ndim: int) -> int:
    """Return how many of the last dimensions are folded."""
    count = 0
    while count < len(axes) and axes[-1 - count] == ndim - 1 - count:
        count += 1
    return count


def _part(rows: int, parts: range = _PARTS) -> int:
    """Return the length of columns of which the fewest of some rows are left over.

    >>> _part(6250), _part(20), _part(31 * 37)
    (25, 20, 31)
    """
    return rows if rows in range(1, parts[-1] + 1) else min(reversed(parts), key=lambda k: rows % k)


def fold_columns(
    e: Any,
    kind: str,
    x: Any,
    aval: ShapedArray,
    axes: Sequence[int],
    out: ShapedArray,
    start: Any,
    parts: range = _PARTS,
) -> Any:
    """Emit a fold by columns over the last dimensions, of at least 32 elements in all, and then over the others.

    Args:
        e: the emitter.
        kind: the StableHLO operation that folds two values.
        x: the operand.
        aval: its aval.
        axes: the dimensions.
        out: aval of the result.
        start: the identity of the operation.
        parts: lengths of columns; short ones where the operand takes several operations.
    """
    kept = aval.ndim - _last(axes, aval.ndim)
    lead, n = aval.shape[:kept], math.prod(aval.shape[kept:])
    others = [d for d in axes if d < kept]
    flat = aval.update(shape=(*lead, n))
    x, part = e.reshape(x, aval, flat), _part(n // _COLUMNS, parts)
    many = n // _COLUMNS // part
    whole = many * part * _COLUMNS
    apart = lambda y, a: e.op("stablehlo.optimization_barrier", [y], [a])  # XLA would make one fold of both

    def piece(first: int, stop: int) -> tuple[Any, ShapedArray]:
        cut = flat.update(shape=(*lead, stop - first))
        return emit_tap(e, x, [*(slice(0, size, 1) for size in lead), slice(first, stop, 1)], cut), cut

    y, cut = piece(0, whole)
    sized = lambda *more: flat.update(shape=(*lead, *more))
    y = e.reduce(kind, e.reshape(y, cut, sized(many, part, _COLUMNS)), start, [kept + 1], sized(many, _COLUMNS))
    y = e.reduce(kind, apart(y, sized(many, _COLUMNS)), start, [kept + 1], sized(many))
    y = apart(y, sized(many))
    y = e.reduce(kind, y, start, [kept], sized()) if many > 1 else e.reshape(y, sized(many), sized())
    if whole < n:
        rest, cut = piece(whole, n)
        y = e.op(f"stablehlo.{kind}", [y, e.reduce(kind, rest, start, [kept], sized())], [sized()])
    return e.reduce(kind, apart(y, sized()), start, others, out) if others else y


def by_columns(kind: str, identity: Callable[[Any], Any]) -> Alternative:
    """Return the form that folds columns first.

    Args:
        kind: the StableHLO operation that folds two values.
        identity: of the operation, for a dtype.
    """

    def takes(ins: Sequence[ShapedArray], outs: Sequence[ShapedArray], *, axes: tuple[int, ...]) -> bool:
        (x,) = ins
        wide = dtypes.is_integer(x.dtype) and x.dtype.itemsize >= 2 and x.size >= LARGE
        return wide and math.prod(x.shape[x.ndim - _last(axes, x.ndim) :]) >= LEAST

    def lower(e: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
        (aval,), (out,) = e.ins, e.outs
        if e.partitioning is not None:  # a reshape may bring parts of an array to other devices
            return e.reduce(kind, x, identity(out.dtype), axes, out)
        return fold_columns(e, kind, x, aval, axes, out, identity(out.dtype))

    def edges() -> list[tuple[SampleInput, bool]]:
        cases = [
            ((LARGE,), (0,), "int32", True), ((LARGE - 1,), (0,), "int32", False), ((LARGE + 5,), (0,), "uint64", True),
            ((LARGE // LEAST, LEAST), (1,), "uint32", True), ((LARGE, LEAST - 1), (1,), "int64", False),
            ((3, 50, 7, 9), (1, 2, 3), "int64", True), ((70, 3, 65), (0, 2), "int32", True),
            ((100, 70), (0,), "int32", False), ((2, 3, 3361), (2,), "int32", True),
            ((33 * 41 * 32 + 40,), (0,), "int64", True), ((100, 70), (), "int32", False),
            ((2, LARGE), (1,), "int16", True), ((2, LARGE), (1,), "int8", False), ((2, LARGE), (1,), "float32", False),
        ]  # fmt: skip
        return [(SampleInput((ShapedArray(s, d),), {"axes": a}), taken) for s, a, d, taken in cases]

    return Alternative(
        "parts and columns",
        f"integers of 16 bits and more, at least {LARGE:,} in all and {LEAST} in the last dimensions",
        takes,
        lower,
        edges,
    )
