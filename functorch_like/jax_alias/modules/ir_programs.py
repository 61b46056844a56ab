"""Programs and functions inside of lowering rules, and modules, under names of `jax.interpreters.mlir`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from functorch_like.backends.xla import mlir, mlir_rules
from functorch_like.backends.xla.mlir import ir
from functorch_like.compiler import lower as compiler
from functorch_like.errors import UnsupportedError
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.jax_alias.modules.ir_values import aval_to_ir_type, flatten_ir_values
from functorch_like.jax_alias.modules.lowering_contexts import (
    LoweringRuleContext,
    ModuleContext,
    ShapePolyLoweringState,
    TokenSet,
)
from functorch_like.jax_alias.modules.lowering_rules import Lowering
from functorch_like.jax_alias.modules.programs import ClosedJaxpr, Jaxpr, eval_jaxpr


# ----------------------------------------------------------------------------------------------------------- programs
def jaxpr_subcomp(
    ctx: ModuleContext, jaxpr: Jaxpr, name_stack: Any, tokens: TokenSet, consts_for_constvars: Sequence[Any],
    *args: Any, dim_var_values: Any = (), const_lowering: Any = None, outer_traceback: Any = None,
) -> tuple[list[Any], TokenSet]:  # fmt: skip
    """Write the equations of a program.

    Args:
        ctx: context of the module.
        jaxpr: the program.
        name_stack, dim_var_values, const_lowering, outer_traceback: have no effect.
        tokens: tokens of ordered effects; they are returned.
        consts_for_constvars: values of MLIR for the program's constants.
        args: values of MLIR for its arguments.

    Returns:
        The values of its results, and the tokens.
    """
    count = len(jaxpr.constvars)
    fun = Lowering(lambda *values: eval_jaxpr(jaxpr, values[:count], *values[count:]))
    avals = [v.aval for v in [*jaxpr.constvars, *jaxpr.invars]]
    values = fun(_context(ctx, avals, jaxpr.out_avals), *mlir_rules.values_in((consts_for_constvars, args)))
    return values, tokens


def _context(ctx: ModuleContext, ins: Sequence[Any], outs: Sequence[Any]) -> LoweringRuleContext:
    return LoweringRuleContext(ctx, None, tuple(ins), list(outs))


def _closed(jaxpr: ClosedJaxpr | Jaxpr) -> ClosedJaxpr:
    return jaxpr if isinstance(jaxpr, ClosedJaxpr) else ClosedJaxpr(jaxpr, [])


def _as_function(closed: ClosedJaxpr) -> Callable[..., list[Any]]:
    return lambda *args: eval_jaxpr(closed.jaxpr, closed.consts, *args)


def lower_jaxpr_to_fun(
    ctx: ModuleContext, name: str, jaxpr: ClosedJaxpr, effects: Sequence[Any] = (), **options: Any
) -> Any:
    """Write a program as a private function of the module; return the function.

    Args:
        ctx: context of the module.
        name: name of the function, to which a number is added if another one has it.
        jaxpr: the program.
        effects: must be empty: ordered effects of libraries are not recorded.
        options: of JAX; those that describe shardings, donation and names have no effect.

    Returns:
        The `func.FuncOp`.

    Raises:
        UnsupportedError: for effects.
    """
    if effects:
        raise UnsupportedError("lower_jaxpr_to_fun takes no ordered effects here", fix="pass effects=[]")
    e, closed = ctx.emitter, _closed(jaxpr)
    lowering = Lowering(_as_function(closed))
    ctx.settle()

    def body(inner: Any, *values: Any) -> list[Any]:
        with inner._ip:
            return lowering(_context(ctx, closed.in_avals, closed.out_avals), *values)

    symbol = e.define(name, closed.in_avals, body, "private", closed.out_avals)
    return ir.SymbolTable(e._module.operation)[symbol]


def core_call_lowering(
    ctx: LoweringRuleContext, *args: Any, name: str, backend: Any = None, call_jaxpr: ClosedJaxpr | Jaxpr
) -> list[Any]:
    """Write a program as a function, and a call of it; return the values of the call."""
    function = lower_jaxpr_to_fun(ctx.module_context, name, _closed(call_jaxpr))
    symbol = ir.StringAttr(function.operation.attributes["sym_name"]).value
    types = [aval_to_ir_type(aval) for aval in _closed(call_jaxpr).out_avals]
    callee: Any = ir.FlatSymbolRefAttr.get(symbol)
    call = ir.Operation.create("func.call", types, flatten_ir_values(args), {"callee": callee})
    return list(call.results)


class LoweringResult(NamedTuple):
    """A lowered program: its module, and what must live as long as it."""

    module: Any
    keepalive: Any
    host_callbacks: list[Any]
    shape_poly_state: ShapePolyLoweringState


def lower_jaxpr_to_module(
    module_name: str, jaxpr: ClosedJaxpr, *, platforms: Sequence[str] = ("cpu",), donated_args: Sequence[bool] = (),
    ordered_effects: Sequence[Any] = (), **options: Any,
) -> LoweringResult:  # fmt: skip
    """Return the module of a program for one platform and one device.

    Args:
        module_name: name of the module.
        jaxpr: the program. Its constants are constants of the module.
        platforms: one platform.
        donated_args: the arguments whose memory the results may take.
        ordered_effects: must be empty.
        options: of JAX; they have no effect.

    Returns:
        The module, with the Python functions that it calls.

    Raises:
        UnsupportedError: for several platforms, or ordered effects.
    """
    if len(platforms) != 1 or ordered_effects:
        raise UnsupportedError(
            "lower_jaxpr_to_module lowers for one platform, without ordered effects",
            fix="lower for each platform by itself",
        )
    closed = _closed(jaxpr)
    recorded, consts = stage(_as_function(closed), list(closed.in_avals), name=module_name)
    if consts:
        raise UnsupportedError(
            "lower_jaxpr_to_module: the program closes over arrays", fix="make them arguments of the program"
        )
    platform = "cpu" if platforms[0] == "cpu" else "gpu"
    lowered = compiler.lower(
        recorded, name=module_name, donated=list(donated_args) or None, keep_unused=True, platform=platform
    )
    calls: list[Any] = lowered._host_calls
    return LoweringResult(lowered.module, calls, calls, ShapePolyLoweringState())


# ------------------------------------------------------------------------------------------------------------ modules
def make_ir_context() -> ir.Context:
    """Return a new context of MLIR that has StableHLO, CHLO, Shardy and the dialects of jaxlib."""
    return mlir._make_context()


def module_to_string(module: ir.Module, enable_debug_info: bool | None = None) -> str:
    """Return the text of a module, with the locations of its operations if `enable_debug_info`."""
    return mlir.module_text(module, bool(enable_debug_info))


def module_to_bytecode(module: ir.Module) -> bytes:
    """Return a module in MLIR's binary form."""
    return mlir.bytecode(module)


