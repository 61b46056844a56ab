"""Condition and body of a while loop under transformations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from functorch_like.avals import ShapedArray
from functorch_like.core import BatchAxis, aval_of, state
from functorch_like.ir import passes
from functorch_like.ir.jaxpr import Jaxpr, Var, evaluate
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.higher_order.control_flow.scan_operands import groups
from functorch_like.primitives.higher_order.jaxpr_jvp_and_batch import Derived, derive, jvp_jaxpr, rearranged
from functorch_like.primitives.reductions import reductions

Dims = Sequence[int | None]


class WhileForm(NamedTuple):
    """A condition and a body, the values of the first consts of the body, and a fact of each carry."""

    cond: Jaxpr
    body: Jaxpr
    consts: list[Any]
    out_info: Any


def live_form(
    cond: Jaxpr, body: Jaxpr, cond_nconsts: int, body_nconsts: int, used: tuple[bool, ...]
) -> tuple[list[bool], list[bool], dict[str, Any]]:
    """The loop with the carries that are used or that those depend on: operands kept, those carries, parameters."""

    def make() -> tuple[list[bool], list[bool], dict[str, Any]]:
        condition = passes.dead_code(cond)
        read_by_cond = groups(passes.used_inputs(condition), cond_nconsts, len(used))
        carries = [u or a for u, a in zip(used, read_by_cond.carries, strict=True)]
        while True:
            outputs = [a for a, c in zip(body.outputs, carries, strict=True) if c]
            steps = passes.dead_code(Jaxpr(body.inputs, body.equations, outputs, body.name, body.origin))
            read = groups(passes.used_inputs(steps), body_nconsts, len(used))
            grown = [c or r for c, r in zip(carries, read.carries, strict=True)]
            if grown == carries:
                break
            carries = grown
        at = lambda flags, first: [first + k for k, f in enumerate(flags) if f]
        params = {
            "cond_jaxpr": rearranged(condition, [*at(read_by_cond.consts, 0), *at(carries, cond_nconsts)]),
            "body_jaxpr": rearranged(steps, [*at(read.consts, 0), *at(carries, body_nconsts)]),
            "cond_nconsts": sum(read_by_cond.consts),
            "body_nconsts": sum(read.consts),
        }
        return [*read_by_cond.consts, *read.consts, *carries], carries, params

    return body.memo(("while live", cond, cond_nconsts, body_nconsts, used), make)


def tangent_form(
    cond: Jaxpr, body: Jaxpr, cond_nconsts: int, body_nconsts: int, consts: Sequence[bool], some: Sequence[bool]
) -> WhileForm:
    """The loop on primals and tangents, which follow the primals of their group; `out_info` marks the carries with one.

    Args:
        cond: the condition, which has no tangent.
        body: the body.
        cond_nconsts: consts of the condition.
        body_nconsts: consts of the body.
        consts: which of these have tangents.
        some: which carries have tangents at the start.
    """

    def make() -> WhileForm:
        carries = list(some)
        while True:
            steps, more, has = jvp_jaxpr(body, [*consts, *carries], carries)
            if has == carries:
                break
            carries = has
        n = len(more)
        inputs = groups(range(n, len(steps.inputs)), body_nconsts, len(some))  # then tangents
        t_consts, t_carries, _ = groups(inputs.slices, sum(consts), sum(carries))
        order = [*range(n), *inputs.consts, *t_consts, *inputs.carries, *t_carries]
        unread = [Var(v.aval.strong()) for v, h in zip(cond.inputs[cond_nconsts:], carries, strict=True) if h]
        condition = Jaxpr([*cond.inputs, *unread], cond.equations, cond.outputs, cond.name, cond.origin)
        return WhileForm(condition, rearranged(steps, order), more, carries)

    key = ("while jvp", cond, cond_nconsts, body_nconsts, tuple(consts), tuple(some))
    return body.memo(key, make)


def stopping_form(axis: BatchAxis, cond: Derived, body: Derived, dims: Dims) -> tuple[Jaxpr, Jaxpr]:
    """A loop whose elements stop on their own.

    Its first carry marks the elements that go on, so that the condition is computed once for each step. The consts of
    the body are those of condition and body.

    Args:
        axis: of the elements.
        cond: the condition with the axis, which it gives first.
        body: the body with the axis.
        dims: where the carries have the axis.
    """

    def step(*values: Any) -> list[Any]:
        on, *old = values[n:]
        new = evaluate(body.jaxpr, [*values[m:n], *old])
        over = lambda x, d: structural.broadcast_in_dim(on, shape=aval_of(x).shape, broadcast_dimensions=(d,))
        kept = [elementwise.select_n(over(x, d), x, y) for x, y, d in zip(old, new, dims, strict=True)]
        return [*evaluate(cond.jaxpr, [*values[:m], *kept]), *kept]

    m = len(cond.jaxpr.inputs) - len(dims)
    n = m + len(body.jaxpr.inputs) - len(dims)

    def make() -> tuple[Jaxpr, Jaxpr]:
        consts, carries = body.jaxpr.in_avals[: n - m], body.jaxpr.in_avals[n - m :]
        going = ShapedArray((axis.size,), np.dtype(bool))
        made, _ = derive(
            body.jaxpr, "each", "each element alone", step, [*cond.jaxpr.in_avals[:m], *consts, going, *carries]
        )
        goes_on = lambda on, *_: [reductions.reduce_or(on, axes=(0,))]
        return derive(cond.jaxpr, "any", "any", goes_on, [going, *carries])[0], made

    return body.jaxpr.memo(("while each", cond.jaxpr, axis, tuple(dims), state.axes), make)
