"""Rows folded in lanes on CPUs: one kernel that keeps, for each of 64 neighbouring places, what it has folded there.

A row is read 64 elements at a time, which LLVM folds by vector code, whatever the fold computes. XLA's own loops use
such code for sums, products and extremes of arrays in memory alone. The kernel runs on one thread.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from functorch_like.avals import ShapedArray
from functorch_like.primitives.base.counted_loop import FLAG, INDEX

#: Elements that a step folds. Of 32 it is 4 times slower; of 128 and more as fast, but for short rows.
LANES = 64
#: Elements of an array up to which one thread takes no longer than XLA's loops on several.
MOST = 1 << 22


def fits(aval: ShapedArray, axes: Sequence[int], least: int) -> bool:
    """Return True if axes are the last ones, of at least so many elements, in an array that one thread may fold."""
    last = tuple(range(aval.ndim - len(axes), aval.ndim))
    return tuple(axes) == last and math.prod(aval.shape[d] for d in axes) >= least and 0 < aval.size <= MOST


def fold_rows(
    e: Any,
    x: Any,
    aval: ShapedArray,
    kept: int,
    out: ShapedArray,
    first: Callable[[Any], list[Any]],
    avals: Sequence[ShapedArray],
    fold: Callable[..., list[Any]],
    finish: Callable[..., Any],
) -> Any:
    """Emit the fold of an array over its last dimensions, which have at least `LANES` elements.

    The last step of a row may read elements again that the one before it has read: the fold must not count them.

    Args:
        e: the emitter; `kernels.allowed(e)`.
        x: the operand.
        aval: its aval.
        kept: how many dimensions are kept.
        out: aval of the result.
        first: emits the values before the first step, of a row.
        avals: avals of these, of shape (1, LANES).
        fold: emits a step: `(emitter, elements, position of the first of them, *values) -> values`.
        finish: emits the result of a row, of shape (1,): `(emitter, *values) -> value`.
    """
    rows, n = math.prod(aval.shape[:kept]), math.prod(aval.shape[kept:])
    flat, made = aval.update(shape=(rows, n)), out.update(shape=(rows,))
    part, sizes = aval.update(shape=(1, LANES)), e.i64s((1, LANES))
    number = lambda e, k: e.full(k, INDEX)
    op = lambda e, name, a, b: e.op(f"stablehlo.{name}", [a, b], [INDEX])
    below = lambda end: lambda e, k, *_: [e.compare("LT", k, number(e, end), FLAG, "SIGNED")]

    def step(e: Any, k: Any, row: Any, x: Any, *values: Any) -> list[Any]:
        at = op(e, "minimum", k, number(e, n - LANES))
        piece = e.op("stablehlo.dynamic_slice", [x, row, at], [part], {"slice_sizes": sizes})
        return [op(e, "add", k, number(e, LANES)), row, x, *fold(e, piece, at, *values)]

    def whole(e: Any, row: Any, x: Any, y: Any) -> list[Any]:
        values = e.loop(
            [number(e, 0), row, x, *first(e)], [INDEX, INDEX, flat, *avals], below(n), step
        )  # fmt: skip
        y = e.op("stablehlo.dynamic_update_slice", [y, finish(e, *values[3:]), row], [made])
        return [op(e, "add", row, number(e, 1)), x, y]

    x = e.op("stablehlo.reshape", [x], [flat])
    y = e.loop([number(e, 0), x, e.full(0, made)], [INDEX, flat, made], below(rows), whole, one_kernel=True)[-1]
    return e.op("stablehlo.reshape", [y], [out])
