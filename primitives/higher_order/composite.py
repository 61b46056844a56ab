"""composite: a function under a name that a compiler may replace, and its meaning beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functorch_like import core
from functorch_like.avals import ShapedArray
from functorch_like.compiler.lower import emit
from functorch_like.core import BatchAxis, NotDefined, Primitive, SampleInput
from functorch_like.interpreters import batching, forward
from functorch_like.ir import passes
from functorch_like.ir.jaxpr import Jaxpr, evaluate
from functorch_like.ir.reference import reference
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives import elementwise
from functorch_like.primitives.higher_order.standalone_eval import evaluate_alone


def _lower(
    e: Any, *operands: Any, jaxpr: Jaxpr, name: str, version: int, attributes: tuple[tuple[str, str], ...]
) -> list[Any]:
    outs = e.outs
    simple = jaxpr.memo("simple", lambda: passes.simplify(jaxpr))
    symbol = e.function(
        (jaxpr, name), jaxpr.name, jaxpr.in_avals, jaxpr.out_avals, lambda inner, *args: emit(inner, simple, args)
    )
    attrs = {
        "name": e.string(name),
        "composite_attributes": e.attr("{" + ", ".join(f'"{key}" = {text}' for key, text in attributes) + "}"),
        "decomposition": e.attr(f"@{symbol}"),
        "version": e.i32(version),
    }
    out = e.op("stablehlo.composite", operands, outs, attrs=attrs)
    return [out] if len(outs) == 1 else list(out)


def _opened(jaxpr: Jaxpr) -> Any:
    return lambda *args: evaluate(jaxpr, args)


def _batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Any], *, jaxpr: Jaxpr, **_: Any) -> Any:
    """Batch the meaning: the name stands for one element."""
    return batching.batch(_opened(jaxpr), axis, args, dims)


def _samples() -> list[SampleInput]:
    vector = ShapedArray((3,), "float32")
    jaxpr, _ = stage(
        lambda x, y: [elementwise.mul(elementwise.sin(x), y), elementwise.neg(x)],
        [vector] * 2,
        name="f",
        parent=core.EVALUATE,
    )
    return [
        SampleInput((vector, vector), {"jaxpr": jaxpr, "name": "my.f", "version": 1, "attributes": (("k", "3 : i64"),)})
    ]


composite = Primitive(
    "composite",
    shape=lambda *avals, jaxpr, **_: tuple(jaxpr.out_avals),
    ref=lambda *args, jaxpr, **_: tuple(reference(jaxpr, args)),
    lower=_lower,
    jvp=lambda primals, tangents, *, jaxpr, **_: forward.jvp(_opened(jaxpr), primals, tangents),
    transpose=NotDefined("a composite is opened before it is differentiated; transpose what it means"),
    batch=_batch,
    samples=_samples,
    partial_eval=lambda tape, args, params: evaluate(params["jaxpr"], args),
    evaluate=lambda args, params: evaluate_alone(composite, "jaxpr", args, params),
    multiple_results=True,
)
