"""Constraints for the compiler where types of values name Explicit axes of a mesh."""

from __future__ import annotations

from functorch_like.backends.xla.explicit_types import spec_of
from functorch_like.ir.jaxpr import Equation, Jaxpr, Var
from functorch_like.primitives.structural.sharding_constraint import retyped, sharding_constraint


def split_as_typed(jaxpr: Jaxpr) -> Jaxpr:
    """Return the jaxpr with a constraint behind each equation whose result is split by Explicit axes.

    Elementwise results need none: they are split as their operands.
    """
    return jaxpr.memo("split as typed", lambda: _constrained(jaxpr))


def _constrained(jaxpr: Jaxpr) -> Jaxpr:
    equations: list[Equation] = []
    changed = False
    for e in jaxpr.equations:
        if e.prim.kind == "elementwise" or e.prim in (sharding_constraint, retyped):
            equations.append(e)
            continue
        outputs, constraints = list(e.outputs), list[Equation]()
        for k, v in enumerate(e.outputs):
            if v.aval.explicit is None:
                continue
            outputs[k] = free = Var(v.aval.split(None))
            params = {"mesh": v.aval.explicit.mesh, "spec": spec_of(v.aval.explicit, v.aval.ndim)}
            constraints.append(Equation(sharding_constraint, [free], params, (v,), e.source))
        changed = changed or bool(constraints)
        equations += [Equation(e.prim, e.inputs, e.params, outputs, e.source), *constraints] if constraints else [e]
    return Jaxpr(jaxpr.inputs, equations, jaxpr.outputs, jaxpr.name, jaxpr.origin) if changed else jaxpr
