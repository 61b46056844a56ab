"""control_dep: an order of two values, which the compiler computes one after the other."""

from __future__ import annotations

from typing import Any

from functorch_like.avals import ShapedArray
from functorch_like.core import BatchAxis, NotDefined, Primitive, SampleInput
from functorch_like.errors import UnsupportedError


def _lower(e: Any, first: Any, then: Any) -> list[Any]:
    if e.portable:
        return []
    if e.platform != "cpu":
        raise UnsupportedError(
            "XLA has control dependencies in programs for CPUs only", fix="use lax.optimization_barrier"
        )
    attrs = {
        "call_target_name": e.string("control_dep"),
        "has_side_effect": e.flag(True),
        "operand_layouts": e.layouts([range(aval.ndim)[::-1] for aval in e.ins]),
        "result_layouts": e.layouts([]),
    }
    e.op("stablehlo.custom_call", [first, then], [], attrs)
    return []


def _batch(axis: BatchAxis, args: Any, dims: Any) -> tuple[list[Any], list[Any]]:
    control_dep(*args)
    return [], []


control_dep = Primitive(
    "control_dep",
    shape=lambda first, then: (),
    ref=lambda first, then: (),
    lower=_lower,
    jvp=lambda primals, tangents: (control_dep(*primals), []),
    transpose=NotDefined("control_dep has no results; it orders values that are computed"),
    batch=_batch,
    samples=lambda: [SampleInput((ShapedArray((2, 3), "float32"), ShapedArray((), "int32")))],
    effects=lambda: frozenset({"unordered"}),
    multiple_results=True,
)
