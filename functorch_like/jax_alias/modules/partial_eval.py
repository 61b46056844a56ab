"""`jax.interpreters.partial_eval`: tracing to programs, and rules that this package has no use for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functorch_like.core import Tracer
from functorch_like.ir import passes
from functorch_like.ir.jaxpr import Jaxpr as Recorded
from functorch_like.ir.trace_to_jaxpr import StageTracer, stage
from functorch_like.jax_alias.modules.programs import Jaxpr, view

DynamicJaxprTracer = StageTracer
JaxprTracer = Tracer

# Rules are registered here and never looked up: what they would do follows from the other rules.
custom_partial_eval_rules: dict[Any, Any] = {}
dce_rules: dict[Any, Any] = {}
partial_eval_jaxpr_custom_rules: dict[Any, Any] = {}


def trace_to_jaxpr_dynamic(fun: Any, in_avals: Sequence[Any], **options: Any) -> tuple[Jaxpr, list[Any], list[Any]]:
    """Record a flat function; return the program, the types of its results, and what it closes over."""
    program, consts = stage(fun.call_wrapped, list(in_avals), name=getattr(fun, "__name__", "fun"))
    closed = view(program, consts)
    return closed.jaxpr, closed.out_avals, closed.consts


def dce_jaxpr(jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: Any = False) -> tuple[Jaxpr, list[bool]]:
    """Return the part of a program that gives the results in use, and which arguments it needs."""
    program = jaxpr._text
    if not isinstance(program, Recorded) or jaxpr.constvars:
        return jaxpr, [True] * len(jaxpr.invars)
    live, needed = passes.without_unused(program, tuple(used_outputs))
    needed = [bool(n) or instantiate is True for n in needed]
    return view(live).jaxpr, list(needed)
