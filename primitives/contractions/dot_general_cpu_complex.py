"""Products of complex matrices on CPUs: four products of real ones, for which XLA has faster kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.backends.precision_names import ALGORITHMS
from functorch_like.core import SampleInput
from functorch_like.primitives.base.lowering import Alternative
from functorch_like.primitives.contractions.dot_dimensions import free_size
from functorch_like.primitives.contractions.dot_general_cpu import dot_sample
from functorch_like.primitives.contractions.precision import emit_dot, rounded

#: Free elements of each operand, and contracted ones, from which on four real products take half of the time (64 each:
#: 54 us, and 31). Products of 32 take as long in both forms.
LEAST = 48


def _is_large(
    ins: Sequence[ShapedArray], outs: Sequence[ShapedArray], *, dimension_numbers: Any, precision: Any = None, **_: Any
) -> bool:
    (lc, rc), (lb, rb) = dimension_numbers
    left, right = ins
    if left.dtype.kind != "c" or not left.dtype == right.dtype == outs[0].dtype or not outs[0].size:
        return False
    if rounded(precision, left.dtype, "cpu") or (isinstance(precision, str) and precision in ALGORITHMS):
        return False
    return min(free_size(left, lc, lb), free_size(right, rc, rb), math.prod(left.shape[d] for d in lc)) >= LEAST


def _by_parts(e: Any, lhs: Any, rhs: Any, *, dimension_numbers: Any, **_: Any) -> Any:
    avals = [aval.update(dtype=dtypes.real_part(aval.dtype)) for aval in (*e.ins, *e.outs)]
    parts = lambda x, aval: [e.op(f"stablehlo.{part}", [x], [aval]) for part in ("real", "imag")]
    (a, b), (c, d) = (parts(x, aval) for x, aval in zip((lhs, rhs), avals, strict=False))
    dot = lambda x, y: emit_dot(e, x, y, *avals, *dimension_numbers, "highest")
    real = e.op("stablehlo.subtract", [dot(a, c), dot(b, d)], [avals[2]])
    imag = e.op("stablehlo.add", [dot(a, d), dot(b, c)], [avals[2]])
    return e.op("stablehlo.complex", [real, imag], e.outs)


def _edges() -> list[tuple[SampleInput, bool]]:
    matrix = lambda m, k, n, **params: dot_sample((m, k), (k, n), ((1,), (0,)), **{"dtype": "complex64", **params})
    return [
        (matrix(LEAST, LEAST, LEAST), True),
        (matrix(LEAST, LEAST, LEAST, dtype="complex128"), True),
        (matrix(LEAST - 1, LEAST, LEAST), False),
        (matrix(LEAST, LEAST - 1, LEAST), False),
        (matrix(LEAST, LEAST, LEAST - 1), False),
        (matrix(LEAST, LEAST, LEAST, dtype="float32"), False),
        (dot_sample((2, 6, 8, 50), (50, 2, 49), ((3,), (0,)), ((0,), (1,)), dtype="complex64"), True),
        (dot_sample((5, 48, 10), (48, 5, 10), ((0, 2), (1, 2)), dtype="complex64"), True),
    ]


BY_PARTS = Alternative(
    "four real products",
    f"complex numbers, at least {LEAST} free elements of each operand and contracted ones",
    _is_large,
    _by_parts,
    _edges,
)
