"""Passes from jaxpr to jaxpr: dead code elimination, constant folding, common subexpression elimination."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import core
from functorch_like.ir.jaxpr import Atom, Equation, Jaxpr, Literal, Var, effects

#: NumPy's kinds of dtypes that are folded. Others, such as bfloat16, are not: XLA may keep more precision in between.
_FOLDED_KINDS = "biufc"


def dead_code(jaxpr: Jaxpr) -> Jaxpr:
    """Drop equations that no output depends on, also inside of higher-order primitives. Those with effects stay."""
    needed: set[Atom] = set(jaxpr.outputs)
    equations: list[Equation] = []
    for e in reversed(jaxpr.equations):
        prim = e.prim
        if prim.dce is None:  # most equations; kept short, since it runs for every program
            for v in e.outputs:
                if v in needed:
                    break
            else:
                if prim.effects is None or not effects(e):
                    continue
            made = e
        else:
            used = [v in needed for v in e.outputs]
            if not any(used) and not effects(e):
                continue
            made = pruned(e, tuple(used))
        equations.append(made)
        needed.update(made.inputs)  # with literals, which are never looked up
    equations.reverse()
    if equations == jaxpr.equations:
        return jaxpr
    return Jaxpr(jaxpr.inputs, equations, jaxpr.outputs, jaxpr.name, jaxpr.origin)


def pruned(e: Equation, used: tuple[bool, ...]) -> Equation:
    """Return what an equation of a higher-order primitive needs for some of its results."""
    assert e.prim.dce is not None
    in_mask, out_mask, params = e.prim.dce(used, **e.params)
    if all(out_mask) and all(in_mask):
        return e
    inputs = [a for a, k in zip(e.inputs, in_mask, strict=True) if k]
    outputs = [v for v, g in zip(e.outputs, out_mask, strict=True) if g]
    return Equation(e.prim, inputs, params, outputs, e.source)


def without_unused(jaxpr: Jaxpr, used: Sequence[bool]) -> tuple[Jaxpr, list[bool]]:
    """Return a jaxpr with only the outputs marked in `used`, and the mask of the inputs that it keeps."""
    outputs = [a for a, u in zip(jaxpr.outputs, used, strict=True) if u]
    live = dead_code(Jaxpr(jaxpr.inputs, jaxpr.equations, outputs, jaxpr.name, jaxpr.origin))
    mask = used_inputs(live)
    if all(used) and all(mask) and live.equations == jaxpr.equations:
        return jaxpr, mask
    inputs = [v for v, k in zip(live.inputs, mask, strict=True) if k]
    return Jaxpr(inputs, live.equations, outputs, jaxpr.name, jaxpr.origin), mask


def used_inputs(jaxpr: Jaxpr) -> list[bool]:
    """Return the mask of the inputs that an equation or output reads."""
    unread = set(jaxpr.inputs).difference(jaxpr.outputs)
    for e in jaxpr.equations:
        if not unread:
            break
        unread.difference_update(e.inputs)
    return [v not in unread for v in jaxpr.inputs]


def common_subexpressions(jaxpr: Jaxpr) -> Jaxpr:
    """Compute equal expressions once: equations without effects of equal operands and parameters.

    A selection between equal operands is that operand. TRAP: XLA finds the same later, and then that two transposes of
    one batched product are equal; it gives the product a layout for which its emitter ends the process.
    """
    same: dict[Any, Any] = {}
    apart = same.keys().isdisjoint
    operands = _Operands()
    seen: dict[Any, Equation] = {}
    equations: list[Equation] = []
    for e in jaxpr.equations:
        prim, inputs = e.prim, e.inputs
        if not apart(inputs):
            inputs = [same.get(a, a) for a in inputs]
            e = e.of(inputs)
        if prim.selects and all(a is inputs[1] for a in inputs[2:]):
            same[e.outputs[0]] = inputs[1]
            continue
        if not prim.repeated and (prim.effects is None or not effects(e)):
            alike = e.signature
            if alike is None or not alike.interned:
                alike = _alike(e)
            key = (alike, *inputs)
            for a in inputs:
                if type(a) is Literal:
                    key = (alike, *map(operands.__getitem__, inputs))
                    break
            twin = seen.setdefault(key, e)
            if twin is not e:
                for v, known in zip(e.outputs, twin.outputs, strict=True):
                    same[v] = known
                continue
        equations.append(e)
    if len(equations) == len(jaxpr.equations):
        return jaxpr
    outputs: list[Atom] = [same.get(a, a) for a in jaxpr.outputs]
    return Jaxpr(jaxpr.inputs, equations, outputs, jaxpr.name, jaxpr.origin)


class _Operands(dict[Any, Any]):
    """Keys of operands: variables are their own keys; literals have aval and bytes."""

    def __missing__(self, a: Any) -> Any:
        # Bytes, not values: 0.0 and -0.0 are equal but different constants.
        made = self[a] = a if type(a) is Var else (a.aval, a.value.tobytes())
        return made


def _alike(e: Equation) -> Any:
    """Return the key of primitive, avals and parameters, for an equation without an interned signature."""
    known = core.find_signature(e.prim, [a.aval for a in e.inputs], e.params)
    if known is not None:
        return known
    key = (e.prim, *e.params.items())  # with values, not their repr: jaxprs compare by identity
    try:
        hash(key)
    except TypeError:  # an unhashable parameter: the equation stays
        return e
    return key


def fold_constants(jaxpr: Jaxpr) -> Jaxpr:
    """Compute equations on literals, if NumPy's result equals XLA's bit for bit."""
    known: dict[Any, Literal] = {}
    equations: list[Equation] = []
    for e in jaxpr.equations:
        changed = bool(known) and not known.keys().isdisjoint(e.inputs)
        inputs: Sequence[Any] = [known.get(a, a) for a in e.inputs] if changed else e.inputs
        if e.prim.exact and inputs and type(inputs[0]) is Literal and all(type(a) is Literal for a in inputs):
            aval = e.outputs[0].aval
            if aval.size == 1 and aval.dtype.kind in _FOLDED_KINDS and aval.dtype.isbuiltin == 1:
                with np.errstate(all="ignore"):
                    value = np.asarray(e.prim.ref(*[a.value for a in inputs], **e.params))
                known[e.outputs[0]] = Literal(value.astype(aval.dtype), aval)
                continue
        equations.append(e.of(inputs) if changed else e)
    if not known:
        return jaxpr
    outputs: list[Atom] = [known.get(a, a) for a in jaxpr.outputs]
    return Jaxpr(jaxpr.inputs, equations, outputs, jaxpr.name, jaxpr.origin)


_AXES = {"axes"}


def merged_reductions(jaxpr: Jaxpr) -> Jaxpr:
    """Reduce over all axes at once where a reduction is reduced again, and nothing else reads it.

    Nested maps make such pairs: the gradient of a bias is summed over each mapped axis in turn. XLA merges them only if
    both have the form that it gives reductions.
    """
    made: dict[Any, Equation] = {}  # reductions by their results
    readers: Counter[Any] = Counter()  # of results that are reduced again
    for e in jaxpr.equations:
        # Reductions without other parameters are associative: sums, products, extreme values, logical ones.
        if e.prim.kind == "reduction" and e.prim.builtin and e.params.keys() == _AXES:
            if e.inputs[0] in made and made[e.inputs[0]].prim is e.prim:
                readers[e.inputs[0]] = 0
            made[e.outputs[0]] = e
    if not readers:
        return jaxpr
    readers.update(a for e in jaxpr.equations for a in e.inputs if a in readers)
    readers.update(a for a in jaxpr.outputs if a in readers)
    equations: list[Equation] = []
    for e in jaxpr.equations:
        if e.outputs and e.outputs[0] in made and readers[e.inputs[0]] == 1:
            first = made[e.inputs[0]]
            kept = [d for d in range(first.inputs[0].aval.ndim) if d not in first.params["axes"]]
            axes = tuple(sorted((*first.params["axes"], *(kept[d] for d in e.params["axes"]))))
            e = made[e.outputs[0]] = Equation(e.prim, first.inputs, {"axes": axes}, e.outputs, e.source)
        equations.append(e)
    return dead_code(Jaxpr(jaxpr.inputs, equations, jaxpr.outputs, jaxpr.name, jaxpr.origin))


def simplify(jaxpr: Jaxpr) -> Jaxpr:
    """Apply the passes that run before lowering."""
    return common_subexpressions(merged_reductions(fold_constants(dead_code(jaxpr))))
