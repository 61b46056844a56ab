"""Places of extreme floats in rows on CPUs: the extreme of a row, then the first place of it, folded by columns.

Libraries find extremes in a quarter of the time of a search for places; the least of places is a fold of integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import SampleInput
from functorch_like.primitives.base.integer_folds_cpu import LEAST, fold_columns
from functorch_like.primitives.base.lowering import Alternative
from functorch_like.primitives.elementwise.extremes_cpu import is_nan

#: Elements of the operand from which columns are faster, and of a row up to which they are: longer ones have blocks.
LARGE, LONG = 4096, 1 << 13
#: Lengths of columns.
_PARTS = range(4, 13)


def by_places(find: Callable[..., Any], kind: str, identity: Callable[[Any], Any]) -> Alternative:
    """Return the form for rows.

    Args:
        find: `find(e, x, aval, axis, out)`, the standard form.
        kind: the operation that keeps the extreme of two elements, by its name in StableHLO.
        identity: of this operation, for a dtype.
    """

    def takes(ins: Sequence[ShapedArray], outs: Sequence[ShapedArray], *, axes: tuple[int, ...], **_: Any) -> bool:
        (x,), (axis,) = ins, axes
        fits = x.dtype in (dtypes.float32, dtypes.float64) and axis == x.ndim - 1
        return fits and x.size >= LARGE and LEAST <= x.shape[-1] <= LONG

    def lower(e: Any, x: Any, *, axes: tuple[int, ...], index_dtype: Any) -> Any:
        (aval,), (out,) = e.ins, e.outs
        if e.partitioning is not None:
            return find(e, x, aval, axes[0], out)
        n, d = aval.shape[-1], aval.ndim - 1
        index, flags = aval.update(dtype=dtypes.int32, weak_type=False), aval.update(dtype=dtypes.bool_)
        found, small = index.update(shape=aval.shape[:-1]), aval.update(shape=aval.shape[:-1])
        op = lambda name, *xs: e.op(f"stablehlo.{name}", list(xs), [index])
        x = e.materialized(x, aval)
        best = e.materialized(e.reduce(kind, x, identity(aval.dtype), axes, small), small)  # else YNNPACK repeats it
        best = e.broadcast_in_dim(best, aval, range(d))
        place = e.op("stablehlo.iota", [], [index], attrs={"iota_dimension": e.i64(d)})
        # Places of NaN come first, then those of the extreme, whether or not it skips NaN.
        # If no element equals the extreme, the result is the last place: no place is beyond the row.
        equal = e.compare("EQ", x, best, flags, "FLOAT")
        hit = op("select", equal, op("add", place, e.full(n, index)), e.full(2 * n - 1, index))
        key = op("select", is_nan(e, x, aval), place, hit)
        least = fold_columns(e, "minimum", key, index, axes, found, np.int32(2 * n - 1), _PARTS)
        place_of_extreme = e.op("stablehlo.subtract", [least, e.full(n, found)], [found])
        has_nan = e.compare("LT", least, e.full(n, found), found.update(dtype=dtypes.bool_), "SIGNED")
        return e.convert(e.op("stablehlo.select", [has_nan, least, place_of_extreme], [found]), out)

    def edges() -> list[tuple[SampleInput, bool]]:
        cases = [
            ((LARGE,), "float32", 0, True), ((LARGE - 1,), "float32", 0, False), ((LONG,), "float64", 0, True),
            ((LONG + 1,), "float32", 0, False), ((64, LEAST), "float64", 1, True),
            ((80, LEAST - 1), "float32", 1, False), ((2, 21, 131), "float32", 2, True),
            ((101, 64), "float32", 0, False),
            ((64, 101), "bfloat16", 1, False), ((2, 9, 1000), "float64", 2, True),
        ]  # fmt: skip
        params = {"axes": (1,), "index_dtype": dtypes.int64}
        made = [
            (SampleInput((ShapedArray(s, d),), {"axes": (a,), "index_dtype": dtypes.int32}, smooth=False), taken)
            for s, d, a, taken in cases
        ]
        nans = np.resize(np.array([0.0, -0.0, np.inf, -np.inf, 1e-30], np.float32), (6, 1031))
        nans[1, 700], nans[1, 900], nans[2] = np.nan, -np.nan, -0.0
        nans[3], nans[4], nans[5] = np.inf, -np.inf, np.nan
        return [*made, (SampleInput((nans,), params, smooth=False), True)]

    limits = f"rows of {LEAST} to {LONG:,} float32 or float64, {LARGE:,} elements in all"
    return Alternative("places by columns", limits, takes, lower, edges)
