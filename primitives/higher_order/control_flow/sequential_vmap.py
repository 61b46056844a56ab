"""Batch rule of primitives with effects, where elements take different branches: one element after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functorch_like import core
from functorch_like.avals import ShapedArray
from functorch_like.core import BatchAxis
from functorch_like.ir.jaxpr import Jaxpr
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives import structural
from functorch_like.primitives.higher_order.control_flow.scan import scan

#: Name of the steps of such a scan, so that messages name elements.
NAME = "in_turn"


def sequential_vmap(
    axis: BatchAxis,
    args: Sequence[Any],
    dims: Sequence[int | None],
    apply: Callable[..., list[Any]],
    avals: Sequence[ShapedArray],
    kept: Callable[[tuple[Any, ...], Callable[[], Jaxpr]], Jaxpr],
) -> tuple[list[Any], list[int | None]]:
    """Apply a primitive to one element after the other, so that each element has its own effects only.

    Args:
        axis: the batch.
        args: operands.
        dims: the position of the axis in each operand; None where it has none.
        apply: applies the primitive to the operands of one element.
        avals: avals of the operands of one element.
        kept: `(key, make) -> jaxpr`: returns the jaxpr kept under a key, or makes it.
    """
    mapped = [d is not None for d in dims]

    def make() -> Jaxpr:
        order = [k for k, m in enumerate(mapped) if not m] + [k for k, m in enumerate(mapped) if m]

        def step(*operands: Any) -> list[Any]:
            values = dict(zip(order, operands, strict=True))
            return apply(*(values[k] for k in range(len(avals))))

        return stage(step, [avals[k] for k in order], name=NAME, parent=core.EVALUATE, chain="")[0]

    body = kept(("in turn", *mapped), make)
    consts = [x for x, d in zip(args, dims, strict=True) if d is None]
    slices = [structural.move(x, d, 0) for x, d in zip(args, dims, strict=True) if d is not None]
    outs = scan(
        *consts, *slices, jaxpr=body, num_consts=len(consts), num_carry=0, length=axis.size, reverse=False, unroll=1
    )
    return list(outs), [0] * len(outs)
