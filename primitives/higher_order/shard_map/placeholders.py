"""Sums and divisions of cotangents in the place of their placeholders.

Where a gradient is taken inside of `shard_map`, it is not known yet along which axes a value is the same on all
devices. The placeholders of `collectives/shared_values.py` are resolved when the whole function is a jaxpr.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from functorch_like.errors import UnsupportedError
from functorch_like.ir.jaxpr import Equation, Jaxpr, Var, inner_jaxprs, with_inner_jaxprs
from functorch_like.primitives.collectives.reduce_over_axis import psum
from functorch_like.primitives.collectives.shared_values import divide_where_same, sum_where_same
from functorch_like.primitives.higher_order.shard_map.replication import NONE, REDUCING, Axes, of_results, varying
from functorch_like.primitives.higher_order.shard_map.rewriting import product, rewritten

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
    key = "resolved", tuple(ins), tuple(sizes.items()), around
    return jaxpr.memo(key, lambda: _resolved(jaxpr, ins, sizes, around))


def _resolved(jaxpr: Jaxpr, ins: Sequence[Axes], sizes: Mapping[str, int], around: Axes) -> Jaxpr:
    operands_of: dict[int, list[Axes]] = {}
    varying(jaxpr, ins, around, REDUCING, lambda e, axes: operands_of.__setitem__(id(e), axes))

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

    return rewritten(jaxpr, write)


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
    return product(x, 1 / count, e, [Var(x.aval.strong())]) if count > 1 else []


def _with_resolved(e: Equation, ins: list[Axes], sizes: Mapping[str, int], around: Axes) -> dict[str, Any]:
    """Return the parameters of an equation, with no placeholders in the functions that it applies."""
    applied: dict[int, tuple[Sequence[Axes], Axes]] = {}

    def apply(jaxpr: Jaxpr, of_inputs: Sequence[Axes], within: Axes) -> list[Axes]:
        applied[id(jaxpr)] = of_inputs, within
        return varying(jaxpr, of_inputs, within, REDUCING)

    of_results(e, ins, around, REDUCING, apply)

    def of_function(jaxpr: Jaxpr) -> Jaxpr:
        if not _waits(jaxpr):
            return jaxpr
        if id(jaxpr) not in applied:
            raise UnsupportedError(
                f"{e.prim} applies functions that take gradients, inside of shard_map with check_vma=True",
                fix="give shard_map check_vma=False, and reduce gradients by lax.psum or lax.pmean",
            )
        of_inputs, within = applied[id(jaxpr)]
        return resolved(jaxpr, of_inputs, sizes, within)

    return with_inner_jaxprs(e.params, of_function)
