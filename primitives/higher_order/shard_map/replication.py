"""Analysis of replication: the mesh axes along which values inside of `shard_map` may differ.

The analysis goes forward through a jaxpr and is conservative. A value marked as the same is the same on all devices
along an axis; a value marked as different may still be the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functorch_like.core import Primitive
from functorch_like.ir.jaxpr import Equation, Jaxpr, Var, inner_jaxprs
from functorch_like.primitives.collectives.exchange import all_gather
from functorch_like.primitives.collectives.reduce_over_axis import pmax, pmin, psum
from functorch_like.primitives.collectives.shared_values import divide_where_same, sum_where_same
from functorch_like.primitives.higher_order.control_flow.cond import cond
from functorch_like.primitives.higher_order.control_flow.scan import scan
from functorch_like.primitives.higher_order.control_flow.while_loop import while_
from functorch_like.primitives.higher_order.custom.custom_jvp import custom_jvp_call
from functorch_like.primitives.higher_order.custom.custom_vjp import custom_vjp_call

Axes = frozenset[str]
NONE: Axes = frozenset()
#: Takes a function that an equation applies, the axes along which its inputs may differ, and those along which devices
#: may differ in whether they run it; returns the axes along which its results may differ.
Apply = Callable[[Jaxpr, Sequence[Axes], Axes], list[Axes]]
#: Collectives whose results are the same along their axis; those of the others may differ.
UNIFYING = frozenset((psum, pmax, pmin, all_gather))
#: Those whose results count as one value where a gradient is taken. As in JAX, gathered values are each device's own.
REDUCING = frozenset((psum, pmax, pmin))


def varying(
    jaxpr: Jaxpr,
    ins: Sequence[Axes],
    around: Axes = NONE,
    unifying: frozenset[Primitive] = UNIFYING,
    see: Callable[[Equation, list[Axes]], None] | None = None,
) -> list[Axes]:
    """Return the axes along which each result may differ.

    Args:
        jaxpr: the function on parts.
        ins: the axes along which its inputs may differ.
        around: axes along which devices may differ in whether they run the function.
        unifying: the collectives whose results are the same along their axis.
        see: called with each equation of the jaxpr, and the axes along which its operands may differ.
    """
    axes_of: dict[Any, Axes] = dict(zip(jaxpr.inputs, ins, strict=True))
    of = lambda atom: axes_of[atom] if type(atom) is Var else NONE
    apply: Apply = lambda inner, of_inputs, within: varying(inner, of_inputs, within, unifying)
    for e in jaxpr.equations:
        operands = [of(a) for a in e.inputs]
        if see is not None:
            see(e, operands)
        for v, axes in zip(e.outputs, of_results(e, operands, around, unifying, apply), strict=True):
            axes_of[v] = axes | around
    return [of(a) | around for a in jaxpr.outputs]


def of_results(e: Equation, ins: list[Axes], around: Axes, unifying: frozenset[Primitive], apply: Apply) -> list[Axes]:
    """Return the axes along which the results of an equation may differ.

    Args:
        e: the equation.
        ins: the axes along which its operands may differ.
        around: axes along which devices may differ in whether they run it.
        unifying: the collectives whose results are the same along their axis.
        apply: is called for each function that the equation applies; for the body of a loop again and again, last with
            the axes that hold for all iterations.
    """
    rule = _RULES.get(e.prim)
    if rule is not None:
        return rule(e, ins, around, apply)
    union = NONE.union(*ins)
    name = e.params.get("axis_name")
    if name is not None:
        after = union - {name} if e.prim in unifying else union | {name}
        return [after] * len(e.outputs)
    inner = list(inner_jaxprs(e.params))
    if not inner:
        return [union] * len(e.outputs)
    (first, *others) = inner
    if not others and len(first.inputs) == len(ins) and len(first.outputs) == len(e.outputs):
        return apply(first, ins, around)  # once, to the operands
    return [union.union(*(_made_in(each, unifying) for each in inner))] * len(e.outputs)


def _made_in(jaxpr: Jaxpr, unifying: frozenset[Primitive]) -> Axes:
    """The axes along which something in a jaxpr differs though its inputs do not."""
    axes: set[str] = set()
    for e in jaxpr.equations:
        name = e.params.get("axis_name")
        if name is not None and e.prim not in unifying:
            axes.add(name)
        for inner in inner_jaxprs(e.params):
            axes |= _made_in(inner, unifying)
    return frozenset(axes)


def _fixed_point(step: Callable[[list[Axes]], list[Axes]], start: list[Axes]) -> list[Axes]:
    while True:
        after = [a | b for a, b in zip(start, step(start), strict=True)]
        if after == start:
            return start
        start = after


def _scan(e: Equation, ins: list[Axes], around: Axes, apply: Apply) -> list[Axes]:
    jaxpr, consts, carries = e.params["jaxpr"], e.params["num_consts"], e.params["num_carry"]
    fixed, slices = ins[:consts], ins[consts + carries :]
    run = lambda carry: apply(jaxpr, [*fixed, *carry, *slices], around)
    carry = _fixed_point(lambda c: run(c)[:carries], ins[consts : consts + carries])
    return [*carry, *run(carry)[carries:]]


def _while(e: Equation, ins: list[Axes], around: Axes, apply: Apply) -> list[Axes]:
    test, body = e.params["cond_jaxpr"], e.params["body_jaxpr"]
    first, second = e.params["cond_nconsts"], e.params["body_nconsts"]
    of_test, of_body, start = ins[:first], ins[first : first + second], ins[first + second :]

    def step(carry: list[Axes]) -> list[Axes]:
        (runs,) = apply(test, [*of_test, *carry], around)
        return apply(body, [*of_body, *carry], around | runs)

    return _fixed_point(step, start)


def _cond(e: Equation, ins: list[Axes], around: Axes, apply: Apply) -> list[Axes]:
    index, *operands = ins
    each = [apply(branch, operands, around | index) for branch in e.params["branches"]]
    return [NONE.union(*axes) for axes in zip(*each, strict=True)]


def _divided(e: Equation, ins: list[Axes], around: Axes, apply: Apply) -> list[Axes]:
    return [ins[0]]


def _summed(e: Equation, ins: list[Axes], around: Axes, apply: Apply) -> list[Axes]:
    return [ins[0] - (frozenset(e.params["axes"]) - ins[1])]


def _custom(e: Equation, ins: list[Axes], around: Axes, apply: Apply) -> list[Axes]:
    return apply(e.params["fun"], ins, around)


_RULES: dict[Primitive, Callable[..., list[Axes]]] = {
    scan: _scan,
    while_: _while,
    cond: _cond,
    custom_jvp_call: _custom,
    custom_vjp_call: _custom,
    divide_where_same: _divided,
    sum_where_same: _summed,
}
