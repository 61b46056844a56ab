"""Checks inside of calls, branches and loops: their jaxprs get additional results for failures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import core
from functorch_like.avals import ShapedArray
from functorch_like.checkify.error import ELEMENTS, NUMBER, Places
from functorch_like.checkify.rules import RULES
from functorch_like.checkify.run import checked
from functorch_like.checkify.state import NONE, ONE, State, chosen, first
from functorch_like.core import Primitive, aval_of
from functorch_like.ir.jaxpr import Jaxpr, evaluate
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.higher_order.call import call
from functorch_like.primitives.higher_order.checkpoint.checkpoint import checkpoint
from functorch_like.primitives.higher_order.control_flow import sequential_vmap
from functorch_like.primitives.higher_order.control_flow.cond import cond
from functorch_like.primitives.higher_order.control_flow.cond_branches import united
from functorch_like.primitives.higher_order.control_flow.scan import scan
from functorch_like.primitives.higher_order.control_flow.scan_operands import groups
from functorch_like.primitives.higher_order.control_flow.while_loop import while_


def _staged(name: str, fun: Callable[..., list[Any]], avals: Sequence[ShapedArray]) -> Jaxpr:
    made, consts = stage(fun, avals, name=name, origin=f"checks of {name}", parent=core.EVALUATE, chain="")
    assert not consts  # `fun` closes over no arrays
    return made


def _zeros(avals: Sequence[ShapedArray]) -> list[Any]:
    return [structural.zeros(aval) for aval in avals]


# --------------------------------------------------------------------------------------------------------------- call
def _call(state: State, source: Any, prim: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    jaxpr: Jaxpr = params["jaxpr"]
    part = checked(jaxpr, state.checks)
    if part.same:
        return list(prim(*operands, **params))
    outs = list(prim(*part.consts, *operands, **{**params, "jaxpr": part.jaxpr}))
    count = len(jaxpr.outputs)
    state.absorb(part.places, outs[count:])
    return outs[:count]


# --------------------------------------------------------------------------------------------------------------- cond
def _cond(state: State, source: Any, prim: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    branches: tuple[Jaxpr, ...] = params["branches"]
    parts = [checked(b, state.checks) for b in branches]
    if all(part.same for part in parts):
        return list(prim(*operands, **params))
    places = Places(
        tuple(site for part in parts for site in part.places.sites), max(part.places.depth for part in parts)
    )

    def make() -> tuple[list[Any], tuple[Jaxpr, ...]]:
        consts, wide = united([(part.jaxpr, part.consts) for part in parts])
        before = 0
        made = []
        for part, branch in zip(parts, wide, strict=True):
            made.append(_padded(part.places, branch, places, before))
            before += len(part.places.sites)
        return consts, tuple(made)

    consts, made = branches[0].memo(("checkify cond", state.checks, branches), make)
    index, *rest = operands
    outs = list(prim(index, *consts, *rest, branches=made))
    count = len(branches[0].outputs)
    state.absorb(places, outs[count:])
    return outs[:count]


def _padded(own: Places, branch: Jaxpr, places: Places, before: int) -> Jaxpr:
    """Return a branch with the failures of all branches as results; its own sites follow the first `before` sites."""
    count = len(branch.outputs) - len(own.avals())
    left = [aval for site in places.sites[:before] for aval in site.avals]
    right = [aval for site in places.sites[before + len(own.sites) :] for aval in site.avals]

    def fun(*args: Any) -> list[Any]:
        outs = evaluate(branch, args)
        if not places.sites:
            return outs
        code, *failure = outs[count:] or [NONE, NONE]
        if own.sites and before:
            code = elementwise.select_n(
                elementwise.ne(code, NONE), NONE, elementwise.add(code, np.array(before, np.int32))
            )
        numbers, values = failure[: 1 + own.depth], failure[1 + own.depth :]
        numbers += [NONE] * (places.depth - own.depth)
        return [*outs[:count], code, *numbers, *_zeros(left), *values, *_zeros(right)]

    return _staged(branch.name, fun, branch.in_avals)


# -------------------------------------------------------------------------------------------------------------- loops
def _merged(before: Sequence[Any], now: Sequence[Any], step: Any, depth: int) -> list[Any]:
    """Return the failures before a step of a loop, or those of the step if there are none; `depth` is its body's."""
    if not now:
        return []
    now = [*now[: 2 + depth], step, *now[2 + depth :]]
    fails = first(before[0], now[0])
    return [chosen(fails, o, n) for o, n in zip(before, now, strict=True)]


