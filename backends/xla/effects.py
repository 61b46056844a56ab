"""Calls of Python functions, methods of the emitter; and the token that keeps effects of programs in order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from functorch_like.avals import ShapedArray
from functorch_like.backends.xla import callbacks, host_kernels, mlir

#: Aval of the token that ordered effects pass on. It is an ordinary array, and loops and branches carry it as one.
TOKEN = ShapedArray((), np.dtype(bool))


class Effects:
    """Emits the effects of a program, besides computing results."""

    __slots__ = ()

    def callback(
        self: Any,
        fun: Callable[..., Sequence[Any]],
        operands: Sequence[Any],
        out_avals: Sequence[ShapedArray],
        effects: Collection[str] = (),
    ) -> list[Any]:
        """Call a Python function of NumPy arrays, when the program runs.

        Args:
            fun: takes an array for each operand, returns a value for each of `out_avals`.
            operands: its operands.
            out_avals: avals of its results.
            effects: "ordered": it runs after all earlier ordered calls. "unordered": it runs even if its results are
                not used. Neither: it may be left out.
        """
        self.forbid_template()
        attrs = {
            "call_target_name": mlir.string(callbacks.target(self.platform)),
            "api_version": mlir.integer(4, 32),
            "backend_config": mlir.parsed(f"{{index = {len(self.host_calls)} : ui64}}"),
            "has_side_effect": mlir.flags[bool(effects)],
        }
        if self.partitioning is not None and self.manual is None:  # whole values are handed over once
            operands = [self.replicated(x) for x in operands]
            attrs["sdy.sharding"] = self.on_first_device(max(len(out_avals) + ("ordered" in effects), 1))
        ordered = "ordered" in effects
        self.host_calls.append(callbacks.HostCall(fun, out_avals, ordered, pure=not effects))
        token = [TOKEN] if ordered else []
        inputs = [*operands, self.token] if ordered else operands
        attrs |= self.row_major(inputs, [*out_avals, *token])
        made = self.op("stablehlo.custom_call", inputs, [*out_avals, *token], attrs)
        outs = made if isinstance(made, list) else [made]
        if ordered:
            *outs, self.token = outs
        return outs

    def ordered_rows(self: Any, x: Any, aval: ShapedArray, place: Any = None) -> Any:
        """Return integers sorted along the last dimension by NumPy, in the memory of x if nothing else reads it.

        With a place, an int32, rows are only partitioned: the elements at the place and after it are the sorted ones.
        """
        self.forbid_template()
        kernel = host_kernels.order_rows
        if kernel not in self.host_calls:
            self.host_calls.append(kernel)
        attrs = {
            "call_target_name": mlir.string(host_kernels.TARGET),
            "api_version": mlir.integer(4, 32),
            "backend_config": mlir.parsed(f"{{index = {self.host_calls.index(kernel)} : ui64}}"),
            "has_side_effect": mlir.flags[False],
            "output_operand_aliases": mlir.parsed(
                "[#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, "
                "operand_tuple_indices = []>]"
            ),
        }
        return self.op("stablehlo.custom_call", [x] if place is None else [x, place], [aval], attrs)
