"""Rules of `masking` for primitives that hold jaxprs: calls, loops and branches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like.avals import ShapedArray
from functorch_like.core import Primitive, state
from functorch_like.ir.jaxpr import Jaxpr
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.higher_order.call import call
from functorch_like.primitives.higher_order.checkpoint.checkpoint import checkpoint
from functorch_like.primitives.higher_order.composite import composite
from functorch_like.primitives.higher_order.control_flow.cond import cond
from functorch_like.primitives.higher_order.control_flow.cond_branches import united
from functorch_like.primitives.higher_order.control_flow.scan import scan
from functorch_like.primitives.higher_order.control_flow.while_loop import while_
from functorch_like.primitives.higher_order.custom.custom_fwd import custom_fwd
from functorch_like.primitives.higher_order.custom.custom_jvp import custom_jvp_call
from functorch_like.primitives.higher_order.custom.custom_vjp import custom_vjp_call
from functorch_like.primitives.higher_order.custom.custom_vmap import custom_vmap_call
from functorch_like.primitives.higher_order.custom.linear_call import linear_call
from functorch_like.transforms.buckets.masking import Rule, Step
from functorch_like.transforms.buckets.sizes import Size


def _opened(name: str) -> Rule:
    """Return a rule that runs the body in place.

    Custom derivative rules are not needed: a program with buckets is never differentiated.
    """

    def rule(step: Step, xs: Sequence[Any]) -> list[Any]:
        return step.masking.run(step.params[name], step.o.params[name], xs)

    return rule


def _body(step: Step, main: Jaxpr, other: Jaxpr) -> tuple[Jaxpr, list[Any]]:
    """A body as a jaxpr, with what it closes over."""
    masking = step.masking
    return stage(lambda *xs: masking.run(main, other, xs), main.in_avals, name=main.name, origin=main.origin)


def _cond(step: Step, xs: Sequence[Any]) -> list[Any]:
    pairs = zip(step.params["branches"], step.o.params["branches"], strict=True)
    consts, branches = united([_body(step, main, other) for main, other in pairs])
    return list(cond(xs[0], *consts, *xs[1:], branches=branches))


def _while(step: Step, xs: Sequence[Any]) -> list[Any]:
    p, q = step.params, step.o.params
    test, test_consts = _body(step, p["cond_jaxpr"], q["cond_jaxpr"])
    body, body_consts = _body(step, p["body_jaxpr"], q["body_jaxpr"])
    n, m = p["cond_nconsts"], p["body_nconsts"]
    args = [*test_consts, *xs[:n], *body_consts, *xs[n : n + m], *xs[n + m :]]
    changed = {"cond_nconsts": n + len(test_consts), "body_nconsts": m + len(body_consts)}
    return step.apply(args, cond_jaxpr=test, body_jaxpr=body, **changed)


def _scan(step: Step, xs: Sequence[Any]) -> list[Any]:
    """Rule of scans: a loop over rows has the bucket's size, and steps of the padding leave the carry unchanged."""
    p, q = step.params, step.o.params
    main, other = p["jaxpr"], q["jaxpr"]
    n, carried = p["num_consts"], p["num_carry"]
    length = step.size(p["length"], q["length"])
    avals, extra = list(main.in_avals), []
    body: Callable[..., Any] = lambda *ys: step.masking.run(main, other, ys)
    if isinstance(length, Size):
        extra = [structural.iota(dtype=np.dtype("int32"), shape=(p["length"],), dimension=0)]
        avals.append(ShapedArray((), np.dtype("int32")))
        body = _skipping(step, main, other, length, n, carried)
    jaxpr, consts = stage(body, avals, name=main.name, origin=main.origin)
    return step.apply([*consts, *xs, *extra], jaxpr=jaxpr, num_consts=n + len(consts))


def _skipping(step: Step, main: Jaxpr, other: Jaxpr, length: Size, consts: int, carried: int) -> Callable[..., Any]:
    """Return a loop body that leaves the carry unchanged in steps of the padding."""

    def body(*ys: Any) -> list[Any]:
        *given, index = ys
        there = elementwise.lt(index, step.masking.valid(length))
        taken = _body(step, main, other)
        rest = main.out_avals[carried:]

        def skip(*zs: Any) -> list[Any]:
            return [*zs[consts : consts + carried], *map(structural.zeros, rest)]

        skipped = stage(skip, main.in_avals, name=main.name)
        closed, branches = united([skipped, taken])
        chosen = elementwise.convert_element_type(there, new_dtype=np.dtype("int32"))
        return list(state.trace.process(cond, [chosen, *closed, *given], {"branches": branches}))

    return body


RULES: dict[Primitive, Rule] = {
    **dict.fromkeys((call, checkpoint, composite), _opened("jaxpr")),
    **dict.fromkeys((custom_jvp_call, custom_vjp_call, custom_vmap_call, linear_call), _opened("fun")),
    custom_fwd: _opened("fwd"),
    cond: _cond,
    while_: _while,
    scan: _scan,
}
