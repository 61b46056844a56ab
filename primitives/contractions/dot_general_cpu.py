"""Dot products that XLA:CPU runs faster when they are written as something else (docs/lowerings.md)."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import SampleInput
from functorch_like.primitives.base.lowering import Alternative
from functorch_like.primitives.base.window_geometry import emit_tap
from functorch_like.primitives.contractions.dot_dimensions import free_dims, free_size
from functorch_like.primitives.contractions.precision import rounded

#: Sums of at most SHORT products are unrolled, if the result has at least MANY elements, in two cases.
SHORT, MANY = 6, 16
#: Case 1: at least STACK products in the batch, each with an operand of at most NARROW free elements.
STACK, NARROW = 2, 64
#: Case 2: at least TALL free elements in the left operand, at most THIN in the right one. XLA:CPU's own form was 1.5 to
#: 60 times slower in both (24 ms for 20,000 products of 6 by 6); elsewhere it is up to 4 times faster.
TALL, THIN = 1024, 32


def dot_sample(
    left: Any, right: Any, contract: Any, batch: Any = ((), ()), dtype: str = "float32", **params: Any
) -> SampleInput:
    """A sample of dot_general; where sums are long, of smaller numbers, so that roundings stay as small."""
    params = {"precision": None, "preferred_element_type": None, **params}
    operands = ShapedArray(left, dtype), ShapedArray(right, dtype)
    long = operands[0].dtype.kind == "f" and math.prod(left[d] for d in contract[0]) > 256
    domain = (-0.5, 0.5) if long else (-2.0, 2.0)
    return SampleInput(operands, {"dimension_numbers": (contract, batch), **params}, domain)


def _is_short(
    ins: Sequence[ShapedArray], outs: Sequence[ShapedArray], *, dimension_numbers: Any, precision: Any = None, **_: Any
) -> bool:
    (lc, rc), (lb, rb) = dimension_numbers
    left, right = ins
    if outs[0].size < MANY or left.dtype != outs[0].dtype or left.dtype not in (dtypes.float32, dtypes.float64):
        return False
    if rounded(precision, left.dtype, "cpu"):
        return False
    terms, count = (math.prod(left.shape[d] for d in dims) for dims in (lc, lb))
    rows, columns = free_size(left, lc, lb), free_size(right, rc, rb)
    small = count >= STACK and min(rows, columns) <= NARROW
    return 2 <= terms <= SHORT and (small or (rows >= TALL and columns <= THIN))


def _unrolled(e: Any, lhs: Any, rhs: Any, *, dimension_numbers: Any, **_: Any) -> Any:
    """A product for each contracted element, elementwise over the result. Operands are computed before, once."""
    (lc, rc), (lb, rb) = dimension_numbers
    (left, right), (out,) = e.ins, e.outs
    lhs, rhs = e.op("stablehlo.optimization_barrier", [lhs, rhs], [left, right])
    lf, rf = free_dims(left.ndim, lc, lb), free_dims(right.ndim, rc, rb)
    places = [*range(len(lb))]
    to_left = dict(zip((*lb, *lf), (*places, *range(len(lb), len(lb) + len(lf))), strict=True))
    to_right = dict(zip((*rb, *rf), (*places, *range(len(lb) + len(lf), out.ndim)), strict=True))

    def part(x: Any, aval: ShapedArray, contracted: Sequence[int], at: Sequence[int], to: dict[int, int]) -> Any:
        where = dict(zip(contracted, at, strict=True))
        tap = [slice(where.get(d, 0), where[d] + 1 if d in where else n, 1) for d, n in enumerate(aval.shape)]
        cut = aval.update(shape=tuple(s.stop - s.start for s in tap))
        kept = [d for d in range(aval.ndim) if d not in where]
        thin = aval.update(shape=tuple(aval.shape[d] for d in kept))
        thinned = e.op("stablehlo.reshape", [emit_tap(e, x, tap, cut)], [thin])
        return e.broadcast_in_dim(thinned, out, [to[d] for d in kept])

    terms = [
        e.op("stablehlo.multiply", [part(lhs, left, lc, at, to_left), part(rhs, right, rc, at, to_right)], [out])
        for at in np.ndindex(*(left.shape[d] for d in lc))
    ]
    return functools.reduce(lambda a, b: e.op("stablehlo.add", [a, b], [out]), terms)


def _short_edges() -> list[tuple[SampleInput, bool]]:
    matrix = lambda m, k, n, **params: dot_sample((m, k), (k, n), ((1,), (0,)), **params)
    stack = lambda b, n: dot_sample((b, n, n), (b, n, n), ((2,), (1,)), ((0,), (0,)))
    return [
        (matrix(TALL, SHORT, 4), True),
        (matrix(TALL, SHORT + 1, 4), False),
        (matrix(TALL, 1, 4), False),
        (matrix(TALL - 1, 3, 4), False),
        (matrix(TALL, 2, THIN), True),
        (matrix(TALL, 2, THIN + 1), False),
        (matrix(TALL, 3, 3, dtype="float64"), True),
        (matrix(TALL, 3, 3, dtype="complex64"), False),
        (matrix(TALL, 3, 3, dtype="bfloat16", preferred_element_type=dtypes.float32), False),
        (stack(STACK, SHORT), True),
        (stack(STACK - 1, SHORT), False),
        (stack(STACK, 2), False),
        (stack(57, 3), True),
        (dot_sample((STACK, NARROW, 2), (STACK, 2, NARROW), ((2,), (1,)), ((0,), (0,))), True),
        (dot_sample((STACK, NARROW + 1, 2), (STACK, 2, NARROW + 1), ((2,), (1,)), ((0,), (0,))), False),
        (dot_sample((3, 2, 5, 40), (2, 40, 4, 3), ((1, 0), (0, 3)), ((3,), (1,))), True),
        (dot_sample((2, 500), (500, 2, 2), ((0,), (1,)), ((1,), (0,))), True),
    ]


UNROLLED = Alternative(
    "unrolled",
    f"sums of 2 to {SHORT} products, results of at least {MANY}: stacks of at least {STACK}, of at most {NARROW} free "
    f"elements on one side; or at least {TALL} free elements on the left, at most {THIN} on the right",
    _is_short,
    _unrolled,
    _short_edges,
)
