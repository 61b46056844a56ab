"""Lowering rules that call a function of XLA's typed FFI: `jax.ffi.ffi_lowering`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from functorch_like.backends.xla.mlir import ir
from functorch_like.errors import ArgumentError
from functorch_like.jax_alias.modules.ir_calls import custom_call
from functorch_like.jax_alias.modules.ir_values import aval_to_ir_types, flatten_ir_values, ir_attribute
from functorch_like.jax_alias.modules.lowering_contexts import LoweringRuleContext


def build_ffi_lowering_function(
    call_target_name: str, *, operand_layouts: Sequence[Any] | None = None, result_layouts: Sequence[Any] | None = None,
    backend_config: Mapping[str, Any] | str | None = None, skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., ir.Operation]:  # fmt: skip
    """Return a function that writes a call of a registered kernel.

    Args:
        call_target_name: the name under which the kernel is registered.
        operand_layouts, result_layouts: layout of each array: its dimensions, the one whose elements are neighbours
            first; a `Layout`, which has them in the other order; or None for row-major. By default all are row-major.
        backend_config: attributes of the call, besides the parameters of the primitive.
        skip_ffi_layout_processing: True to leave the layouts to XLA.
        lowering_args: further arguments of `mlir.custom_call`.

    Returns:
        `(ctx, *operands, **params) -> operation`.
    """

    def call(ctx: LoweringRuleContext, *operands: Any, **params: Any) -> ir.Operation:
        options: dict[str, Any] = dict(lowering_args)
        options.setdefault("api_version", 4)
        if call_target_name.startswith("lapack_") and "cpu" in ctx.module_context.platforms:
            from functorch_like.backends.xla import lapack  # its functions must not be called before

            lapack.ensure()
        if isinstance(backend_config, str):
            if params:
                raise ArgumentError(
                    f"{call_target_name}: a backend_config that is text has no place for the parameters "
                    f"{', '.join(sorted(params))}",
                    fix="give attributes by name, with api_version=4",
                )
            options["backend_config"] = backend_config
        else:
            attributes = {**(backend_config or {}), **{name: ir_attribute(value) for name, value in params.items()}}
            if attributes or options["api_version"] == 4:
                options["backend_config"] = attributes
        if not skip_ffi_layout_processing:
            options["operand_layouts"] = _layouts(operand_layouts, ctx.avals_in, call_target_name)
            options["result_layouts"] = _layouts(result_layouts, ctx.avals_out, call_target_name)
        options.setdefault("result_types", [t for aval in ctx.avals_out for t in aval_to_ir_types(aval)])
        return custom_call(call_target_name, operands=flatten_ir_values(operands), **options)

    return call


def ffi_lowering(
    call_target_name: str, *, operand_layouts: Sequence[Any] | None = None, result_layouts: Sequence[Any] | None = None,
    backend_config: Mapping[str, Any] | str | None = None, skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., Sequence[Any]]:  # fmt: skip
    """Return a lowering rule that calls a registered kernel; the parameters of the primitive are its attributes.

    Args:
        call_target_name: as all others, of `build_ffi_lowering_function`.

    Returns:
        `(ctx, *operands, **params) -> values`.
    """
    call = build_ffi_lowering_function(
        call_target_name,
        operand_layouts=operand_layouts,
        result_layouts=result_layouts,
        backend_config=backend_config,
        skip_ffi_layout_processing=skip_ffi_layout_processing,
        **lowering_args,
    )

    def rule(ctx: LoweringRuleContext, *operands: Any, **params: Any) -> Sequence[Any]:
        return call(ctx, *operands, **params).results

    return rule


def _layouts(layouts: Sequence[Any] | None, avals: Sequence[Any], target: str) -> list[tuple[int, ...]]:
    """Return the layouts of arrays, minor dimension first."""
    given = [None] * len(avals) if layouts is None else list(layouts)
    if len(given) != len(avals):
        raise ArgumentError(
            f"{target}: {len(given)} layouts were given for {len(avals)} arrays", fix="give one for each, or None"
        )
    return [_layout(layout, aval, target) for layout, aval in zip(given, avals, strict=True)]


def _layout(layout: Any, aval: Any, target: str) -> tuple[int, ...]:
    order = tuple(range(aval.ndim))[::-1]
    if layout is not None:
        major = getattr(layout, "major_to_minor", None)
        order = tuple(layout) if major is None else tuple(major)[::-1]
    if sorted(order) != list(range(aval.ndim)):
        raise ArgumentError(
            f"{target}: the layout {order} is not one of {aval!r}", fix="give each dimension once, the minor one first"
        )
    return order
