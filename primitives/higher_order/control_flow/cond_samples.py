"""Sample inputs of `cond`, for the tests."""

from __future__ import annotations

import numpy as np

from functorch_like import core
from functorch_like.avals import ShapedArray
from functorch_like.core import SampleInput
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives import elementwise, structural


def samples() -> list[SampleInput]:
    """Three branches of two operands, one of which is not needed by all."""
    vector, scalar = ShapedArray((3,), np.float32), ShapedArray((), np.float32)
    functions = [
        lambda x, y: [
            elementwise.mul(elementwise.sin(x), structural.broadcast_in_dim(y, shape=(3,), broadcast_dimensions=())),
            x,
        ],
        lambda x, y: [elementwise.exp(x), elementwise.mul(x, x)],
        lambda x, y: [structural.broadcast_in_dim(y, shape=(3,), broadcast_dimensions=()), structural.zeros(vector)],
    ]
    branches = tuple(
        stage(f, [vector, scalar], name=f"branch_{k}", parent=core.EVALUATE)[0] for k, f in enumerate(functions)
    )
    return [
        *(SampleInput((np.array(k, np.int32), vector, scalar), {"branches": branches}) for k in range(3)),
        SampleInput((np.array(1, np.int32), vector, scalar), {"branches": branches[:2]}),
        SampleInput((np.array(0, np.int32), vector, scalar), {"branches": branches[:1]}),
    ]
