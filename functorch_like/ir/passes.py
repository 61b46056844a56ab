"""Passes over jaxprs: dead code, constant folding, common subexpressions. Jaxpr in, jaxpr out, same meaning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like.ir.jaxpr import Atom, Equation, Jaxpr, Literal, Var, effects

#: Primitives that are applied as often as they were written: whoever holds a value back twice wants it computed twice.
_APART = frozenset(("optimization_barrier",))
#: Floating arithmetic on the narrow kinds is left to XLA, which may keep more precision in between.
_FOLDED_KINDS = "biufc"


def dead_code(jaxpr: Jaxpr) -> Jaxpr:
    """Drop equations that no output depends on, and inside equations that hold jaxprs the parts that none does.

    What has effects stays.
    """
    needed = {a for a in jaxpr.outputs if type(a) is Var}
    kept: list[Equation] = []
    for e in reversed(jaxpr.equations):
        used = [v in needed for v in e.outputs]
        if any(used) or effects(e):
            made = _pruned(e, tuple(used)) if e.prim.dce is not None else e
            kept.append(made)
            needed.update(a for a in made.inputs if type(a) is Var)
    kept.reverse()
    if kept == jaxpr.equations:
        return jaxpr
    return Jaxpr(jaxpr.inputs, kept, jaxpr.outputs, jaxpr.name, jaxpr.origin)


def _pruned(e: Equation, used: tuple[bool, ...]) -> Equation:
    assert e.prim.dce is not None
    kept, given, params = e.prim.dce(used, **e.params)
    if all(given) and all(kept):
        return e
    inputs = [a for a, k in zip(e.inputs, kept, strict=True) if k]
    outputs = [v for v, g in zip(e.outputs, given, strict=True) if g]
    return Equation(e.prim, inputs, params, outputs, e.source)


def without_unused(jaxpr: Jaxpr, used: Sequence[bool]) -> tuple[Jaxpr, list[bool]]:
    """A jaxpr with only the outputs marked in `used`, and which of its inputs it then still has."""
    outputs = [a for a, u in zip(jaxpr.outputs, used, strict=True) if u]
    live = dead_code(Jaxpr(jaxpr.inputs, jaxpr.equations, outputs, jaxpr.name, jaxpr.origin))
    kept = used_inputs(live)
    if all(used) and all(kept) and live.equations == jaxpr.equations:
        return jaxpr, kept
    inputs = [v for v, k in zip(live.inputs, kept, strict=True) if k]
    return Jaxpr(inputs, live.equations, outputs, jaxpr.name, jaxpr.origin), kept


def used_inputs(jaxpr: Jaxpr) -> list[bool]:
    """Return for each input whether an equation or output reads it."""
    read = {a for a in jaxpr.outputs if type(a) is Var}
    for e in jaxpr.equations:
        read.update(a for a in e.inputs if type(a) is Var)
    return [v in read for v in jaxpr.inputs]


def common_subexpressions(jaxpr: Jaxpr) -> Jaxpr:
    """Compute equal expressions once. Without effects, equal operands and parameters mean equal results."""
    same: dict[Any, Any] = {}
    seen: dict[Any, Equation] = {}
    kept: list[Equation] = []
    for e in jaxpr.equations:
        inputs = [same.get(a, a) for a in e.inputs]
        try:
            # Formed with params' values, not their repr: jaxprs compare by identity.
            key = (e.prim, tuple(map(_atom_key, inputs)), tuple(e.params.items()))
            twin = seen.get(key)
            if twin is not None and (e.prim.name in _APART or effects(e)):
                key, twin = None, None
        except TypeError:  # an unhashable parameter: left alone
            key, twin = None, None
        if twin is not None:
            same.update(zip(e.outputs, twin.outputs, strict=True))
            continue
        made = Equation(e.prim, inputs, e.params, e.outputs, e.source)
        if key is not None:
            seen[key] = made
        kept.append(made)
    outputs: list[Atom] = [same.get(a, a) for a in jaxpr.outputs]
    return Jaxpr(jaxpr.inputs, kept, outputs, jaxpr.name, jaxpr.origin)


def _atom_key(atom: Any) -> Any:
    # Bytes, not values: 0.0 and -0.0 are equal but not the same constant.
    return (atom.aval, atom.value.tobytes()) if type(atom) is Literal else atom


def fold_constants(jaxpr: Jaxpr) -> Jaxpr:
    """Compute equations on literals now, where NumPy's result is XLA's bit for bit."""
    known: dict[Any, Literal] = {}
    kept: list[Equation] = []
    for e in jaxpr.equations:
        inputs = [known.get(a, a) for a in e.inputs] if known else e.inputs
        literals = [a.value for a in inputs if isinstance(a, Literal)]
        if literals and len(literals) == len(inputs) and e.prim.exact:
            aval = e.outputs[0].aval
            if aval.size == 1 and aval.dtype.kind in _FOLDED_KINDS and aval.dtype.isbuiltin == 1:
                with np.errstate(all="ignore"):
                    value = np.asarray(e.prim.ref(*literals, **e.params))
                known[e.outputs[0]] = Literal(value.astype(aval.dtype), aval)
                continue
        kept.append(Equation(e.prim, inputs, e.params, e.outputs, e.source) if known else e)
    if not known:
        return jaxpr
    outputs: list[Atom] = [known.get(a, a) for a in jaxpr.outputs]
    return Jaxpr(jaxpr.inputs, kept, outputs, jaxpr.name, jaxpr.origin)


def simplify(jaxpr: Jaxpr) -> Jaxpr:
    """The passes that run before lowering."""
    return common_subexpressions(fold_constants(dead_code(jaxpr)))
