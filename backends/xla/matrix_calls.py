"""Custom calls of routines of linear algebra, on stacks of matrices.

TRAP: LAPACK and its like take matrices column by column; a wrong layout gives wrong numbers and no error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from functorch_like.avals import ShapedArray


def matrix_call(
    e: Any,
    target: str,
    operands: Sequence[Any],
    in_avals: Sequence[ShapedArray],
    out_avals: Sequence[ShapedArray],
    *,
    lead: int,
    attrs: Mapping[str, str],
    aliases: Sequence[tuple[int, int]] = (),
) -> list[Any]:
    """Emit a call for a stack of matrices.

    Args:
        e: the emitter.
        target: the name under which the kernel is registered.
        operands, in_avals: its operands, and their avals.
        out_avals: avals of its results, status codes included.
        lead: number of leading dimensions of a stack; operands and results with two more dimensions are matrices.
        attrs: attributes, as MLIR writes them.
        aliases: operands that may be overwritten, each with the result that takes its place.
    """
    fields = {
        "call_target_name": e.string(target),
        "api_version": e.i32(4),
        "backend_config": e.attr("{" + ", ".join(f"{key} = {value}" for key, value in attrs.items()) + "}"),
        "has_side_effect": e.flag(False),
        "operand_layouts": e.layouts([_order(aval.ndim, lead) for aval in in_avals]),
        "result_layouts": e.layouts([_order(aval.ndim, lead) for aval in out_avals]),
    }
    if aliases:
        texts = (
            f"#stablehlo.output_operand_alias<output_tuple_indices = [{'' if len(out_avals) == 1 else result}], "
            f"operand_index = {operand}, operand_tuple_indices = []>"
            for operand, result in aliases
        )
        fields["output_operand_aliases"] = e.attr(f"[{', '.join(texts)}]")
    outs = e.op("stablehlo.custom_call", list(operands), list(out_avals), fields)
    return [outs] if len(out_avals) == 1 else outs


def _order(ndim: int, lead: int) -> list[int]:
    """The dimensions of an array, from the fastest varying to the slowest: matrices column by column."""
    by_rows = list(range(ndim))[::-1]
    return [by_rows[1], by_rows[0], *by_rows[2:]] if ndim == lead + 2 else by_rows