def _scan(state: State, source: Any, prim: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    jaxpr, num_consts, num_carry = (params[k] for k in ("jaxpr", "num_consts", "num_carry"))
    part = checked(jaxpr, state.checks)
    if part.same:
        return list(prim(*operands, **params))
    places = part.places.inside(ELEMENTS if jaxpr.name.startswith(sequential_vmap.NAME) else "scan")
    failure_avals = places.avals()

    def make() -> Jaxpr:
        def fun(*args: Any) -> list[Any]:
            more, own = args[: len(part.consts)], args[len(part.consts) :]
            consts, (step, *carries), xs = groups(own, num_consts, 1 + len(failure_avals) + num_carry)
            before, carries = carries[: len(failure_avals)], carries[len(failure_avals) :]
            outs = evaluate(part.jaxpr, [*more, *consts, *carries, *xs])
            after = _merged(before, outs[len(jaxpr.outputs) :], step, part.places.depth)
            return [elementwise.add(step, ONE), *after, *outs[: len(jaxpr.outputs)]]

        consts, carries, xs = groups(jaxpr.in_avals, num_consts, num_carry)
        first_avals = [aval_of(c) for c in part.consts]
        return _staged(jaxpr.name, fun, [*first_avals, *consts, NUMBER, *failure_avals, *carries, *xs])

    body = jaxpr.memo(("checkify scan", state.checks, num_consts, num_carry), make)
    consts, carries, xs = groups(operands, num_consts, num_carry)
    sizes = {"num_consts": len(part.consts) + num_consts, "num_carry": 1 + len(failure_avals) + num_carry}
    outs = prim(
        *part.consts, *consts, NONE, *_zeros(failure_avals), *carries, *xs, **{**params, "jaxpr": body, **sizes}
    )  # fmt: skip
    state.absorb(places, outs[1 : 1 + len(failure_avals)])
    return list(outs[1 + len(failure_avals) :])


def _while(state: State, source: Any, prim: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Rule of while loops: the condition is evaluated before the loop and in each step, and may fail as the body."""
    cond, body = params["cond_jaxpr"], params["body_jaxpr"]
    test, done = checked(cond, state.checks), checked(body, state.checks)
    if test.same and done.same:
        return list(prim(*operands, **params))
    inner = Places((*done.places.sites, *test.places.sites), max(done.places.depth, test.places.depth))
    places = inner.inside("while_loop")
    failure_avals, n, m = places.avals(), params["cond_nconsts"], params["body_nconsts"]
    cond_consts, body_consts, starts = groups(operands, n, m)
    cond_consts, body_consts = [*test.consts, *cond_consts], [*done.consts, *body_consts]
    n, m = len(cond_consts), len(body_consts)

    def make() -> tuple[Jaxpr, Jaxpr]:
        def step(*args: Any) -> list[Any]:
            test_consts, consts, (_, count, *rest) = groups(args, n, m)
            before, carries = rest[: len(failure_avals)], rest[len(failure_avals) :]
            part = State(state.checks)
            outs = evaluate(done.jaxpr, [*consts, *carries])
            part.absorb(done.places, outs[len(carries) :])
            outs = outs[: len(carries)]
            more, *failure = evaluate(test.jaxpr, [*test_consts, *outs])
            part.absorb(test.places, failure)
            return [more, elementwise.add(count, ONE), *_merged(before, part.flat(), count, inner.depth), *outs]

        flag = ShapedArray((), np.dtype(bool))
        carried = [flag, NUMBER, *failure_avals, *body.in_avals[params["body_nconsts"] :]]
        again = _staged(cond.name, lambda more, *_: [more], carried)
        consts = [aval_of(c) for c in (*cond_consts, *body_consts)]
        return again, _staged(body.name, step, [*consts, *carried])

    again, stepping = body.memo(("checkify while", state.checks, cond, n, m), make)
    more, *failure = evaluate(test.jaxpr, [*cond_consts, *starts])
    state.absorb(test.places, failure)
    outs = prim(
        *cond_consts, *body_consts, more, NONE, *_zeros(failure_avals), *starts,
        cond_jaxpr=again, body_jaxpr=stepping, cond_nconsts=0, body_nconsts=n + m,
    )  # fmt: skip
    state.absorb(places, outs[2 : 2 + len(failure_avals)])
    return list(outs[2 + len(failure_avals) :])


RULES.update({call: _call, checkpoint: _call, cond: _cond, scan: _scan, while_: _while})
