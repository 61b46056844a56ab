"""A loop of a known number of steps, and the pieces of arrays that its steps read, for `lower` rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functorch_like import dtypes
from functorch_like.avals import ShapedArray

#: Aval of counters and positions.
INDEX = ShapedArray((), dtypes.int32)
FLAG = ShapedArray((), dtypes.bool_)


def counted_loop(
    e: Any, steps: int, first: Sequence[Any], avals: Sequence[ShapedArray], body: Callable[..., list[Any]]
) -> Any:
    """Emit a loop, and return the first of its values after the last step.

    Args:
        e: the emitter.
        steps: number of steps.
        first: values before the first step.
        avals: of the values.
        body: emits one step, `(emitter, number of the step, *values) -> values`.
    """

    def more(f: Any, i: Any, *_: Any) -> list[Any]:
        return [f.compare("LT", i, f.full(steps, INDEX), FLAG, "SIGNED")]

    def step(f: Any, i: Any, *values: Any) -> list[Any]:
        made = body(f, i, *values)
        return [f.op("stablehlo.add", [i, f.full(1, INDEX)], [INDEX]), *made]

    return e.loop([e.full(0, INDEX), *first], [INDEX, *avals], more, step)[1]


def piece(e: Any, x: Any, starts: Sequence[Any], aval: ShapedArray) -> Any:
    """Emit the piece of `x` that begins at `starts`, at 0 in the dimensions that these leave out; `aval` is its own."""
    places = [*starts, *[e.full(0, INDEX)] * (aval.ndim - len(starts))]
    return e.op("stablehlo.dynamic_slice", [x, *places], [aval], {"slice_sizes": e.i64s(aval.shape)})
