"""Places of extreme elements in short rows on CPUs: columns are compared in turn, for many rows at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import SampleInput
from functorch_like.primitives.base.integer_folds_cpu import LEAST
from functorch_like.primitives.base.lowering import Alternative

#: Elements of a row, at most, and at least, of the whole operand. Rows of 64 are as fast in parts and columns.
SHORT, LARGE = LEAST - 1, 4096
_DTYPES = {"float32", "float64", "bfloat16", "float16", "int32", "int64"}


def by_turns(find: Callable[..., Any], kind: str) -> Alternative:
    """Return the form for short rows.

    Args:
        find: `find(e, x, aval, axis, out)`, the standard form.
        kind: the operation that keeps the extreme of two elements, by its name in StableHLO.
    """
    no_better = "LE" if kind == "maximum" else "GE"

    def takes(ins: Sequence[ShapedArray], outs: Sequence[ShapedArray], *, axes: tuple[int, ...], **_: Any) -> bool:
        (x,), (axis,) = ins, axes
        return x.dtype.name in _DTYPES and axis == x.ndim - 1 and 2 <= x.shape[axis] <= SHORT and x.size >= LARGE

    def lower(e: Any, x: Any, *, axes: tuple[int, ...], index_dtype: Any) -> Any:
        (aval,), (out,) = e.ins, e.outs
        if e.partitioning is not None:
            return find(e, x, aval, axes[0], out)
        if dtypes.is_float(aval.dtype) and aval.dtype.itemsize < 4:
            wide = aval.update(dtype=dtypes.float32)
            x, aval = e.convert(x, wide), wide
        rows, n = math.prod(aval.shape[:-1]), aval.shape[-1]
        table, column, one = (aval.update(shape=shape) for shape in ((rows, n), (rows, 1), (rows,)))
        index, flags = one.update(dtype=dtypes.int32, weak_type=False), one.update(dtype=dtypes.bool_)
        compared = "FLOAT" if dtypes.is_inexact(aval.dtype) else "SIGNED"
        table_of = e.reshape(e.materialized(x, aval), aval, table)

        def column_of(k: int) -> Any:
            attrs = {"start_indices": e.i64s((0, k)), "limit_indices": e.i64s((rows, k + 1)), "strides": e.i64s((1, 1))}
            return e.op("stablehlo.reshape", [e.op("stablehlo.slice", [table_of], [column], attrs=attrs)], [one])

        best, where = column_of(0), e.full(0, index)
        for k in range(1, n):
            value = column_of(k)
            new = e.op("stablehlo.not", [e.compare(no_better, value, best, flags, compared)], [flags])
            if compared == "FLOAT":  # nothing is beyond NaN
                new = e.op("stablehlo.and", [new, e.compare("EQ", best, best, flags, compared)], [flags])
            best = e.op("stablehlo.select", [new, value, best], [one])
            where = e.op("stablehlo.select", [new, e.full(k, index), where], [index])
        return e.convert(e.reshape(where, index, index.update(shape=aval.shape[:-1])), out)

    def edges() -> list[tuple[SampleInput, bool]]:
        of = lambda x, axis, index: SampleInput((x,), {"axes": (axis,), "index_dtype": index}, smooth=False)
        cases = [
            ((LARGE // 2, 2), "float32", 1, True),
            ((LARGE // 2 - 1, 2), "float32", 1, False),
            ((LARGE, 1), "float32", 1, False),
            ((70, SHORT), "float64", 1, True),
            ((70, SHORT + 1), "int32", 1, False),
            ((3, 500, 3), "int64", 2, True),
            ((3, 3, 500), "float32", 1, False),
            ((500, 10), "float16", 1, True),
            ((500, 10), "bfloat16", 1, True),
            ((500, 10), "int8", 1, False),
        ]
        nans = np.resize(np.array([0.0, -0.0, np.inf, np.nan, -np.inf, 1.0, -np.nan], np.float32), (LARGE, 3))
        least = np.resize(np.array([-(2**31), 2**31 - 1, -(2**31), 0], np.int32), (LARGE, 5))
        return [
            *((of(ShapedArray(s, d), a, dtypes.int32), taken) for s, d, a, taken in cases),
            *((of(x, 1, dtypes.int64), True) for x in (nans, least)),
        ]

    limits = f"rows of 2 to {SHORT} floats of 16 to 64 bits, int32 or int64, {LARGE:,} elements in all"
    return Alternative("columns in turn", limits, takes, lower, edges)
