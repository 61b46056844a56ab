"""Calls inside of lowering rules, of Python, of kernels and of other rules, under names of `jax.interpreters.mlir`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from functorch_like.backends.xla import mlir_rules
from functorch_like.backends.xla.mlir import ir
from functorch_like.errors import ArgumentError, UnsupportedError
from functorch_like.jax_alias.modules.ir_values import flatten_ir_values, i32_attr, ir_attribute
from functorch_like.jax_alias.modules.lowering_contexts import LoweringRuleContext
from functorch_like.primitives.effects.callbacks import Host


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
        return e.callback(host, flatten_ir_values(operands), list(result_avals), effects), None, host


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
    return ir.Operation.create("stablehlo.custom_call", list(result_types), flatten_ir_values(operands), attributes)


def _layouts(layouts: Sequence[Sequence[int]]) -> ir.Attribute:
    text = lambda order: f"dense<[{', '.join(str(int(d)) for d in order)}]> : tensor<{len(order)}xindex>"
    return ir.ArrayAttr.get(
        [ir.Attribute.parse(text(tuple(order)) if len(order) else "dense<> : tensor<0xindex>") for order in layouts]
    )


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
                return flatten_ir_values(rule(ctx, *values, **params))

        name = getattr(ctx.primitive, "name", "rule")
        symbol = e.function(key, name, list(ctx.avals_in), list(ctx.avals_out), body)
        with mlir_rules.at_current_point(e):
            return e.call(symbol, flatten_ir_values(args), list(ctx.avals_out))

    return cached
