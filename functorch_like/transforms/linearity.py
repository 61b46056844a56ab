"""Check that equations are linear, by the primitives' `linear`.

Operands of integers and booleans do not count: they have no derivatives. A gather counts as linear where it fills in
nothing but zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import ArrayImpl, NotDefined, Primitive, aval_of
from functorch_like.ir.jaxpr import Equation, Jaxpr, Literal, Var
from functorch_like.primitives.effects import callbacks, ffi_call


def nonlinear(equations: Sequence[Equation], unknown: set[Any], known: dict[Any, Any]) -> tuple[str, Equation] | None:
    """The first equation that is known not to be linear, with the reason; None where there is none.

    Args:
        equations: of a tape or jaxpr.
        unknown: the variables they should be linear in; those that depend on them are added.
        known: values of other variables, as far as there are any yet.
    """
    value = lambda a: a.value if type(a) is Literal else known.get(a) if type(a) is Var else a
    for e in equations:
        moving = [type(a) is Var and a in unknown for a in e.inputs]
        if not any(moving):
            continue
        unknown.update(e.outputs)
        linear = e.prim.linear
        inner = e.params.get("jaxpr")
        if e.prim.kind == "call" and isinstance(inner, Jaxpr):
            triples = list(zip(inner.inputs, e.inputs, moving, strict=True))
            inside = {v: value(a) for v, a, m in triples if not m}
            result = nonlinear(inner.equations, {v for v, _, m in triples if m}, inside)
            if result is not None:
                return result
        elif isinstance(e.prim.transpose, NotDefined) and e.prim.partial_eval is None and not _is_opaque(e.prim):
            return f"{_shown(e)} is not linear", e
        elif linear == "separately" and moving[0] and moving[1]:
            return f"both operands of {_shown(e)} depend on the arguments", e
        elif isinstance(linear, int) and any(m for k, m in enumerate(moving) if k != linear):
            return f"{_shown(e)} is linear in operand {linear} alone", e
        elif linear == "jointly":
            for a, m in zip(e.inputs, moving, strict=True):
                if not m and surely_not_zero(value(a)):
                    return f"an operand of {_shown(e)} is a constant that is not zero", e
    return None


def _is_opaque(prim: Primitive) -> bool:
    """Return True for a primitive that calls other code: it may be linear, though nothing can transpose it."""
    return prim in (callbacks.pure_callback, callbacks.io_callback, callbacks.debug_callback, ffi_call.ffi_call)


def surely_not_zero(x: Any) -> bool:
    """Return True if an operand is known to differ from zero; integers and traced values are skipped."""
    if type(x) is not ArrayImpl and not isinstance(x, (np.ndarray, np.generic, float, complex)):
        return False
    return dtypes.is_inexact(aval_of(x).dtype) and bool(np.any(np.asarray(x) != 0))


def _shown(e: Equation) -> str:
    operands = ", ".join(repr(a.aval if isinstance(a, (Var, Literal)) else aval_of(a)) for a in e.inputs)
    return f"{e.prim.name}({operands})"
