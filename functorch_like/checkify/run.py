"""Evaluation of a jaxpr with checks, and the jaxpr of that evaluation, for higher-order primitives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from functorch_like import core
from functorch_like.checkify.error import Places
from functorch_like.checkify.rules import RULES, plain
from functorch_like.checkify.state import State
from functorch_like.ir.jaxpr import Jaxpr, Literal, Var
from functorch_like.primitives.higher_order.jaxpr_jvp_and_batch import derive


def run(jaxpr: Jaxpr, args: Sequence[Any], checks: frozenset[str]) -> tuple[list[Any], State]:
    """Evaluate a jaxpr with checks; return its results, and the state with its failures."""
    state = State(checks)
    values: dict[Any, Any] = dict(zip(jaxpr.inputs, args, strict=True))
    carried = core.state.source
    try:
        for e in jaxpr.equations:
            core.state.source = e.source
            operands = [values[a] if type(a) is Var else a.operand for a in e.inputs]
            outs = RULES.get(e.prim, plain)(state, e.source, e.prim, operands, e.params)
            values.update(zip(e.outputs, outs, strict=True))
    finally:
        core.state.source = carried
    return [a.operand if isinstance(a, Literal) else values[a] for a in jaxpr.outputs], state


class Checked(NamedTuple):
    """A jaxpr with checks: its outputs are the results, followed by the failures.

    Attributes:
        jaxpr: the jaxpr with checks.
        consts: the values of its first inputs.
        places: the sites that can fail.
        same: True if the original jaxpr can be used: it has nothing to check, and no effects to drop.
    """

    jaxpr: Jaxpr
    consts: list[Any]
    places: Places
    same: bool


def checked(jaxpr: Jaxpr, checks: frozenset[str]) -> Checked:
    """Return a jaxpr with checks, memoised on the original one."""

    def make() -> Checked:
        places: list[Places] = []

        def fun(*args: Any) -> list[Any]:
            outs, state = run(jaxpr, args, checks)
            places[:] = [state.places]
            return [*outs, *state.flat()]

        made, consts = derive(jaxpr, "checked", "checks", fun, jaxpr.in_avals)
        return Checked(made, consts, places[0], not places[0].sites and not jaxpr.effects)

    return jaxpr.memo(("checkify", checks), make)
