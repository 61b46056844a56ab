"""The `checkpoint` primitive: a jaxpr whose linear half computes residuals again instead of keeping them.

A policy decides which of them are kept after all. Every other transformation gives another `checkpoint` primitive, so
that higher derivatives recompute residuals, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import core
from functorch_like.avals import ShapedArray, fit
from functorch_like.backends import xla
from functorch_like.core import BatchAxis, Primitive, SampleInput, UndefinedPrimal, state
from functorch_like.errors import ShapeError
from functorch_like.interpreters import reverse
from functorch_like.ir import passes
from functorch_like.ir.jaxpr import Jaxpr, Var
from functorch_like.ir.reference import reference
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives.higher_order.call import CallSpec, call
from functorch_like.primitives.higher_order.checkpoint.rematerialization import Graph, Offload, Plan, inlined, plan
from functorch_like.primitives.higher_order.jaxpr_jvp_and_batch import batch_jaxpr, jvp_jaxpr
from functorch_like.primitives.higher_order.jaxpr_transpose import transposed
from functorch_like.primitives.higher_order.partial_eval import partial_eval_jaxpr

Policy = Callable[..., Any]
_MOST_PLANS = 32


def _shape(*avals: ShapedArray, jaxpr: Jaxpr, **_: Any) -> tuple[ShapedArray, ...]:
    if not fit(avals, jaxpr.in_avals):
        raise ShapeError(
            f"{jaxpr.name} takes {jaxpr.in_avals}, got {list(avals)}",
            fix="pass operands with the avals it was traced with",
        )
    return tuple(jaxpr.out_avals)


def _lower(e: xla.Emitter, *operands: Any, jaxpr: Jaxpr, prevent_cse: bool, again: bool, **_: Any) -> list[Any]:
    body = lambda inner, *xs: call.lower(inner, *xs, jaxpr=jaxpr, spec=CallSpec(jaxpr.name))
    if not (again and prevent_cse and operands):
        return body(e, *operands)
    # XLA must not reuse results of the forward run (common subexpressions), which would keep them in memory. It must
    # compute nothing before the last operand, a cotangent, is there.
    if e.platform != "cpu":
        behind = e.op("stablehlo.optimization_barrier", operands, e.ins)
        return body(e, *(operands if len(operands) == 1 else behind))
    return _behind_a_branch(e, operands, body)


def _behind_a_branch(e: xla.Emitter, operands: Sequence[Any], body: Callable[..., list[Any]]) -> list[Any]:
    """Emit the body in a branch that is always taken, although XLA cannot prove that.

    XLA:CPU drops barriers before it schedules operations, and then schedules them early. A branch runs once all its
    operands are there. Its condition is that the square of an integer is not 2 modulo 4, which always holds.
    """
    ins, outs = list(e.ins), list(e.outs)
    taken = _always(e, operands, ins)
    if taken is None:
        return body(e, *operands)

    def instead(inner: Any) -> list[Any]:
        return [inner.full(0, aval) for aval in outs]

    def then(inner: Any) -> list[Any]:
        inner.ins, inner.outs = ins, outs
        return body(inner, *operands)

    results = e.op("stablehlo.case", [taken], outs, regions=[([], instead), ([], then)])
    return [results] if len(outs) == 1 else list(results)


def _always(e: xla.Emitter, operands: Sequence[Any], avals: Sequence[ShapedArray]) -> Any:
    """Return 1 as an i32[] that depends on an operand; None if no operand is suitable."""
    # The first float: kept values come before cotangents, which may be constants (those of a sum are ones).
    floats = ((x, aval) for x, aval in zip(operands, avals, strict=True) if aval.size and aval.dtype.kind == "f")
    x, aval = next(floats, (None, None))
    if aval is None:
        return None
    integer = np.dtype(f"int{aval.dtype.itemsize * 8}")
    first = e.op("stablehlo.reshape", [e.first(x, aval)], [aval.update(shape=())])
    scalar = ShapedArray((), integer)
    n = e.op("stablehlo.bitcast_convert", [first], [scalar])
    rest = e.op("stablehlo.and", [e.op("stablehlo.multiply", [n, n], [scalar]), e.full(3, scalar)], [scalar])
    differs = e.compare("NE", rest, e.full(2, scalar), ShapedArray((), np.bool_), "SIGNED")
    return e.convert(differs, ShapedArray((), np.int32))


def _dce(used: tuple[bool, ...], *, jaxpr: Jaxpr, **params: Any) -> tuple[list[bool], Any, dict[str, Any]]:
    live, kept = jaxpr.memo(("dce", used), lambda: passes.without_unused(jaxpr, used))
    return kept, used, {"jaxpr": live, **params}


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: Jaxpr, **params: Any
) -> tuple[list[Any], list[Any]]:
    derived, consts, has = jvp_jaxpr(jaxpr, [t is not None for t in tangents])
    outs = checkpoint(*consts, *primals, *(t for t in tangents if t is not None), jaxpr=derived, **params)
    rest = iter(outs[len(has) :])
    return outs[: len(has)], [next(rest) if h else None for h in has]


def _transpose(cts: Sequence[Any], args: Sequence[Any], *, jaxpr: Jaxpr, **params: Any) -> list[Any]:
    derived, consts, has = transposed(jaxpr, [type(a) is UndefinedPrimal for a in args], [c is not None for c in cts])
    known = [a for a in args if type(a) is not UndefinedPrimal]
    rest = iter(checkpoint(*consts, *known, *(c for c in cts if c is not None), jaxpr=derived, **params))
    return [next(rest) if h else None for h in has]


def _batch(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[int | None], *, jaxpr: Jaxpr, **params: Any
) -> tuple[list[Any], list[int | None]]:
    derived, consts, where = batch_jaxpr(jaxpr, axis, dims)
    return checkpoint(*consts, *args, jaxpr=derived, **params), where


def _evaluate(args: Sequence[Any], params: dict[str, Any]) -> Any:
    assert call.evaluate is not None
    return call.evaluate(args, {"jaxpr": params["jaxpr"], "spec": CallSpec("checkpoint")})


# ------------------------------------------------------------------------------------------------------------- split
def _partial_eval(tape: reverse.TapeTrace, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Run the known half now, keeping the values that the policy selects; record equations that recompute the rest."""
    jaxpr, policy = params["jaxpr"], params["policy"]
    unknown = tuple(tape.var(a) is not None for a in args)
    plans: dict[Any, Plan] = jaxpr.memo("plans", dict)
    compiled = tape.parent is not core.EVALUATE  # an eager program has its results in the device's memory
    parts = plans.get((unknown, policy, compiled))
    if parts is None:
        while len(plans) >= _MOST_PLANS:  # bounded, since a policy may be a new function in each call
            plans.pop(next(iter(plans)), None)
        parts = plans[unknown, policy, compiled] = _plan(jaxpr, unknown, policy, compiled)
    known = [*parts.consts, *(a for a, u in zip(args, unknown, strict=True) if not u)]
    state.trace = tape.parent
    try:
        outs = checkpoint(*known, **{**params, "jaxpr": parts.known})
    finally:
        state.trace = tape
    tangents = [a for a, u in zip(args, unknown, strict=True) if u]
    for segment in parts.segments:
        residuals = [known[k] if kind == "in" else outs[k] for kind, k in segment.known]
        again = {**params, "jaxpr": segment.jaxpr, "again": params["again"] or segment.again}
        tangents += tape.record(checkpoint, [*residuals, *(tangents[k] for k in segment.takes)], again)
    pushed = iter(tangents[k] for k in parts.outputs)
    primals = iter(outs)
    return [next(pushed) if u else next(primals) for u in parts.unknown_out]


