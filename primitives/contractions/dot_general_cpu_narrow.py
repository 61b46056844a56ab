"""Products of bfloat16 and float16, whose fast kernels on CPUs have float32 results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.backends.precision_names import ALGORITHMS
from functorch_like.backends.xla import processor
from functorch_like.core import SampleInput
from functorch_like.primitives.base.lowering import Alternative
from functorch_like.primitives.contractions.dot_dimensions import free_size
from functorch_like.primitives.contractions.dot_general_cpu import dot_sample
from functorch_like.primitives.contractions.precision import emit_dot

#: Free elements of both operands from which on products of bfloat16 take less time in float32, where the processor has
#: no instruction for them: 0.7 of it for (256, 256). Below, reading half as many bytes is worth more.
MANY = 32
#: True if the processor multiplies numbers of bfloat16.
_INSTRUCTION = not processor.features().isdisjoint(("avx512_bf16", "amx_bf16", "bf16"))


def through_float32(dot: Callable[..., Any]) -> Alternative:
    """Give narrow operands a wide result, then convert. `dot` takes the emitter, operands, the aval of the result."""
    return Alternative(
        "float32 result, then converted",
        "bfloat16 and float16 results",
        lambda ins, outs, **_: outs[0].dtype in (dtypes.bfloat16, dtypes.float16),
        lambda e, lhs, rhs, **params: dot(e, lhs, rhs, e.outs[0].update(dtype=dtypes.float32), **params),
        lambda: [
            (dot_sample(left, right, contract, batch, dtype=dtype, preferred_element_type=wide), wide is None)
            for dtype in ("bfloat16", "float16")
            for wide in (None, dtypes.float32)
            # Contracted first on the left, several free dimensions on the right, before and after the contracted one.
            for left, right, contract, batch in (
                ((3, 4), (4, 2), ((1,), (0,)), ((), ())),
                ((6, 5), (6, 7, 2), ((0,), (0,)), ((), ())),
                ((2, 6, 5), (7, 2, 6, 3), ((1,), (2,)), ((0,), (1,))),
            )
        ],
    )


def _is_square(
    ins: Sequence[ShapedArray], outs: Sequence[ShapedArray], *, dimension_numbers: Any, precision: Any = None, **_: Any
) -> bool:
    (lc, rc), (lb, rb) = dimension_numbers
    if ins[0].dtype != dtypes.bfloat16 or outs[0].dtype not in (dtypes.bfloat16, dtypes.float32):
        return False
    if isinstance(precision, str) and precision in ALGORITHMS:
        return False
    return min(free_size(ins[0], lc, lb), free_size(ins[1], rc, rb)) >= MANY


def _widened(e: Any, lhs: Any, rhs: Any, *, dimension_numbers: Any, **_: Any) -> Any:
    wide = [aval.update(dtype=dtypes.float32) for aval in (*e.ins, *e.outs)]
    operands = [e.convert(x, aval) for x, aval in zip((lhs, rhs), wide, strict=False)]
    y = emit_dot(e, *operands, *wide, *dimension_numbers, "highest")
    return e.convert(y, e.outs[0])


def _square_edges() -> list[tuple[SampleInput, bool]]:
    matrix = lambda m, n, **params: dot_sample((m, 5), (5, n), ((1,), (0,)), **{"dtype": "bfloat16", **params})
    return [
        (matrix(MANY, MANY), True),
        (matrix(MANY - 1, MANY), False),
        (matrix(MANY, MANY - 1), False),
        (matrix(MANY, MANY, preferred_element_type=dtypes.float32), True),
        (matrix(MANY, MANY, dtype="float16"), False),
        (matrix(MANY, MANY, precision="high"), True),
        (matrix(MANY, MANY, precision="BF16_BF16_F32"), False),
        (dot_sample((6, 2, MANY), (MANY, 6, 2), ((0, 1), (1, 2)), dtype="bfloat16"), True),
        (dot_sample((6, 2, MANY), (2, MANY, 6), ((0,), (2,)), ((1,), (0,)), dtype="bfloat16"), True),
    ]


WIDENED = Alternative(
    "operands converted to float32",
    f"bfloat16, on processors without an instruction for it; {MANY} or more free elements in both operands; no "
    "algorithm as precision",
    _is_square,
    _widened,
    _square_edges,
    here=not _INSTRUCTION,
)
