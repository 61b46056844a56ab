"""Evaluation of recorded equations under the current trace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from functorch_like.core import state
from functorch_like.ir.jaxpr import Equation, Literal

Env = dict[Any, Any]


def read(atom: Any, env: Env) -> Any:
    """Return the value of an atom. A literal that a rolled loop counts has its value in the environment."""
    return env.get(atom, atom.value) if type(atom) is Literal else env[atom]


def play(equations: Iterable[Equation], env: Env) -> None:
    """Apply equations, each at the user's line that it was recorded at; results go into `env`."""
    carried = state.source
    try:
        for e in equations:
            state.source = e.source
            out = state.trace.process(e.prim, [read(a, env) for a in e.inputs], e.params)
            env.update(zip(e.outputs, out if e.prim.multiple_results else (out,), strict=True))
    finally:
        state.source = carried
