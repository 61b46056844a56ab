"""Analysis of replication: the mesh axes along which values inside of `shard_map` may differ.

The analysis goes forward through a jaxpr and is conservative. A value marked as the same is the same on all devices
along an axis; a value marked as different may still be the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from functorch_like.core import Primitive
from functorch_like.errors import UnsupportedError
from functorch_like.ir.jaxpr import Equation, Jaxpr, Literal, Var, inner_jaxprs
from functorch_like.primitives.base.shapes import broadcast_in_dim
from functorch_like.primitives.collectives.exchange import all_gather
from functorch_like.primitives.collectives.reduce_over_axis import pmax, pmin, psum
from functorch_like.primitives.collectives.shared_values import divide_where_same, sum_where_same
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
#: Those whose results count as one value where a gradient is taken. As in JAX, gathered values are each device's own.
_REDUCING = frozenset((psum, pmax, pmin))
_EXTREMES = frozenset((pmax, pmin))


def varying(
    jaxpr: Jaxpr, ins: Sequence[Axes], around: Axes = NONE, unifying: frozenset[Primitive] = _UNIFYING
) -> list[Axes]:
    """Return the axes along which each result may differ.

    Args:
        jaxpr: the function on parts.
        ins: the axes along which its inputs may differ.
        around: axes along which devices may differ in whether they run the function.
        unifying: the collectives whose results are the same along their axis.
    """
    return _propagate(jaxpr, ins, around, unifying, lambda e, of: None)


def _propagate(
    jaxpr: Jaxpr,
    ins: Sequence[Axes],
    around: Axes,
    unifying: frozenset[Primitive],
    see: Callable[[Equation, list[Axes]], None],
) -> Any:
    axes_of: dict[Any, Axes] = dict(zip(jaxpr.inputs, ins, strict=True))
    of = lambda atom: axes_of[atom] if type(atom) is Var else NONE
    for e in jaxpr.equations:
        operands = [of(a) for a in e.inputs]
        see(e, operands)
        for v, axes in zip(e.outputs, _of_results(e, operands, around, unifying), strict=True):
            axes_of[v] = axes | around
    return [of(a) | around for a in jaxpr.outputs]


def _of_results(e: Equation, ins: list[Axes], around: Axes, unifying: frozenset[Primitive]) -> list[Axes]:
    rule = _RULES.get(e.prim)
    if rule is not None:
        return rule(e, ins, around, unifying)
    union = NONE.union(*ins)
    name = e.params.get("axis_name")
    if name is not None:
        after = union - {name} if e.prim in unifying else union | {name}
        return [after] * len(e.outputs)
    inner = list(inner_jaxprs(e.params))
    if not inner:
        return [union] * len(e.outputs)
    (first, *others) = inner
    if not others and len(first.inputs) == len(ins) and len(first.outputs) == len(e.outputs):
        return varying(first, ins, around, unifying)  # it is applied once, to the operands
    return [union.union(*(_made_in(each, unifying) for each in inner))] * len(e.outputs)


def _made_in(jaxpr: Jaxpr, unifying: frozenset[Primitive]) -> Axes:
    """The axes along which something in a jaxpr differs though its inputs do not."""
    axes: set[str] = set()
    for e in jaxpr.equations:
        name = e.params.get("axis_name")
        if name is not None and e.prim not in unifying:
            axes.add(name)
        for inner in inner_jaxprs(e.params):
            axes |= _made_in(inner, unifying)
    return frozenset(axes)


def _fixed_point(step: Callable[[list[Axes]], list[Axes]], start: list[Axes]) -> list[Axes]:
    while True:
        after = [a | b for a, b in zip(start, step(start), strict=True)]
        if after == start:
            return start
        start = after


def _scan(e: Equation, ins: list[Axes], around: Axes, unifying: frozenset[Primitive]) -> list[Axes]:
    jaxpr, consts, carries = e.params["jaxpr"], e.params["num_consts"], e.params["num_carry"]
    fixed, slices = ins[:consts], ins[consts + carries :]
    run = lambda carry: varying(jaxpr, [*fixed, *carry, *slices], around, unifying)
    carry = _fixed_point(lambda c: run(c)[:carries], ins[consts : consts + carries])
    return [*carry, *run(carry)[carries:]]


def _while(e: Equation, ins: list[Axes], around: Axes, unifying: frozenset[Primitive]) -> list[Axes]:
    test, body = e.params["cond_jaxpr"], e.params["body_jaxpr"]
    first, second = e.params["cond_nconsts"], e.params["body_nconsts"]
    of_test, of_body, start = ins[:first], ins[first : first + second], ins[first + second :]

    def step(carry: list[Axes]) -> list[Axes]:
        (runs,) = varying(test, [*of_test, *carry], around, unifying)
        return varying(body, [*of_body, *carry], around | runs, unifying)

    return _fixed_point(step, start)


def _cond(e: Equation, ins: list[Axes], around: Axes, unifying: frozenset[Primitive]) -> list[Axes]:
    index, *operands = ins
    each = [varying(branch, operands, around | index, unifying) for branch in e.params["branches"]]
    return [NONE.union(*axes) for axes in zip(*each, strict=True)]


def _divided(e: Equation, ins: list[Axes], around: Axes, unifying: frozenset[Primitive]) -> list[Axes]:
    return [ins[0]]


def _summed(e: Equation, ins: list[Axes], around: Axes, unifying: frozenset[Primitive]) -> list[Axes]:
    return [ins[0] - (frozenset(e.params["axes"]) - ins[1])]


def _custom(e: Equation, ins: list[Axes], around: Axes, unifying: frozenset[Primitive]) -> list[Axes]:
    return varying(e.params["fun"], ins, around, unifying)


_RULES: dict[Primitive, Callable[..., list[Axes]]] = {
    scan: _scan,
    while_: _while,
    cond: _cond,
    custom_jvp_call: _custom,
    custom_vjp_call: _custom,
    divide_where_same: _divided,
    sum_where_same: _summed,
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

    _propagate(jaxpr, ins, NONE, _UNIFYING, see)
    if not needless:
        return jaxpr

    def write(e: Equation, inputs: list[Any]) -> tuple[list[Equation], Any]:
        name = needless.get(id(e))
        if name is None:
            return [Equation(e.prim, inputs, e.params, e.outputs, e.source)], None
        if e.prim in _EXTREMES:
            return [], inputs[0]
        return _product(inputs[0], sizes[name], e, e.outputs), None

    return _rewritten(jaxpr, write)


def _rewritten(jaxpr: Jaxpr, write: Callable[[Equation, list[Any]], tuple[list[Equation], Any]]) -> Jaxpr:
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


def _product(x: Any, factor: float, e: Equation, outputs: Sequence[Var]) -> list[Equation]:
    aval = x.aval.strong()
    scalar = aval.update(shape=())
    everywhere = Var(aval)
    full = {"shape": aval.shape, "broadcast_dimensions": ()}
    return [
        Equation(broadcast_in_dim, [Literal(np.asarray(factor, aval.dtype), scalar)], full, [everywhere], e.source),
        Equation(mul, [x, everywhere], {}, outputs, e.source),
    ]


# ------------------------------------------------------------------------------------------ placeholders of cotangents
_PLACEHOLDERS = frozenset((divide_where_same, sum_where_same))


def resolved(jaxpr: Jaxpr, ins: Sequence[Axes], sizes: Mapping[str, int], around: Axes = NONE) -> Jaxpr:
    """Return the jaxpr with sums and divisions in the place of `sum_where_same` and `divide_where_same`.

    Args:
        jaxpr: the function on parts.
        ins: the axes along which its inputs may differ.
        sizes: of the axes.
        around: axes along which devices may differ in whether they run the function.

    Raises:
        UnsupportedError: for a placeholder in a primitive whose inner functions are applied in an unknown way.
    """
    if not _waits(jaxpr):
        return jaxpr
    operands_of: dict[int, list[Axes]] = {}
    _propagate(jaxpr, ins, around, _REDUCING, lambda e, axes: operands_of.__setitem__(id(e), axes))

    def write(e: Equation, inputs: list[Any]) -> tuple[list[Equation], Any]:
        axes = operands_of[id(e)]
        if e.prim not in _PLACEHOLDERS:
            waits = any(map(_waits, inner_jaxprs(e.params)))
            params = _with_resolved(e, axes, sizes, around) if waits else e.params
            return [Equation(e.prim, inputs, params, e.outputs, e.source)], None
        of_ct, of_value = axes
        divides = e.prim is divide_where_same
        # A cotangent that differs though its value does not is each device's own part of a sum.
        whole = of_value | of_ct if divides else of_value
        names = [name for name in e.params["axes"] if name not in whole and sizes[name] > 1]
        made = _divisions(inputs[0], names, sizes, e) if divides else _sums(inputs[0], names, e)
        return made, made[-1].outputs[0] if made else inputs[0]

    return _rewritten(jaxpr, write)


def _waits(jaxpr: Jaxpr) -> bool:
    """Return True if a placeholder is in a jaxpr, or in one that it calls."""
    return jaxpr.memo(
        "has placeholders",
        lambda: any(e.prim in _PLACEHOLDERS or any(map(_waits, inner_jaxprs(e.params))) for e in jaxpr.equations),
    )


def _sums(x: Any, names: Sequence[str], e: Equation) -> list[Equation]:
    made: list[Equation] = []
    for name in names:
        made.append(Equation(psum, [x], {"axis_name": name}, [Var(x.aval.strong())], e.source))
        x = made[-1].outputs[0]
    return made


def _divisions(x: Any, names: Sequence[str], sizes: Mapping[str, int], e: Equation) -> list[Equation]:
    count = math.prod(sizes[name] for name in names)
    return _product(x, 1 / count, e, [Var(x.aval.strong())]) if count > 1 else []


def _with_resolved(e: Equation, ins: list[Axes], sizes: Mapping[str, int], around: Axes) -> dict[str, Any]:
    """Return the parameters of an equation, with no placeholders in its inner jaxprs."""
    params = dict(e.params)
    if e.prim is scan:
        jaxpr, consts, carries = params["jaxpr"], params["num_consts"], params["num_carry"]
        carry = _scan(e, ins, around, _REDUCING)[:carries]
        params["jaxpr"] = resolved(jaxpr, [*ins[:consts], *carry, *ins[consts + carries :]], sizes, around)
    elif e.prim is while_:
        first, second = params["cond_nconsts"], params["body_nconsts"]
        of_test, of_body = ins[:first], ins[first : first + second]
        carry = _while(e, ins, around, _REDUCING)
        (runs,) = varying(params["cond_jaxpr"], [*of_test, *carry], around, _REDUCING)
        params["cond_jaxpr"] = resolved(params["cond_jaxpr"], [*of_test, *carry], sizes, around)
        params["body_jaxpr"] = resolved(params["body_jaxpr"], [*of_body, *carry], sizes, around | runs)
    elif e.prim is cond:
        index, *operands = ins
        branches = [resolved(branch, operands, sizes, around | index) for branch in params["branches"]]
        params["branches"] = type(params["branches"])(branches)
    else:
        names = [name for name, value in params.items() if isinstance(value, Jaxpr)]
        inner = list(inner_jaxprs(params))
        applied = [name for name in names if len(params[name].inputs) == len(ins)]
        if len(inner) != 1 or len(applied) != 1:
            raise UnsupportedError(
                f"{e.prim} applies functions that take gradients, inside of shard_map with check_vma=True",
                fix="give shard_map check_vma=False, and reduce gradients by lax.psum or lax.pmean",
            )
        params[applied[0]] = resolved(params[applied[0]], ins, sizes, around)
    return params