def _plan(jaxpr: Jaxpr, unknown: Sequence[bool], policy: Policy | None, compiled: bool) -> Plan:
    flat, consts = inlined(jaxpr, keep_repeated=policy is None)
    parts = partial_eval_jaxpr(flat, [*[False] * len(consts), *unknown])
    parts = parts.__class__(**{**vars(parts), "consts": [*parts.consts, *consts]})
    graph = Graph(parts)
    choose = getattr(policy, "choose", None)
    if choose is not None:
        return plan(graph, choose(graph))
    kept: set[Var] = set()
    offload: dict[Var, Offload] = {}
    if policy is not None:
        for e in graph.known.equations:
            verdict = policy(e.prim, *(a.aval for a in e.inputs), **e.params)
            if verdict:
                kept.update(e.outputs)
            if isinstance(verdict, Offload) and compiled:
                offload.update((v, verdict) for v in e.outputs)
    return plan(graph, graph.apart(kept), offload)


def _samples() -> list[SampleInput]:
    from functorch_like.primitives.elementwise.arithmetic import mul
    from functorch_like.primitives.elementwise.transcendental import sin

    vector = ShapedArray((3,), np.float32)
    jaxpr, _ = stage(lambda x, y: [mul(sin(sin(x)), y), sin(y)], [vector, vector], name="f", parent=core.EVALUATE)
    params = {"jaxpr": jaxpr, "policy": None, "prevent_cse": True}
    return [SampleInput((vector, vector), {**params, "again": again}) for again in (False, True)]


checkpoint = Primitive(
    "checkpoint",
    shape=_shape,
    ref=lambda *xs, jaxpr, **_: tuple(reference(jaxpr, xs)),
    lower=_lower,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    samples=_samples,
    partial_eval=_partial_eval,
    evaluate=_evaluate,
    dce=_dce,
    effects=lambda *, jaxpr, **_: jaxpr.effects,
    multiple_results=True,
)
