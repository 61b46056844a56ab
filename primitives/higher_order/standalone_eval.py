"""Primitives that hold jaxprs, outside of all transformations: one compiled program, kept on one of the jaxprs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functorch_like import core
from functorch_like.core import Primitive
from functorch_like.ir.jaxpr import Jaxpr
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives.higher_order.call import CallSpec, call


def evaluate_alone(prim: Primitive, main: str, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Run a primitive; `main` names the parameter whose jaxpr keeps the program."""
    jaxpr: Jaxpr = params[main]

    def make() -> tuple[Jaxpr, CallSpec]:
        alone = lambda *xs: prim(*xs, **params)
        avals = [core.aval_of(a) for a in args]
        origin = f"{prim.name} alone"
        return stage(alone, avals, name=prim.name, origin=origin, parent=core.EVALUATE, chain="")[0], CallSpec(
            prim.name
        )

    whole, spec = jaxpr.memo(("alone", *(v for v in params.values() if v is not jaxpr)), make)
    assert call.evaluate is not None
    return call.evaluate(args, {"jaxpr": whole, "spec": spec})
