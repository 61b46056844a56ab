"""The `while` primitive: a body applied to its own result for as long as a condition holds.

The number of steps is not known in advance, so no residuals can be kept for each step: there is forward mode, but no
reverse mode. Where the condition depends on a batch axis, elements stop at different steps: the loop runs while any of
them goes on, and those that have stopped keep their values. Where the loop has effects, elements loop one after the
other instead.

In loops of the package itself, the parameter `expected_steps` may give the usual number of steps. It changes no result,
but lets a program with a short loop start in the quick tier (compiler/tier_costs.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import core
from functorch_like.avals import ShapedArray, fit
from functorch_like.backends import xla
from functorch_like.compiler.lower import emit_carrying, emit_loop, token_avals
from functorch_like.core import BatchAxis, NotDefined, Primitive, SampleInput, aval_of, state
from functorch_like.errors import ShapeError
from functorch_like.interpreters import reverse
from functorch_like.ir import passes
from functorch_like.ir.jaxpr import Jaxpr, evaluate
from functorch_like.ir.reference import reference
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.higher_order.control_flow.loop_invariants import reached
from functorch_like.primitives.higher_order.control_flow.scan_operands import Groups, groups
from functorch_like.primitives.higher_order.control_flow.sequential_vmap import sequential_vmap
from functorch_like.primitives.higher_order.control_flow.while_transforms import live_form, stopping_form, tangent_form
from functorch_like.primitives.higher_order.jaxpr_jvp_and_batch import ANYWHERE, batch_jaxpr, place
from functorch_like.primitives.higher_order.standalone_eval import evaluate_alone

PREDICATE = ShapedArray((), np.dtype(bool))


def _parts(values: Sequence[Any], cond_nconsts: int, body_nconsts: int) -> Groups:
    """Consts of the condition, consts of the body, and carries."""
    return groups(values, cond_nconsts, body_nconsts)


# ------------------------------------------------------------------------------------------------------------- rules
def _shape(
    *avals: ShapedArray, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, cond_nconsts: int, body_nconsts: int, **_: int
) -> tuple[ShapedArray, ...]:
    taken = [*cond_jaxpr.in_avals[:cond_nconsts], *body_jaxpr.in_avals]
    if not fit(avals, taken):
        raise ShapeError(f"the body of while takes {taken}, got {list(avals)}", fix="pass what it was traced with")
    starts = body_jaxpr.in_avals[body_nconsts:]
    if not fit(body_jaxpr.out_avals, starts) or not fit(cond_jaxpr.out_avals, [PREDICATE]):
        raise ShapeError(
            f"the body of while takes {starts} and gives {body_jaxpr.out_avals}, the condition {cond_jaxpr.out_avals}",
            fix="give what is taken; the condition gives one bool",
        )
    ends = zip(starts, body_jaxpr.out_avals, strict=True)
    return tuple(a.update(weak_type=a.weak_type and o.weak_type) for a, o in ends)


def _ref(
    *values: Any, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, cond_nconsts: int, body_nconsts: int, **_: int
) -> tuple[Any, ...]:
    cond_consts, consts, carries = _parts(values, cond_nconsts, body_nconsts)
    while reference(cond_jaxpr, [*cond_consts, *carries])[0]:
        carries = reference(body_jaxpr, [*consts, *carries])
    return tuple(map(np.asarray, carries))


def _lower(
    e: xla.Emitter, *operands: Any, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, cond_nconsts: int, body_nconsts: int, **_: int
) -> list[Any]:
    cond, body = (j.memo("simple", lambda j=j: passes.simplify(j)) for j in (cond_jaxpr, body_jaxpr))
    token = token_avals(cond_jaxpr, body_jaxpr)
    n, m = cond_nconsts, cond_nconsts + body_nconsts
    avals = [*(a.strong() for a in e.ins), *token]

    def more(inner: xla.Emitter, *values: Any) -> list[Any]:
        return emit_carrying(inner, cond, [*values[:n], *values[m:]], token)[:1]

    def step(inner: xla.Emitter, *values: Any) -> list[Any]:
        return [*values[:m], *emit_carrying(inner, body, values[n:], token)]

    outs = emit_loop(e, [*operands, *([e.token] if token else [])], avals, more, step, (cond, body))
    if token:
        e.token = outs.pop()
    return outs[m:]


def _dce(
    used: tuple[bool, ...], *, cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, cond_nconsts: int, body_nconsts: int, **hints: int
) -> tuple[list[bool], list[bool], dict[str, Any]]:
    kept, carries, params = live_form(cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts, used)
    return kept, carries, {**params, **hints}


def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    cond_jaxpr: Jaxpr,
    body_jaxpr: Jaxpr,
    cond_nconsts: int,
    body_nconsts: int,
    **hints: int,
) -> tuple[list[Any], list[Any]]:
    cond_consts, consts, starts = _parts(primals, cond_nconsts, body_nconsts)
    _, d_consts, d_starts = _parts(tangents, cond_nconsts, body_nconsts)
    c, some = [t is not None for t in d_consts], [t is not None for t in d_starts]
    cond, body, more, carries = tangent_form(cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts, c, some)
    moving_consts = [d for d in d_consts if d is not None]
    moving = [
        structural.zeros(aval_of(x).strong()) if d is None else d
        for x, d, h in zip(starts, d_starts, carries, strict=True)
        if h
    ]
    outs = while_(
        *cond_consts, *more, *consts, *moving_consts, *starts, *moving,
        cond_jaxpr=cond, body_jaxpr=body, cond_nconsts=cond_nconsts,
        body_nconsts=len(more) + body_nconsts + len(moving_consts), **hints,
    )  # fmt: skip
    rest = iter(outs[len(starts) :])
    return outs[: len(starts)], [next(rest) if h else None for h in carries]


def _partial_eval(tape: reverse.TapeTrace, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Partial evaluation: run the loop of the known carries now, and record the full loop for the rest."""
    n, m = params["cond_nconsts"], params["body_nconsts"]
    some = [tape.var(a) is not None for a in args[n:]]
    unknown = reached(params["body_jaxpr"], m, len(some) - m, some)
    outs = tape.record(while_, args, params)
    if all(unknown):
        return outs
    kept, has, known = _dce(tuple(not u for u in unknown), **params)
    assert not any(g and u for g, u in zip(has, unknown, strict=True))
    state.trace = tape.parent
    try:
        primals = iter(while_(*(a for a, k in zip(args, kept, strict=True) if k), **known))
    finally:
        state.trace = tape
    return [next(primals) if g else o for g, o in zip(has, outs, strict=True)]


