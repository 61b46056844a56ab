"""The `scan` primitive: a body applied once for each slice of stacked operands, handing a carry on.

The body takes consts, carries and slices; it gives carries and slices of stacked results. Every transformation of a
scan is a scan with another body. Which carries take part (have tangents, a batch axis, are unknown, are needed) is a
fixpoint: a carry takes part as soon as the body makes it depend on one that does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like.avals import ShapedArray, fit
from functorch_like.backends import xla
from functorch_like.compiler.lower import emit_carrying, emit_loop, token_avals
from functorch_like.core import BatchAxis, Primitive, UndefinedPrimal, aval_of, state
from functorch_like.errors import ShapeError
from functorch_like.interpreters import reverse as reverse_mode
from functorch_like.ir import passes
from functorch_like.ir.jaxpr import Jaxpr
from functorch_like.ir.reference import reference
from functorch_like.primitives import structural
from functorch_like.primitives.higher_order.call import CallSpec, apply
from functorch_like.primitives.higher_order.control_flow import scan_jvp_and_partial_eval as forms
from functorch_like.primitives.higher_order.control_flow.loop_invariants import reached
from functorch_like.primitives.higher_order.control_flow.scan_lowering import Steps
from functorch_like.primitives.higher_order.control_flow.scan_operands import groups
from functorch_like.primitives.higher_order.control_flow.scan_samples import samples
from functorch_like.primitives.higher_order.control_flow.scan_transpose import pulled
from functorch_like.primitives.higher_order.jaxpr_jvp_and_batch import ANYWHERE, batch_jaxpr, place
from functorch_like.primitives.higher_order.standalone_eval import evaluate_alone


# ------------------------------------------------------------------------------------------------------------- rules
def _shape(
    *avals: ShapedArray, jaxpr: Jaxpr, num_consts: int, num_carry: int, length: int, reverse: bool, unroll: int
) -> tuple[ShapedArray, ...]:
    taken = groups(jaxpr.in_avals, num_consts, num_carry)
    expected = [*taken.consts, *taken.carries, *(_stacked(a, length) for a in taken.slices)]
    if not fit(avals, expected):
        raise ShapeError(f"the body of scan takes {expected}, got {list(avals)}", fix="pass what it was traced with")
    outs = jaxpr.out_avals
    ends = [c.update(weak_type=c.weak_type and o.weak_type) for c, o in zip(taken.carries, outs, strict=False)]
    return (*ends, *(_stacked(a, length) for a in outs[num_carry:]))


def _stacked(aval: ShapedArray, length: int) -> ShapedArray:
    return aval.with_dimension(0, length)


def _ref(
    *values: Any, jaxpr: Jaxpr, num_consts: int, num_carry: int, length: int, reverse: bool, unroll: int
) -> tuple[Any, ...]:
    consts, carries, xs = groups(values, num_consts, num_carry)
    stacks = [np.zeros((length, *a.shape), a.dtype) for a in jaxpr.out_avals[num_carry:]]
    for i in reversed(range(length)) if reverse else range(length):
        outs = reference(jaxpr, [*consts, *carries, *(x[i] for x in xs)])
        carries = outs[:num_carry]
        for stack, out in zip(stacks, outs[num_carry:], strict=True):
            stack[i] = out
    return (*map(np.asarray, carries), *stacks)


def _lower(
    e: xla.Emitter,
    *operands: Any,
    jaxpr: Jaxpr,
    num_consts: int,
    num_carry: int,
    length: int,
    reverse: bool,
    unroll: int,
) -> list[Any]:
    simple = jaxpr.memo("simple", lambda: passes.simplify(jaxpr))
    token = token_avals(jaxpr)
    avals = groups([a.strong() for a in e.ins], num_consts, num_carry)
    body = lambda inner, *args: emit_carrying(inner, simple, args, token)
    stacks = e.outs[num_carry:]
    loop = lambda inner, *args: emit_loop(inner, *args, jaxprs=[simple])
    steps = Steps(
        jaxpr.name, body, loop, avals.consts, avals.carries, token, avals.slices, stacks, length, reverse, unroll
    )
    consts, carries, xs = groups(operands, num_consts, num_carry)
    outs = steps.emit(e, consts, [*carries, *([e.token] if token else [])], xs)
    if token:
        e.token = outs.pop(num_carry)
    return outs


def _dce(
    used: tuple[bool, ...], *, jaxpr: Jaxpr, num_consts: int, num_carry: int, **loop: Any
) -> tuple[list[bool], list[bool], dict[str, Any]]:
    def make() -> tuple[list[bool], list[bool], dict[str, Any]]:
        carries, stacks = list(used[:num_carry]), list(used[num_carry:])
        while True:
            outputs = [a for a, u in zip(jaxpr.outputs, [*carries, *stacks], strict=True) if u]
            live = passes.dead_code(Jaxpr(jaxpr.inputs, jaxpr.equations, outputs, jaxpr.name, jaxpr.origin))
            read = groups(passes.used_inputs(live), num_consts, num_carry)
            grown = [c or r for c, r in zip(carries, read.carries, strict=True)]
            if grown == carries:
                break
            carries = grown
        kept = [*read.consts, *carries, *read.slices]
        if all(kept) and all(carries) and all(stacks) and live.equations == jaxpr.equations:
            live = jaxpr
        else:
            inputs = [v for v, k in zip(live.inputs, kept, strict=True) if k]
            live = Jaxpr(inputs, live.equations, live.outputs, live.name, live.origin)
        params = {"jaxpr": live, "num_consts": sum(read.consts), "num_carry": sum(carries)}
        return kept, [*carries, *stacks], params

    kept, has, params = jaxpr.memo(("dce", num_consts, num_carry, used), make)
    return kept, has, {**params, **loop}


def _batch(
    axis: BatchAxis,
    args: Sequence[Any],
    dims: Sequence[Any],
    *,
    jaxpr: Jaxpr,
    num_consts: int,
    num_carry: int,
    **loop: Any,
) -> tuple[list[Any], list[int | None]]:
    consts, starts, xs = groups(args, num_consts, num_carry)
    at = groups(dims, num_consts, num_carry)
    # The axis of steps comes first, so the hidden one may not.
    xs = [structural.move(x, 0, 1) if d == 0 else x for x, d in zip(xs, at.slices, strict=True)]
    sliced = [None if d is None else max(d - 1, 0) for d in at.slices]
    carries = list(at.carries)
    free = [ANYWHERE] * (len(jaxpr.outputs) - num_carry)
    while True:
        positions = [*(ANYWHERE if d is None else d for d in carries), *free]
        body, more, out_dims = batch_jaxpr(jaxpr, axis, [*at.consts, *carries, *sliced], positions)
        grown = [t if d is None else d for d, t in zip(carries, out_dims, strict=False)]
        if grown == carries:
            break
        carries = grown
    placed = [
        x if d is None else place(x, g, d, axis.size)[0] for x, g, d in zip(starts, at.carries, carries, strict=True)
    ]
    num_consts += len(more)
    outs = scan(*more, *consts, *placed, *xs, jaxpr=body, num_consts=num_consts, num_carry=num_carry, **loop)
    return outs, [*carries, *(None if d is None else d + 1 for d in out_dims[num_carry:])]


# ------------------------------------------------------------------------------------------------------- derivatives
def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: Jaxpr, num_consts: int, num_carry: int, **loop: Any
) -> tuple[list[Any], list[Any]]:
    some = [t is not None for t in tangents]
    form = forms.tangent_form(jaxpr, num_consts, num_carry, some)
    carries, stacks = form.out_info
    p, t = groups(primals, num_consts, num_carry), groups(tangents, num_consts, num_carry)
    present = lambda values: [v for v in values if v is not None]
    starts = [
        structural.zeros(aval_of(x).strong()) if d is None else d
        for x, d, c in zip(p.carries, t.carries, carries, strict=True)
        if c
    ]
    outs = scan(
        *form.consts, *p.consts, *present(t.consts), *p.carries, *starts, *p.slices, *present(t.slices),
        **form.params, **loop,
    )  # fmt: skip
    ends, stacked = outs[: form.num_carry], outs[form.num_carry :]
    rest = iter([*ends[num_carry:], *stacked[len(stacks) :]])
    return [*ends[:num_carry], *stacked[: len(stacks)]], [next(rest) if h else None for h in (*carries, *stacks)]


def _apart(
    args: Sequence[Any], unknown: Sequence[bool], *, jaxpr: Jaxpr, num_consts: int, num_carry: int, **loop: Any
) -> tuple[forms.BodyPartialEval, list[Any], list[Any], dict[str, Any]]:
    """Compute the known half; returns its results, and operands and parameters of the linear half."""
    parts = forms.partial_eval_body(jaxpr, num_consts, num_carry, unknown)
    grouped, which = groups(args, num_consts, num_carry), groups(unknown, num_consts, num_carry)
    consts = [*parts.known.consts, *forms.drop(grouped.consts, which.consts)]
    xs = forms.drop(grouped.slices, which.slices)
    before = (
        apply(parts.before, [], consts, CallSpec("before", inline=state.trace.staging)) if parts.before.outputs else []
    )
    outs: list[Any] = []
    if parts.known.jaxpr.outputs or parts.known.jaxpr.effects:
        starts = forms.drop(grouped.carries, parts.carries)
        outs = scan(*before[parts.shared :], *consts, *starts, *xs, **parts.known.params, **loop)
    values = {"const": consts, "before": before, "slice": xs, "stack": outs[parts.known.num_carry :]}
    residuals = [values[kind][k] for kind, k in parts.residuals]
    pick, n = forms.pick, parts.constant
    operands = [*residuals[:n], *pick(grouped.consts, which.consts), *pick(grouped.carries, parts.carries)]
    operands += [*residuals[n:], *pick(grouped.slices, which.slices)]
    return parts, outs, operands, {**parts.linear.params, **loop}


def _partial_eval(tape: reverse_mode.TapeTrace, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Run the known half now, record the linear half on the tape."""
    state.trace = tape.parent
    try:
        parts, outs, operands, linear = _apart(args, [tape.var(a) is not None for a in args], **params)
    finally:
        state.trace = tape
    tangents, primals = iter(tape.record(scan, operands, linear)), iter(outs)
    return [next(tangents) if u else next(primals) for u in parts.unknown_out]


