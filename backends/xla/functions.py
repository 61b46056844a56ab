"""Functions of a module, as methods of the emitter: they are lowered once and called in many places."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from jaxlib.mlir import ir

from functorch_like.avals import ShapedArray
from functorch_like.backends.xla import mlir

Value = Any
Body = Callable[..., Sequence[Value]]

_create = ir.Operation.create
_types = mlir.types


class Functions:
    """Writes functions and calls of them."""

    __slots__ = ()

    def function(
        self: Any, key: Any, name: str, in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], body: Body
    ) -> str:
        """The symbol of a private function, lowered once for each key in a module."""
        if self.manual is not None:
            key = (key, self.manual)  # collectives inside of it depend on the mesh
        symbol = self._functions.get(key)
        if symbol is None:
            symbol = self._functions[key] = self.define(name, in_avals, body, "private", out_avals)
        return symbol

    def adopt(self: Any, key: Any, module: ir.Module, name: str) -> str:
        """The symbol of another module's `main`, whose functions are copied into this one, once for each key."""
        symbol = self._functions.get(key)
        if symbol is not None:
            return symbol
        renamed: dict[str, str] = {}
        functions: list[Any] = []
        for made in list(module.body.operations):
            old = ir.StringAttr(made.attributes["sym_name"]).value
            if made.operation.name == "sdy.mesh":
                renamed[old] = self.mesh_of(made.attributes["mesh"])
                continue
            functions.append(made)
            for attribute in ("arg_attrs", "res_attrs"):  # shardings, which hold at the borders of programs alone
                if attribute in made.attributes:
                    del made.attributes[attribute]
            renamed[old] = self._unique(name if old == "main" else f"{name}_{old}")
        # Through temporary names, because a new name may be another symbol's old one.
        for old, new in renamed.items():
            ir.SymbolTable.replace_all_symbol_uses(old, f"{new}.moved", module.operation)
        for new in renamed.values():
            ir.SymbolTable.replace_all_symbol_uses(f"{new}.moved", new, module.operation)
        for made in functions:
            ir.SymbolTable.set_symbol_name(made, renamed[ir.StringAttr(made.attributes["sym_name"]).value])
            ir.SymbolTable.set_visibility(made, "private")
        symbol = renamed["main"]
        for made in functions:
            made.operation.clone(ip=self._end)
        self._functions[key] = symbol
        return symbol

    def call(
        self: Any,
        symbol: str,
        operands: Iterable[Value],
        out_avals: Sequence[ShapedArray],
        inline: bool = True,
        one_kernel: bool = False,
    ) -> list[Value]:
        """Call a function of this module.

        Args:
            symbol: the function.
            operands: its arguments.
            out_avals: of its results.
            inline: True to let XLA put its body in place, and fuse across its border.
            one_kernel: True to compile it as one kernel, which is not put in place.
        """
        self.forbid_template()
        attrs: dict[str, Any] = {"callee": ir.FlatSymbolRefAttr.get(symbol, mlir.context)}
        if one_kernel or not inline:
            attrs["mhlo.frontend_attributes"] = mlir.one_kernel if one_kernel else mlir.apart
        results = [_types[aval] for aval in out_avals]
        return list(_create("func.call", results, list(operands), attrs, None, 0, self.place, self._ip).results)

    def materialized(self: Any, x: Value, aval: ShapedArray) -> Value:
        """Return the value, computed once and kept in memory.

        XLA recomputes cheap operands in each loop that reads them. In each of these loops LLVM may contract other
        products and sums into fused multiply-adds, so that `x == max(x)` may hold nowhere.
        """
        if aval.dtype.kind in "iub" or not aval.size or self._is_argument(x):
            return x
        if self.platform != "cpu":
            return self.op("stablehlo.optimization_barrier", [x], [aval])
        # XLA:CPU drops barriers before it fuses, and fuses nothing into a function that it may not inline.
        symbol = self.function(("materialized", aval), "materialized", [aval], [aval], lambda inner, y: [y])
        return self.call(symbol, [x], [aval], inline=False)[0]

    def _is_argument(self: Any, x: Value) -> bool:
        """Return True for an argument of the program."""
        self.forbid_template()
        if not isinstance(x.owner, ir.Block):
            return False
        attributes = x.owner.owner.attributes  # of a function; those of a loop or a branch have no name
        return "sym_name" in attributes and attributes["sym_name"] == mlir.string("main")

    def _unique(self: Any, name: str) -> str:
        """A symbol that no function has yet."""
        symbol = base = identifier(name)
        while symbol in self._symbols:
            symbol = f"{base}_{len(self._symbols)}"
        self._symbols.add(symbol)
        return symbol

    def define(
        self: Any,
        name: str,
        in_avals: Sequence[ShapedArray],
        body: Body,
        visibility: str,
        out_avals: Sequence[ShapedArray] | None = None,
        arguments: Any = None,
        results: Any = None,
    ) -> str:
        symbol = self._unique(name)
        attrs = {
            "sym_name": mlir.string(symbol),
            "sym_visibility": mlir.string(visibility),
            "function_type": mlir.signature(tuple(in_avals), tuple(out_avals or ())),
        }
        if arguments is not None:
            attrs["arg_attrs"] = arguments
        if results is not None:
            attrs["res_attrs"] = results
        made = _create("func.func", [], [], attrs, None, 1, self.place, self._end)
        outs = self._fill(made.regions[0], in_avals, body, "func.return")
        if out_avals is None:
            types = [_types[aval] for aval in in_avals], [out.type for out in outs]
            made.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*types, mlir.context))
        return symbol


@functools.lru_cache(1024)
def identifier(name: str) -> str:
    """Return a name as a symbol of MLIR, for which it needs no quotes."""
    return re.sub(r"\W", "_", name, flags=re.ASCII) or "f"