# ------------------------------------------------------------------------------------------------------------- batch
def _batch(
    axis: BatchAxis,
    args: Sequence[Any],
    dims: Sequence[int | None],
    *,
    cond_jaxpr: Jaxpr,
    body_jaxpr: Jaxpr,
    cond_nconsts: int,
    body_nconsts: int,
    **hints: int,
) -> tuple[list[Any], list[int | None]]:
    cond_consts, consts, starts = _parts(args, cond_nconsts, body_nconsts)
    at_cond_consts, at_consts, at_starts = _parts(dims, cond_nconsts, body_nconsts)
    carries: list[int | None] = list(at_starts)
    while True:
        positions = [ANYWHERE if d is None else d for d in carries]
        body, more, out_dims = batch_jaxpr(body_jaxpr, axis, [*at_consts, *carries], positions)
        grown = [t if d is None else d for d, t in zip(carries, out_dims, strict=True)]
        if grown == carries:
            break
        carries = grown
    cond = batch_jaxpr(cond_jaxpr, axis, [*at_cond_consts, *carries])
    each = cond.out_info[0] is not None
    if each:
        carries = [0 if d is None else d for d in carries]
    moved = [
        x if w is None else place(x, d, w, axis.size)[0] for x, d, w in zip(starts, at_starts, carries, strict=True)
    ]
    if not each:
        outs = while_(
            *cond.consts, *cond_consts, *more, *consts, *moved, cond_jaxpr=cond.jaxpr, body_jaxpr=body,
            cond_nconsts=len(cond.consts) + cond_nconsts, body_nconsts=len(more) + body_nconsts, **hints,
        )  # fmt: skip
        return outs, carries
    if cond_jaxpr.effects or body_jaxpr.effects:
        params = {"cond_nconsts": cond_nconsts, "body_nconsts": body_nconsts, **hints}
        apply = lambda *values: while_(*values, cond_jaxpr=cond_jaxpr, body_jaxpr=body_jaxpr, **params)
        avals = [*cond_jaxpr.in_avals[:cond_nconsts], *body_jaxpr.in_avals]
        memo = lambda key, make: body_jaxpr.memo((*key, cond_jaxpr, cond_nconsts), make)
        return sequential_vmap(axis, args, dims, apply, avals, memo)
    first = batch_jaxpr(cond_jaxpr, axis, [*at_cond_consts, *carries], [0])
    steps = batch_jaxpr(body_jaxpr, axis, [*at_consts, *carries], [d or 0 for d in carries])
    goes_on, made = stopping_form(axis, first, steps, carries)
    consts = [*first.consts, *cond_consts, *steps.consts, *consts]
    going = evaluate(first.jaxpr, [*first.consts, *cond_consts, *moved])
    outs = while_(
        *consts, *going, *moved, cond_jaxpr=goes_on, body_jaxpr=made, cond_nconsts=0, body_nconsts=len(consts), **hints
    )  # fmt: skip
    return outs[1:], carries


