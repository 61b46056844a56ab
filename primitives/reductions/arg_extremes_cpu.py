"""Places of extreme elements in long rows: first the block of the row that holds it is found, then the place in it.

Only the greatest element of each block is needed for the first step, which libraries find in a quarter of the time of a
search for the place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import SampleInput
from functorch_like.primitives.base.lowering import Alternative
from functorch_like.primitives.base.rows_at import rows_at
from functorch_like.primitives.reductions import arg_extremes_columns_cpu
from functorch_like.primitives.reductions.extremes_cpu import unless_nan

#: Elements of a row up to which another form is faster, and of the whole operand from which blocks are: 0.2 to 0.25 of
#: the time of the standard form for rows of 32,000, half for a single row of 65,536.
SHORTER, LARGE = arg_extremes_columns_cpu.LONG, 1 << 14
#: Elements in a block, and blocks in a row, at least.
LEAST = 8


def block(n: int) -> int:
    """Return the divisor of the length of a row that is nearest to its root, or 0 if it has none near enough.

    >>> block(1024), block(32000), block(50257), block(1031)
    (32, 160, 29, 0)
    """
    near = [d for d in range(math.isqrt(n), LEAST - 1, -1) if n % d == 0]
    return near[0] if near and n // near[0] <= n // LEAST else 0


def by_blocks(find: Callable[..., Any], kind: str, identity: Callable[[Any], Any]) -> Alternative:
    """Return the form for rows.

    Args:
        find: `find(e, x, aval, axis, out, nan=True)`, the standard form; `nan=False` for operands without NaN.
        kind: the operation that keeps the greater of two elements, by its name in StableHLO.
        identity: the element that is never greater, of a dtype.
    """

    def takes(
        ins: Sequence[ShapedArray], outs: Sequence[ShapedArray], *, axes: tuple[int, ...], index_dtype: Any
    ) -> bool:
        (x,), (axis,) = ins, axes
        fits = x.dtype in (dtypes.float32, dtypes.float64) and np.dtype(index_dtype).itemsize >= 4
        return fits and axis == x.ndim - 1 and x.size >= LARGE and x.shape[-1] > SHORTER and block(x.shape[-1]) > 0

    def lower(e: Any, x: Any, *, axes: tuple[int, ...], index_dtype: Any) -> Any:
        (aval,), (out,) = e.ins, e.outs
        if e.partitioning is not None:
            return find(e, x, aval, axes[0], out)
        x = e.materialized(x, aval)
        usual = lambda inner, x: _by_blocks(inner, x, aval, out)
        exact = lambda inner, x: find(inner, x, aval, axes[0], out)
        return unless_nan(e, x, aval, tuple(range(aval.ndim)), usual, exact)

    def _by_blocks(e: Any, x: Any, aval: ShapedArray, out: ShapedArray) -> Any:
        width = block(aval.shape[-1])
        lead, count = aval.shape[:-1], aval.shape[-1] // width
        d = len(lead)
        blocks, greatest = aval.update(shape=(*lead, count, width)), aval.update(shape=(*lead, count))
        one, row = out.update(shape=(*lead, 1)), aval.update(shape=(*lead, width))
        x = e.reshape(x, aval, blocks)
        which = find(e, e.reduce(kind, x, identity(aval.dtype), (d + 1,), greatest), greatest, d, out, nan=False)
        held = rows_at(e, x, e.reshape(which, out, one), blocks, one, d)
        place = find(e, e.reshape(held, blocks.update(shape=(*lead, 1, width)), row), row, d, out, nan=False)
        start = e.op("stablehlo.multiply", [which, e.full(width, out)], [out])
        return e.op("stablehlo.add", [start, place], [out])

    def edges() -> list[tuple[SampleInput, bool]]:
        long = SHORTER + 28  # 60 times 137
        cases = [
            ((2, long), "float32", 1, True),
            ((1, long), "float32", 1, False),
            ((2, SHORTER), "float32", 1, False),
            ((LARGE,), "float64", 0, True),
            ((2, SHORTER + 17), "float32", 1, False),
            ((2, 1, 9000), "float64", 2, True),
            ((long, 2), "float32", 0, False),
            ((2, long), "int32", 1, False),
        ]
        return [
            (SampleInput((ShapedArray(s, d),), {"axes": (a,), "index_dtype": dtypes.int32}, smooth=False), taken)
            for s, d, a, taken in cases
        ]

    return Alternative(
        "blocks",
        f"rows of more than {SHORTER:,} float32 or float64 that divide into blocks, {LARGE:,} elements in all",
        takes,
        lower,
        edges,
        conditional=True,
    )
