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
#: Sums over the last dimensions, of at most SHORT terms, and over earlier ones that are apart from these, of at least
#: LONG: two sums, one after the other, take 0.2 to 0.6 of the time. So a group norm adds up pixels before channels.
SHORT, LONG = 16, 32


def _fits(ins: Sequence[ShapedArray], outs: Sequence[ShapedArray], *, axes: tuple[int, ...]) -> bool:
    operand = ins[0]
    wide = dtypes.accumulator(operand.dtype)
    if wide not in (dtypes.float32, dtypes.float64) or operand.size < LARGE or not axes:
        return False
    few = math.prod(operand.shape[a] for a in axes) <= FEW
    if wide == dtypes.float64:
        return few and len(axes) == 1  # the library is faster for others that are computed on the fly
    if few or columns_alone(operand, axes) is not None:
        return True
    return SLOW_COLUMNS and axes == (0,) and outs[0].size >= MANY


def columns_alone(operand: ShapedArray, axes: tuple[int, ...]) -> int | None:
    """Return the number of columns if a sum takes its own loop because it has few of them (case 2); else None."""
    if operand.dtype != dtypes.float32 or len(axes) != 1:  # narrower floats are faster by the library here
        return None
    (axis,) = axes
    beside = math.prod(operand.shape[axis + 1 :])
    narrow = axis < operand.ndim - 1 and beside <= NARROW
    return beside if narrow and operand.size >= LARGE and operand.shape[axis] > FEW else None


def _parted(ndim: int, axes: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the axes before the last dimensions that are summed over, and these dimensions.

    >>> _parted(5, (1, 2, 4)), _parted(3, (0, 1)), _parted(2, (0, 1))
    (((1, 2), (4,)), ((0, 1), ()), ((), (0, 1)))
    """
    kept = max((d for d in range(ndim) if d not in axes), default=-1)
    return tuple(a for a in axes if a < kept), tuple(a for a in axes if a > kept)


def _has_stages(ins: Sequence[ShapedArray], outs: Sequence[ShapedArray], *, axes: tuple[int, ...]) -> bool:
    (operand,) = ins
    first, last = _parted(operand.ndim, axes)
    terms = lambda some: math.prod(operand.shape[a] for a in some)
    real = dtypes.accumulator(operand.dtype) in (dtypes.float32, dtypes.float64)
    return real and operand.size >= LARGE and bool(last) and terms(last) <= SHORT and terms(first) >= LONG


def _in_stages(e: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
    (aval,), (out,) = e.ins, e.outs
    if e.partitioning is not None:
        return e.reduce("add", x, 0, axes, out)
    first, last = _parted(aval.ndim, axes)
    middle = aval.update(shape=tuple(n for d, n in enumerate(aval.shape) if d not in first), weak_type=False)
    x = e.reduce("add", x, 0, first, middle)
    return own_sum(e, x, axes=tuple(a - len(first) for a in last))  # XLA would make one sum of two additions


def own_sum(e: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
    """Emit a sum that the library does not take."""
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


def _stage_edges() -> list[tuple[SampleInput, bool]]:
    cases = [
        ((3, 4, LONG // 4, 6, SHORT), (1, 2, 4), "float32", True),
        ((3, 4, LONG // 4, 6, SHORT + 1), (1, 2, 4), "float32", False),
        ((3, LONG - 1, 6, SHORT), (1, 3), "float32", False),
        ((LONG, LARGE // LONG // 4, 2, 2), (0, 2, 3), "float64", True),
        ((LONG, LARGE // LONG // 4 - 1, 2, 2), (0, 2, 3), "float64", False),
        ((8, 5, LONG // 8, 9, 4), (0, 2, 4), "float16", True),
        ((LONG, 9, SHORT), (0, 2), "bfloat16", True),
        ((LONG, 9, SHORT), (0, 2), "complex64", False),
        ((LONG, 9, SHORT), (0, 2), "int8", False),
        ((LONG, 9, SHORT), (0, 1), "float32", False),
        ((LONG, 9, SHORT), (0, 1, 2), "float32", False),
    ]
    return [(SampleInput((ShapedArray(shape, dtype),), {"axes": axes}), taken) for shape, axes, dtype, taken in cases]


STAGES = Alternative(
    "in two stages",
    f"sums of floats over at most {SHORT} elements of the last dimensions and at least {LONG} of earlier ones",
    _has_stages,
    accumulated(_in_stages),
    _stage_edges,
)
OWN_LOOP = Alternative(
    "XLA's own loop",
    f"sums of at most {FEW} floats (of float64 over one dimension), or {NARROW} float32 columns; with jaxlib 0.10, of "
    f"at least {MANY} columns, too",
    _fits,
    accumulated(own_sum),
    _edges,
)