def _transpose(cts: Sequence[Any], args: Sequence[Any], **params: Any) -> list[Any]:
    linear = [type(a) is UndefinedPrimal for a in args]
    if not params["length"]:  # the carries are handed on for every body
        flags = groups(linear, params["num_consts"], params["num_carry"])
        back = [c if lin else None for c, lin in zip(cts, flags.carries, strict=False)]
        return [*(None for _ in flags.consts), *back, *(None for _ in flags.slices)]
    if all(reached(params["jaxpr"], params["num_consts"], params["num_carry"], linear)):
        return _pull(cts, args, **params)
    # The rest of the carries must be known for each step: the loop runs forwards once more, and keeps them.
    parts, _, operands, rest = _apart(args, linear, **params)
    back = _pull(forms.pick(cts, parts.unknown_out), operands, **rest)
    cotangents = iter([b for b, o in zip(back, operands, strict=True) if type(o) is UndefinedPrimal])
    return [next(cotangents) if lin else None for lin in linear]


def _pull(cts: Sequence[Any], args: Sequence[Any], length: int, reverse: bool, unroll: int, **body: Any) -> list[Any]:
    """Cotangents of the linear operands of a scan that is linear in its carries."""
    operands, params, finish = pulled(cts, args, **body)
    return finish(scan(*operands, **params, length=length, reverse=not reverse, unroll=unroll))


scan = Primitive(
    "scan",
    shape=_shape,
    ref=_ref,
    lower=_lower,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    samples=samples,
    partial_eval=_partial_eval,
    evaluate=lambda args, params: evaluate_alone(scan, "jaxpr", args, params),
    dce=_dce,
    effects=lambda *, jaxpr, **_: jaxpr.effects,
    multiple_results=True,
    kind="loop",
)
