"""Sample inputs of `scan`, for the tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functorch_like import core, dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import SampleInput
from functorch_like.ir.jaxpr import Jaxpr
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives import elementwise, structural


def _body(fun: Callable[..., Any], *avals: ShapedArray) -> Jaxpr:
    return stage(fun, avals, name="body", parent=core.EVALUATE)[0]


def samples() -> list[SampleInput]:
    """Scans of every kind of body."""
    f64, f32, whole = (
        lambda *shape, dtype=dtype: ShapedArray(shape, dtype) for dtype in ("float64", "float32", "int32")
    )
    cell = _body(
        lambda w, c, x: (lambda y: [y, elementwise.mul(y, x)])(
            elementwise.sin(elementwise.add(elementwise.mul(w, c), x))
        ),
        f64(2),
        f64(2),
        f64(2),
    )
    counted = _body(
        lambda w, i, c, x: [
            elementwise.add(i, np.int32(1)),
            elementwise.add(c, elementwise.mul(w, x)),
            elementwise.mul(structural.convert_element_type(i, new_dtype=dtypes.float64), elementwise.sin(c)),
        ],
        f64(), whole(), f64(), f64(),
    )  # fmt: skip
    linear = _body(
        lambda a, c, x: [elementwise.add(elementwise.mul(a, c), x), elementwise.neg(c)], f64(3), f64(3), f64(3)
    )
    swap = _body(lambda a, b: [b, a], f32(2), f32(2))
    single = _body(lambda c, x: [elementwise.add(elementwise.mul(c, np.float32(0.5)), x)], f32(), f32())
    mapped = _body(lambda x: [elementwise.exp(x)], f64(2))
    sums = _body(lambda c, x: [elementwise.add(c, x), c], whole(2), whole(2))

    def one(
        jaxpr: Jaxpr, consts: int, carry: int, length: int, *operands: Any, reverse: bool = False, unroll: int = 1
    ) -> SampleInput:
        params = {"jaxpr": jaxpr, "num_consts": consts, "num_carry": carry, "length": length}
        return SampleInput(operands, {**params, "reverse": reverse, "unroll": unroll}, domain=(-0.9, 0.9))

    return [
        one(cell, 1, 1, 3, f64(2), f64(2), f64(3, 2)),
        one(cell, 1, 1, 3, f64(2), f64(2), f64(3, 2), reverse=True, unroll=2),
        one(cell, 1, 1, 5, f64(2), f64(2), f64(5, 2), unroll=2),
        one(cell, 1, 1, 0, f64(2), f64(2), f64(0, 2)),
        one(counted, 1, 2, 4, f64(), np.array(2, np.int32), f64(), f64(4)),
        one(linear, 1, 1, 3, f64(3), f64(3), f64(3, 3)),
        one(linear, 1, 1, 3, f64(3), f64(3), f64(3, 3), reverse=True),
        one(swap, 0, 2, 3, f32(2), f32(2)),
        one(single, 0, 1, 1, f32(), f32(1)),
        one(mapped, 0, 0, 3, f64(3, 2)),
        one(sums, 0, 1, 3, whole(2), whole(3, 2), unroll=3),
    ]
