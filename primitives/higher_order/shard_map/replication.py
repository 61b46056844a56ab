"""Analysis of replication: the mesh axes along which values inside of `shard_map` may differ.

The analysis goes forward through a jaxpr and is conservative. A value marked as the same is the same on all devices
along an axis; a value marked as different may still be the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from functorch_like.core import Primitive
from functorch_like.ir.jaxpr import Equation, Jaxpr, Literal, Var, inner_jaxprs
from functorch_like.primitives.base.shapes import broadcast_in_dim
from functorch_like.primitives.collectives.exchange import all_gather
from functorch_like.primitives.collectives.reduce_over_axis import pmax, pmin, psum
from functorch_like.primitives.elementwise.arithmetic import mul
from functorch_like.primitives.higher_order.control_flow.cond import cond
from functorch_like.primitives.higher_order.control_flow.scan import scan
from functorch_like.primitives.higher_order.control_flow.while_loop import while_
from functorch_like.primitives.higher_order.custom.custom_jvp import custom_jvp_call
from functorch_like.primitives.higher_order.custom.custom_vjp import custom_vjp_call

Axes = frozenset[str]
NONE: Axes = frozenset()
#: Collectives whose results are the same along their axis; those of the others may differ.
_UNIFYING = frozenset((psum, pmax, pmin, all_gather))
_EXTREMES = frozenset((pmax, pmin))


def varying(jaxpr: Jaxpr, ins: Sequence[Axes], around: Axes = NONE) -> list[Axes]:
    """Return the axes along which each result may differ.

    Args:
        jaxpr: the function on parts.
        ins: the axes along which its inputs may differ.
        around: axes along which devices may differ in whether they run the function.
    """
    return _propagate(jaxpr, ins, around, lambda e, of: None)


def _propagate(jaxpr: Jaxpr, ins: Sequence[Axes], around: Axes, see: Callable[[Equation, list[Axes]], None]) -> Any:
    axes_of: dict[Any, Axes] = dict(zip(jaxpr.inputs, ins, strict=True))
    of = lambda atom: axes_of[atom] if type(atom) is Var else NONE
    for e in jaxpr.equations:
        operands = [of(a) for a in e.inputs]
        see(e, operands)
        for v, axes in zip(e.outputs, _of_results(e, operands, around), strict=True):
            axes_of[v] = axes | around
    return [of(a) | around for a in jaxpr.outputs]


def _of_results(e: Equation, ins: list[Axes], around: Axes) -> list[Axes]:
    rule = _RULES.get(e.prim)
    if rule is not None:
        return rule(e, ins, around)
    union = NONE.union(*ins)
    name = e.params.get("axis_name")
    if name is not None:
        after = union - {name} if e.prim in _UNIFYING else union | {name}
        return [after] * len(e.outputs)
    inner = list(inner_jaxprs(e.params))
    if not inner:
        return [union] * len(e.outputs)
    (first, *others) = inner
    if not others and len(first.inputs) == len(ins) and len(first.outputs) == len(e.outputs):
        return varying(first, ins, around)  # it is applied once, to the operands
    return [union.union(*map(_made_in, inner))] * len(e.outputs)


def _made_in(jaxpr: Jaxpr) -> Axes:
    """The axes along which something in a jaxpr differs though its inputs do not."""
    axes: set[str] = set()
    for e in jaxpr.equations:
        name = e.params.get("axis_name")
        if name is not None and e.prim not in _UNIFYING:
            axes.add(name)
        for inner in inner_jaxprs(e.params):
            axes |= _made_in(inner)
    return frozenset(axes)


def _fixed_point(step: Callable[[list[Axes]], list[Axes]], start: list[Axes]) -> list[Axes]:
    while True:
        after = [a | b for a, b in zip(start, step(start), strict=True)]
        if after == start:
            return start
        start = after


def _scan(e: Equation, ins: list[Axes], around: Axes) -> list[Axes]:
    jaxpr, consts, carries = e.params["jaxpr"], e.params["num_consts"], e.params["num_carry"]
    fixed, slices = ins[:consts], ins[consts + carries :]
    run = lambda carry: varying(jaxpr, [*fixed, *carry, *slices], around)
    carry = _fixed_point(lambda c: run(c)[:carries], ins[consts : consts + carries])
    return [*carry, *run(carry)[carries:]]


def _while(e: Equation, ins: list[Axes], around: Axes) -> list[Axes]:
    test, body = e.params["cond_jaxpr"], e.params["body_jaxpr"]
    first, second = e.params["cond_nconsts"], e.params["body_nconsts"]
    of_test, of_body, start = ins[:first], ins[first : first + second], ins[first + second :]

    def step(carry: list[Axes]) -> list[Axes]:
        (runs,) = varying(test, [*of_test, *carry], around)
        return varying(body, [*of_body, *carry], around | runs)

    return _fixed_point(step, start)


def _cond(e: Equation, ins: list[Axes], around: Axes) -> list[Axes]:
    index, *operands = ins
    each = [varying(branch, operands, around | index) for branch in e.params["branches"]]
    return [NONE.union(*axes) for axes in zip(*each, strict=True)]


def _custom(e: Equation, ins: list[Axes], around: Axes) -> list[Axes]:
    return varying(e.params["fun"], ins, around)


_RULES: dict[Primitive, Callable[..., list[Axes]]] = {
    scan: _scan,
    while_: _while,
    cond: _cond,
    custom_jvp_call: _custom,
    custom_vjp_call: _custom,
}


def without_needless(jaxpr: Jaxpr, ins: Sequence[Axes], sizes: Mapping[str, int]) -> Jaxpr:
    """Return the jaxpr with no sums or extremes over an axis along which the operand is the same.

    Args:
        jaxpr: the function on parts.
        ins: the axes along which its inputs may differ.
        sizes: of the axes. The sum over an axis along which the operand is the same is a product with its size.
    """
    needless: dict[int, Any] = {}

    def see(e: Equation, axes: list[Axes]) -> None:
        name = e.params.get("axis_name")
        if name in sizes and name not in NONE.union(*axes) and e.prim in (*_EXTREMES, psum):
            needless[id(e)] = name

    _propagate(jaxpr, ins, NONE, see)
    if not needless:
        return jaxpr
    same: dict[Any, Any] = {}
    kept: list[Equation] = []
    for e in jaxpr.equations:
        inputs = [same.get(a, a) if type(a) is Var else a for a in e.inputs]
        name = needless.get(id(e))
        if name is None:
            kept.append(Equation(e.prim, inputs, e.params, e.outputs, e.source))
        elif e.prim in _EXTREMES:
            same[e.outputs[0]] = inputs[0]
        else:
            kept += _product(inputs[0], sizes[name], e)
    outputs = [same.get(a, a) if type(a) is Var else a for a in jaxpr.outputs]
    return Jaxpr(jaxpr.inputs, kept, outputs, jaxpr.name, jaxpr.origin)


def _product(x: Any, size: int, e: Equation) -> list[Equation]:
    aval = x.aval.strong()
    scalar = aval.update(shape=())
    factor = Var(aval)
    full = {"shape": aval.shape, "broadcast_dimensions": ()}
    return [
        Equation(broadcast_in_dim, [Literal(np.asarray(size, aval.dtype), scalar)], full, [factor], e.source),
        Equation(mul, [x, factor], {}, e.outputs, e.source),
    ]