# ----------------------------------------------------------------------------------------------------------- samples
def _samples() -> list[SampleInput]:
    f64, i32 = (lambda *shape, dtype=dtype: ShapedArray(shape, dtype) for dtype in ("float64", "int32"))
    make = lambda fun, *avals: stage(fun, avals, name="f", parent=core.EVALUATE)[0]

    def one(
        cond: Jaxpr, body: Jaxpr, cond_consts: int, consts: int, *operands: Any, smooth: bool = True
    ) -> SampleInput:
        params = {"cond_jaxpr": cond, "body_jaxpr": body, "cond_nconsts": cond_consts, "body_nconsts": consts}
        return SampleInput(operands, params, smooth=smooth)

    less: Callable[..., Any] = lambda end, i, *_: [elementwise.lt(i, end)]
    step: Callable[..., Any] = lambda w, i, c: [
        elementwise.add(i, np.int32(1)),
        elementwise.sin(elementwise.add(elementwise.mul(w, c), w)),
    ]
    counted = make(less, i32(), i32(), f64(2)), make(step, f64(2), i32(), f64(2))
    grown = (
        make(lambda c: [elementwise.lt(c, np.float64(30.0))], f64()),
        make(lambda c: [elementwise.add(elementwise.mul(c, c), np.float64(3))], f64()),
    )
    halved = (
        make(lambda n: [elementwise.gt(n, np.int32(0))], i32()),
        make(lambda n: [elementwise.div(n, np.int32(2))], i32()),
    )
    never = make(lambda c: [np.False_], f64(2)), make(lambda c: [elementwise.neg(c)], f64(2))
    return [
        one(*counted, 1, 1, np.array(3, np.int32), f64(2), np.array(0, np.int32), f64(2)),
        one(*counted, 1, 1, np.array(0, np.int32), f64(2), np.array(1, np.int32), f64(2)),
        one(*grown, 0, 0, np.array(1.25)),
        one(*halved, 0, 0, np.array(9, np.int32)),
        one(*never, 0, 0, f64(2)),
    ]


while_ = Primitive(
    "while",
    shape=_shape,
    ref=_ref,
    lower=_lower,
    jvp=_jvp,
    transpose=NotDefined(
        "reverse mode would have to keep values of every step, and how many steps a while_loop takes is not known "
        "before it has run; use lax.fori_loop with bounds that are Python ints, or lax.scan, over the most steps there "
        "may be, with lax.cond to skip those that are too many; or forward mode (jvp, jacfwd); or ft.custom_vjp"
    ),
    batch=_batch,
    samples=_samples,
    partial_eval=_partial_eval,
    evaluate=lambda args, params: evaluate_alone(while_, "body_jaxpr", args, params),
    dce=_dce,
    effects=lambda *, cond_jaxpr, body_jaxpr, **_: cond_jaxpr.effects | body_jaxpr.effects,
    multiple_results=True,
    kind="loop",
)
