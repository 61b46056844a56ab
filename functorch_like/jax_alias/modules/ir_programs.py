"""Programs, functions and calls inside of lowering rules, under names of `jax.interpreters.mlir`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from functorch_like.backends.xla import mlir, mlir_rules
from functorch_like.backends.xla.mlir import ir
from functorch_like.compiler import lower as compiler
from functorch_like.errors import ArgumentError, UnsupportedError
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.jax_alias.modules.ir_values import (
    aval_to_ir_type,
    i32_attr,
    ir_attribute,
)
from functorch_like.jax_alias.modules.lowering_rules import (
    Lowering,
    LoweringRuleContext,
    ModuleContext,
    ShapePolyLoweringState,
    TokenSet,
)
from functorch_like.jax_alias.modules.programs import ClosedJaxpr, Jaxpr, eval_jaxpr
from functorch_like.primitives.effects.callbacks import Host


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

    symbol = e._define(name, closed.in_avals, body, "private", closed.out_avals)
    return ir.SymbolTable(e._module.operation)[symbol]


def core_call_lowering(
    ctx: LoweringRuleContext, *args: Any, name: str, backend: Any = None, call_jaxpr: ClosedJaxpr | Jaxpr
) -> list[Any]:
    """Write a program as a function, and a call of it; return the values of the call."""
    function = lower_jaxpr_to_fun(ctx.module_context, name, _closed(call_jaxpr))
    symbol = ir.StringAttr(function.operation.attributes["sym_name"]).value
    types = [aval_to_ir_type(aval) for aval in _closed(call_jaxpr).out_avals]
    callee: Any = ir.FlatSymbolRefAttr.get(symbol)
    call = ir.Operation.create("func.call", types, flat_values(args), {"callee": callee})
    return list(call.results)


def flat_values(values: Any) -> list[Any]:
    """Return the values in nested sequences of values."""
    return list(mlir_rules.values_in(values))


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


# -------------------------------------------------------------------------------------------------------------- calls
def emit_python_callback(
    ctx: LoweringRuleContext, callback: Callable[..., Sequence[Any]], token: Any, operands: Sequence[Any],
    operand_avals: Sequence[Any], result_avals: Sequence[Any], *, has_side_effect: bool = False,
    returns_token: bool = True, partitioned: bool = False, sharding: Any = None,
) -> tuple[list[Any], Any, Any]:  # fmt: skip
    """Write a call of a Python function, made when the program runs.

    Args:
        ctx: context of the rule.
        callback: takes a NumPy array for each operand, returns a sequence of values.
        token: must be None: ordered effects of libraries are not recorded.
        operands: values of MLIR.
        operand_avals, result_avals: avals of operands and results.
        has_side_effect: True to call it even if no result is used.
        returns_token, partitioned: must have their defaults.
        sharding: has no effect; on a mesh, the function is called once with whole arrays.

    Returns:
        The values of the results, None for the token, and an object that keeps the function alive.

    Raises:
        UnsupportedError: for a token, or `partitioned=True`.
    """
    if token is not None or partitioned:
        raise UnsupportedError(
            "emit_python_callback takes no token and no parts of arrays here",
            fix="use io_callback(ordered=True) for calls in order",
        )
    e = ctx.module_context.emitter
    host = Host(callback, getattr(callback, "__name__", "emit_python_callback"), result_avals)
    effects = ("unordered",) if has_side_effect else ()
    with mlir_rules.at_current_point(e):
        return e.callback(host, flat_values(operands), list(result_avals), effects), None, host


def custom_call(
    call_target_name: str, *, result_types: Sequence[Any], operands: Sequence[Any], backend_config: Any = None,
    has_side_effect: bool = False, result_shapes: Sequence[Any] | None = None,
    called_computations: Sequence[str] = (), api_version: int = 2,
    operand_output_aliases: Mapping[int, int] | None = None, operand_layouts: Sequence[Any] | None = None,
    result_layouts: Sequence[Any] | None = None, extra_attributes: Mapping[str, Any] | None = None,
) -> ir.Operation:  # fmt: skip
    """Write a `stablehlo.custom_call`.

    Args:
        call_target_name: the name under which the function is registered.
        result_types: types of the results.
        operands: values of MLIR.
        backend_config: attributes by name for a function of the typed FFI (api_version 4); text for others.
        has_side_effect: True for a call that is made even if no result is used.
        result_shapes: must be None, since sizes are static.
        called_computations: names of functions of the module.
        api_version: 4 for the typed FFI.
        operand_output_aliases: operands whose memory a result takes: position of each, and of the result.
        operand_layouts, result_layouts: dimensions of each array, the one whose elements are neighbours first.
        extra_attributes: further attributes by name.

    Returns:
        The operation.

    Raises:
        UnsupportedError: for `result_shapes`.
        ArgumentError: for a backend_config of the wrong type.
    """
    if result_shapes is not None:
        raise UnsupportedError("custom_call: sizes of results are static here", fix="leave out result_shapes")
    attributes: dict[str, Any] = {
        "call_target_name": ir.StringAttr.get(call_target_name),
        "has_side_effect": ir.BoolAttr.get(has_side_effect),
        "api_version": i32_attr(api_version),
        "called_computations": ir.ArrayAttr.get([ir.FlatSymbolRefAttr.get(name) for name in called_computations]),  # pyright: ignore
    }
    typed = isinstance(backend_config, Mapping)
    if api_version == 4:
        if backend_config is not None and not typed:
            raise ArgumentError(
                f"custom_call: backend_config of api_version 4 is a dictionary, not {backend_config!r:.60}",
                fix="give attributes by name",
            )
        attributes["backend_config"] = ir_attribute(backend_config or {})
    elif typed:
        attributes["backend_config"] = ir.StringAttr.get("")
        attributes["mhlo.backend_config"] = ir_attribute(backend_config)
    else:
        attributes["backend_config"] = ir_attribute(backend_config or "")
    if operand_output_aliases:
        single = len(result_types) == 1
        attributes["output_operand_aliases"] = ir.ArrayAttr.get(
            [
                ir.Attribute.parse(
                    f"#stablehlo.output_operand_alias<output_tuple_indices = [{'' if single else out}], "
                    f"operand_index = {operand}, operand_tuple_indices = []>"
                )
                for operand, out in operand_output_aliases.items()
            ]
        )
    if operand_layouts is not None:
        attributes["operand_layouts"] = _layouts(operand_layouts)
    if result_layouts is not None:
        attributes["result_layouts"] = _layouts(result_layouts)
    attributes.update(extra_attributes or {})
    return ir.Operation.create("stablehlo.custom_call", list(result_types), flat_values(operands), attributes)


def _layouts(layouts: Sequence[Sequence[int]]) -> ir.Attribute:
    text = lambda order: f"dense<[{', '.join(str(int(d)) for d in order)}]> : tensor<{len(order)}xindex>"
    return ir.ArrayAttr.get(
        [ir.Attribute.parse(text(tuple(order)) if len(order) else "dense<> : tensor<0xindex>") for order in layouts]
    )


# -------------------------------------------------------------------------------------------------------------- rules
def delegate_lowering(ctx: LoweringRuleContext, lowering_rule: Callable[..., Any], *args: Any, **overrides: Any) -> Any:
    """Apply another lowering rule, with some attributes of the context changed."""
    return lowering_rule(ctx.replace(**overrides), *args)


def cache_lowering(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rule whose operations are written once for equal avals and parameters, as a function that is called.

    The rule is applied in place where its parameters have no hash.
    """

    def cached(ctx: LoweringRuleContext, *args: Any, **params: Any) -> Any:
        e = ctx.module_context.emitter
        key = rule, tuple(ctx.avals_in), tuple(ctx.avals_out), tuple(sorted(params.items(), key=lambda p: p[0]))
        try:
            hash(key)
        except TypeError:
            return rule(ctx, *args, **params)

        def body(inner: Any, *values: Any) -> list[Any]:
            with inner._ip:
                return flat_values(rule(ctx, *values, **params))

        name = getattr(ctx.primitive, "name", "rule")
        symbol = e.function(key, name, list(ctx.avals_in), list(ctx.avals_out), body)
        with mlir_rules.at_current_point(e):
            return e.call(symbol, flat_values(args), list(ctx.avals_out))

    return cached
