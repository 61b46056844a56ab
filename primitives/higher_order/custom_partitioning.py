"""custom_partitioning: a function beside a program on parts, which the user writes, for programs on several devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functorch_like import core
from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.compiler.lower import emit
from functorch_like.core import BatchAxis, NotDefined, Primitive, SampleInput
from functorch_like.errors import UnsupportedError
from functorch_like.interpreters import batching, forward
from functorch_like.ir import passes
from functorch_like.ir.jaxpr import Jaxpr, evaluate
from functorch_like.ir.reference import reference
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives import elementwise
from functorch_like.primitives.higher_order.standalone_eval import evaluate_alone


def _lower(e: xla.Emitter, *operands: Any, jaxpr: Jaxpr, num_consts: int, partitioner: Any, rule: Any) -> list[Any]:
    outs = e.outs
    if e.partitioning is None or e.manual is not None or e.portable or e.partitioning.mesh.size == 1:
        simple = jaxpr.memo("simple", lambda: passes.simplify(jaxpr))
        body = lambda inner, *args: emit(inner, simple, args, inlined=True)
        return e.call(e.function(jaxpr, jaxpr.name, jaxpr.in_avals, outs, body), operands, outs)
    from functorch_like.backends.xla import processes
    from functorch_like.backends.xla.custom_partitioner import TARGET

    mesh = e.partitioning.mesh
    if processes.spanned(mesh):  # the name of the program on parts is another one in each process
        raise UnsupportedError(
            f"custom_partitioning({jaxpr.name}) runs on the devices of one process, and {mesh!r} has others",
            fix="use shard_map, whose function is written for parts, too",
        )
    attrs = {
        "call_target_name": e.string(TARGET),
        "backend_config": e.string(partitioner.on(mesh)),
        "api_version": e.i32(2),
    }
    # The program on parts does not take what the function closes over.
    text = rule(mesh, list(jaxpr.in_avals[num_consts:]), list(outs))
    if text is not None:
        attrs["sdy.sharding_rule"] = e.attr(text)
    out = e.op("stablehlo.custom_call", operands[num_consts:], outs, attrs)
    return [out] if len(outs) == 1 else list(out)


def _opened(jaxpr: Jaxpr) -> Callable[..., Any]:
    return lambda *args: evaluate(jaxpr, args)


def _batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Any], *, jaxpr: Jaxpr, **_: Any) -> Any:
    """Batch the function: the program on parts is one for a single element."""
    return batching.batch(_opened(jaxpr), axis, args, dims)


def _samples() -> list[SampleInput]:
    vector = ShapedArray((3,), "float32")
    function = lambda x, y: [elementwise.mul(elementwise.sin(x), y), elementwise.neg(x)]
    jaxpr, _ = stage(function, [vector] * 2, name="f", parent=core.EVALUATE)
    return [SampleInput((vector, vector), {"jaxpr": jaxpr, "num_consts": 0, "partitioner": None, "rule": None})]


custom_partitioning = Primitive(
    "custom_partitioning",
    shape=lambda *avals, jaxpr, **_: tuple(jaxpr.out_avals),
    ref=lambda *args, jaxpr, **_: tuple(reference(jaxpr, args)),
    lower=_lower,
    jvp=lambda primals, tangents, *, jaxpr, **_: forward.jvp(_opened(jaxpr), primals, tangents),
    transpose=NotDefined("custom_partitioning is opened before it is differentiated; transpose what it means"),
    batch=_batch,
    samples=_samples,
    partial_eval=lambda tape, args, params: evaluate(params["jaxpr"], args),
    evaluate=lambda args, params: evaluate_alone(custom_partitioning, "jaxpr", args, params),
    multiple_results=True,
)
