"""Positions of true elements on CPUs: one kernel that goes through the elements and keeps their count.

Each element writes its position at the count so far. That of a false one is overwritten by the next true one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import SampleInput
from functorch_like.primitives.base import kernels
from functorch_like.primitives.base.counted_loop import FLAG, INDEX
from functorch_like.primitives.base.lowering import Alternative

#: Elements of a step: 1, 2, 4, 8 and 16 take 390, 270, 220, 220 and 270 us for 200,000.
_UNROLLED = 4
#: Elements of all rows, which 32 bits count.
_MOST = 2**31 - 1


def counted(standard: Callable[..., Any]) -> Alternative:
    """Return the form that counts; `standard` is the one for programs whose loops cannot be kernels."""

    def takes(ins: Sequence[ShapedArray], outs: Sequence[ShapedArray], *, size: int, **_: Any) -> bool:
        (x,) = ins
        return 0 < x.size <= _MOST and size > 0 and math.prod(x.shape[:-1]) * (size + 1) <= _MOST

    def lower(e: Any, x: Any, *, size: int, index_dtype: Any) -> Any:
        (aval,), (out,) = e.ins, e.outs
        if not kernels.allowed(e):
            return standard(e, x, size=size, index_dtype=index_dtype)
        n, rows = aval.shape[-1], math.prod(aval.shape[:-1])
        # One more place behind each row takes the positions that are too many.
        flat, long = aval.update(shape=(rows * n,)), ShapedArray((rows * (size + 1),), dtypes.int32)
        x = e.op("stablehlo.reshape", [x], [flat])
        number = lambda e, k: e.full(k, INDEX)
        add = lambda e, a, b: e.op("stablehlo.add", [a, b], [INDEX])
        put = lambda e, y, place, at: e.op(
            "stablehlo.dynamic_update_slice",
            [y, e.op("stablehlo.reshape", [place], [long.update(shape=(1,))]), at],
            [long],
        )
        sizes = e.i64s((1,))

        def below(many: int) -> Callable[..., list[Any]]:
            def more(e: Any, k: Any, *_: Any) -> list[Any]:
                return [e.compare("LE", k, number(e, n - many), FLAG, "SIGNED")]

            return more

        def elements(many: int) -> Callable[..., list[Any]]:
            def step(e: Any, k: Any, start: Any, at: Any, last: Any, x: Any, y: Any) -> list[Any]:
                for i in range(many):
                    place = add(e, k, number(e, i)) if i else k
                    flag = [x, add(e, start, place)]
                    flag = e.op("stablehlo.dynamic_slice", flag, [flat.update(shape=(1,))], {"slice_sizes": sizes})
                    flag = e.convert(e.op("stablehlo.reshape", [flag], [FLAG]), INDEX)
                    y = put(e, y, place, at)
                    at = e.op("stablehlo.minimum", [add(e, at, flag), last], [INDEX])
                return [add(e, k, number(e, many)), start, at, last, x, y]

            return step

        def row(e: Any, k: Any, start: Any, at: Any, x: Any, y: Any) -> list[Any]:
            last = add(e, at, number(e, size))
            values = [number(e, 0), start, at, last, x, y]
            avals = [INDEX, INDEX, INDEX, INDEX, flat, long]
            if n >= _UNROLLED:
                values = e.loop(values, avals, below(_UNROLLED), elements(_UNROLLED))
            if n % _UNROLLED:
                values = e.loop(values, avals, below(1), elements(1))
            y = put(e, values[5], number(e, -1), values[2])
            return [add(e, k, number(e, 1)), add(e, start, number(e, n)), add(e, last, number(e, 1)), x, y]

        more = lambda e, k, *_: [e.compare("LT", k, number(e, rows), FLAG, "SIGNED")]
        first = [*[number(e, 0)] * 3, x, e.full(-1, long)]
        y = e.loop(first, [INDEX, INDEX, INDEX, flat, long], more, row, one_kernel=True)[-1]
        wide = long.update(shape=(rows, size + 1))
        attrs = {"start_indices": e.i64s((0, 0)), "limit_indices": e.i64s((rows, size)), "strides": e.i64s((1, 1))}
        cut = long.update(shape=(rows, size))
        y = e.op("stablehlo.slice", [e.op("stablehlo.reshape", [y], [wide])], [cut], attrs=attrs)
        return e.convert(e.op("stablehlo.reshape", [y], [out.update(dtype=dtypes.int32)]), out)

    def edges() -> list[tuple[SampleInput, bool]]:
        mask = lambda *shape: np.arange(math.prod(shape)).reshape(shape) * 7919 % 1009 < 400
        cases = [
            (mask(1), 1, True), (mask(3), 5, True), (mask(1001), 300, True), (mask(5, 202), 90, True),
            (mask(2, 3, 4), 4, True), (mask(4, 0), 3, False), (mask(4, 3), 0, False),
        ]  # fmt: skip
        return [
            (SampleInput((x,), {"size": size, "index_dtype": dtypes.int32}, smooth=False), taken)
            for x, size, taken in cases
        ]

    return Alternative("a count", "any flags and positions, at most 2**31 - 1 of each", takes, lower, edges)