def merge_mlir_modules(
    dst_module: ir.Module, sym_name: str, src_module: ir.Module, dst_symtab: ir.SymbolTable | None = None
) -> str:
    """Copy the functions of a module into another one as private functions, `main` under a name.

    Args:
        dst_module: the module that gets the functions.
        sym_name: name of `main` there; a number is added if it is taken.
        src_module: the other module; it is not changed.
        dst_symtab: symbol table of the first module.

    Returns:
        The name of `main` in the first module.
    """
    context = dst_module.context
    copied = ir.Module.parse(mlir.bytecode(src_module), context).operation
    table = ir.SymbolTable(dst_module.operation) if dst_symtab is None else dst_symtab
    taken = {ir.StringAttr(f.attributes["sym_name"]).value for f in dst_module.body.operations}
    functions: list[Any] = list(copied.regions[0].blocks[0].operations)
    names = [ir.StringAttr(f.attributes["sym_name"]).value for f in functions]
    result = sym_name
    for function, old in zip(functions, names, strict=True):
        base = new = sym_name if old == "main" else old
        while new in taken or (new != old and new in names):
            new = f"{base}_{len(taken)}"
        taken.add(new)
        ir.SymbolTable.replace_all_symbol_uses(old, new, copied)
        ir.SymbolTable.set_symbol_name(function, new)
        function.attributes["sym_visibility"] = ir.StringAttr.get("private", context)
        result = new if old == "main" else result
    for function in functions:
        table.insert(function.operation.clone(ip=ir.InsertionPoint(dst_module.body)))
    return result
