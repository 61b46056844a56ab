"""`memory_placement`: the identity, whose result XLA keeps in memory of another kind.

XLA moves values between memories where a compiled program has it, on accelerators. A CPU has one memory, and there the
primitive is the identity alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functorch_like.avals import ShapedArray
from functorch_like.core import Primitive, SampleInput

KINDS = ("device", "pinned_host", "unpinned_host")


def _lower(e: Any, x: Any, *, kind: str) -> Any:
    if e.platform == "cpu" or not e.outs[0].size:
        return x
    attrs = {
        "call_target_name": e.string("annotate_device_placement"),
        "has_side_effect": e.flag(True),
        "mhlo.frontend_attributes": e.attr(f'{{_xla_buffer_placement = "{kind}"}}'),
    }
    return e.op("stablehlo.custom_call", [x], e.outs, attrs)


def _placed(x: Any, kind: str) -> Any:
    return memory_placement(x, kind=kind)


memory_placement = Primitive(
    "memory_placement",
    shape=lambda x, *, kind: x,
    ref=lambda x, *, kind: np.array(x),
    lower=_lower,
    jvp=lambda primals, tangents, *, kind: (_placed(primals[0], kind), tangents[0]),
    transpose=lambda ct, args, *, kind: [ct],
    batch=lambda axis, args, dims, *, kind: (_placed(args[0], kind), dims[0]),
    samples=lambda: [
        SampleInput((ShapedArray(shape, dtype),), {"kind": kind})
        for shape, dtype, kind in [
            ((), "float32", "device"),
            ((2, 3), "bfloat16", "pinned_host"),
            ((0,), "int32", KINDS[2]),
        ]
    ],
)
