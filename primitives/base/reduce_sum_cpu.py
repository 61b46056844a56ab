"""Sums that XLA:CPU runs faster by its own loops than by the library of kernels it hands reductions to.

The library takes only sums whose body is an addition. The body a - (-b) gives the same, and XLA does not rewrite it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.backends.xla.option_sets import SLOW_COLUMNS
from functorch_like.core import SampleInput
from functorch_like.primitives.base.accumulating import accumulated
from functorch_like.primitives.base.lowering import Alternative

#: Case 1: at most FEW terms in each sum, in an operand of at least LARGE elements. 22 times as fast for 3 terms, twice
#: for 12; in double precision 6 and 1.3 times. LARGE holds for all cases.
FEW, LARGE = 12, 4096
#: Case 2: sums over one dimension, with at most NARROW elements in the dimensions after it. 9 times as fast for 3, 1.5
#: to 2 times for 32.
NARROW = 32
#: Case 3: at least MANY sums over the first dimension. 1.7 to 14 times as fast; 100 times for operands computed on the
#: fly from few values. With half as many sums the library is faster.
MANY = 1 << 15


def _fits(ins: Sequence[ShapedArray], outs: Sequence[ShapedArray], *, axes: tuple[int, ...]) -> bool:
    operand = ins[0]
    wide = dtypes.accumulator(operand.dtype)
    if wide not in (dtypes.float32, dtypes.float64) or operand.size < LARGE or not axes:
        return False
    few = math.prod(operand.shape[a] for a in axes) <= FEW
    if wide == dtypes.float64:
        return few and len(axes) == 1  # the library is faster for others that are computed on the fly
    if few:
        return True
    beside = math.prod(operand.shape[axes[-1] + 1 :])
    single = operand.dtype == dtypes.float32  # narrower floats are faster by the library here
    narrow = single and len(axes) == 1 and axes[0] < operand.ndim - 1 and beside <= NARROW
    return narrow or (SLOW_COLUMNS and axes == (0,) and outs[0].size >= MANY)


def _own(e: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
    if e.partitioning is not None:  # XLA would add up partial sums by this body, and its collectives take additions
        return e.reduce("add", x, 0, axes, e.outs[0])
    scalar = e.outs[0].update(shape=(), weak_type=False)

    def add(inner: Any, a: Any, b: Any) -> list[Any]:
        return [inner.op("stablehlo.subtract", [a, inner.op("stablehlo.negate", [b], [scalar])], [scalar])]

    zero = e.constant(np.zeros((), scalar.dtype))
    region = ([scalar, scalar], add)
    return e.op("stablehlo.reduce", [x, zero], e.outs, {"dimensions": e.i64s(axes)}, [region])


def _edges() -> list[tuple[SampleInput, bool]]:
    cases = [
        ((LARGE // 2, 2), (1,), "float32", True),
        ((LARGE // FEW + 1, FEW), (1,), "float32", True),
        ((LARGE // FEW, FEW + 1), (1,), "float32", False),
        ((3, 500, 2, 2), (2, 3), "float32", True),
        ((8, FEW + 8, 4, NARROW // 4), (1,), "float32", True),
        ((8, FEW + 8, 4, NARROW // 4 + 1), (1,), "float32", False),
        ((LARGE // 8, FEW + 8), (1,), "float32", False),
        ((LARGE // 2 - 1, 2), (1,), "float32", False),
        ((LARGE // 2, 2), (1,), "float64", True),
        ((LARGE // FEW, FEW + 1), (1,), "float64", False),
        ((2, LARGE, 2), (0, 2), "float64", False),
        ((LARGE // 2, 2), (), "float32", False),
        ((LARGE // FEW + 1, FEW), (1,), "bfloat16", True),
        ((8, FEW + 8, 4, NARROW // 4), (1,), "bfloat16", False),
        ((FEW + 1, MANY), (0,), "float32", SLOW_COLUMNS),
        ((FEW + 1, MANY - 1), (0,), "float32", False),
    ]
    return [(SampleInput((ShapedArray(shape, dtype),), {"axes": axes}), taken) for shape, axes, dtype, taken in cases]


OWN_LOOP = Alternative(
    "XLA's own loop",
    f"sums of at most {FEW} floats (of float64 over one dimension), or {NARROW} float32 columns; with jaxlib 0.10, of "
    f"at least {MANY} columns, too",
    _fits,
    accumulated(_own),
    _edges,
)
