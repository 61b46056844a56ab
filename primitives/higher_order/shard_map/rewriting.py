"""Jaxprs of parts with other equations in the place of some."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like.ir.jaxpr import Equation, Jaxpr, Literal, Var
from functorch_like.primitives.base.shapes import broadcast_in_dim
from functorch_like.primitives.elementwise.arithmetic import mul


def rewritten(jaxpr: Jaxpr, write: Callable[[Equation, list[Any]], tuple[list[Equation], Any]]) -> Jaxpr:
    """Return a jaxpr with other equations.

    Args:
        jaxpr: the jaxpr.
        write: takes an equation and its new operands; returns the equations in its place, and the value that stands for
            its result, or None where they write the result itself.
    """
    instead: dict[Any, Any] = {}
    of = lambda a: instead.get(a, a) if type(a) is Var else a
    kept: list[Equation] = []
    for e in jaxpr.equations:
        equations, value = write(e, list(map(of, e.inputs)))
        kept += equations
        if value is not None:
            instead[e.outputs[0]] = value
    return Jaxpr(jaxpr.inputs, kept, list(map(of, jaxpr.outputs)), jaxpr.name, jaxpr.origin)


def product(x: Any, factor: float, e: Equation, outputs: Sequence[Var]) -> list[Equation]:
    """Return the equations of the product of a value and a number, with the source of another equation."""
    aval = x.aval.strong()
    scalar = aval.update(shape=())
    everywhere = Var(aval)
    full = {"shape": aval.shape, "broadcast_dimensions": ()}
    return [
        Equation(broadcast_in_dim, [Literal(np.asarray(factor, aval.dtype), scalar)], full, [everywhere], e.source),
        Equation(mul, [x, everywhere], {}, outputs, e.source),
    ]
