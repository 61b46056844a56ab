"""Sums and extremes over axes along which all devices have the same value: they need no communication."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from functorch_like.ir.jaxpr import Equation, Jaxpr
from functorch_like.primitives.collectives.reduce_over_axis import pmax, pmin, psum
from functorch_like.primitives.higher_order.shard_map.replication import NONE, Axes, varying
from functorch_like.primitives.higher_order.shard_map.rewriting import product, rewritten

_EXTREMES = frozenset((pmax, pmin))


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

    varying(jaxpr, ins, see=see)
    if not needless:
        return jaxpr

    def write(e: Equation, inputs: list[Any]) -> tuple[list[Equation], Any]:
        name = needless.get(id(e))
        if name is None:
            return [Equation(e.prim, inputs, e.params, e.outputs, e.source)], None
        if e.prim in _EXTREMES:
            return [], inputs[0]
        return product(inputs[0], sizes[name], e, e.outputs), None

    return rewritten(jaxpr, write)
