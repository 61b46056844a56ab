"""`jax.interpreters.mlir`: lowering rules of primitives, as functions that are traced or that build MLIR.

The functions that build MLIR are imported at their first use, since they bring MLIR with them.
"""

from __future__ import annotations

import importlib
from typing import Any

from functorch_like.jax_alias.modules.effect_types import lowerable_effects
from functorch_like.jax_alias.modules.lowering_contexts import (
    LoweringParameters,
    LoweringRuleContext,
    ModuleContext,
    ShapePolyLoweringState,
    ShardingContext,
    SPMDAxisContext,
    TokenSet,
)
from functorch_like.jax_alias.modules.lowering_rules import Lowering, lowerings
from functorch_like.jax_alias.modules.programs import CorePrimitiveView
from functorch_like.jax_alias.modules.sharding import Mesh

__all__ = [
    "LoweringParameters", "LoweringRuleContext", "Mesh", "ModuleContext", "SPMDAxisContext", "ShapePolyLoweringState",
    "ShardingContext", "TokenSet", "lowerable_effects",
]  # fmt: skip

LoweringRule = Any
MeshAxisName = Any
#: Types of channels between devices, and between a device and the host.
DEVICE_TO_DEVICE_TYPE, SEND_TO_HOST_TYPE, RECV_FROM_HOST_TYPE = 1, 2, 3
AxisContext = ShardingContext | SPMDAxisContext
lower_fun = Lowering

_NAMES = {
    "ir_values": (
        "ConstantHandler", "Token", "Value",
        "aval_to_ir_type", "aval_to_ir_types", "dense_bool_array", "dense_bool_elements", "dense_int_array",
        "dense_int_elements", "dtype_to_ir_type", "flatten_ir_types", "flatten_ir_values", "full_like_aval",
        "i32_attr", "i64_attr", "ir_attribute", "ir_constant", "ir_constants", "ir_tree_registry", "ir_type_handlers",
        "multi_broadcast_in_dim", "register_constant_handler", "shape_tensor", "token_type",
        "unflatten_ir_values_like_types", "wrap_singleton_ir_values",
    ),
    "ir_programs": (
        "LoweringResult", "core_call_lowering", "jaxpr_subcomp", "lower_jaxpr_to_fun", "lower_jaxpr_to_module",
        "make_ir_context", "merge_mlir_modules", "module_to_bytecode", "module_to_string",
    ),
    "ir_calls": ("cache_lowering", "custom_call", "delegate_lowering", "emit_python_callback"),
}  # fmt: skip
_FILES = {name: file for file, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _FILES:
        raise AttributeError(name)
    module = importlib.import_module(f"functorch_like.jax_alias.modules.{_FILES[name]}")
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_FILES})


def register_lowering(
    prim: Any, rule: Any, platform: str | None = None, inline: bool = True, cacheable: bool = True
) -> None:
    """Register how a primitive is lowered.

    Args:
        prim: the primitive. The rule of a primitive of the package gets the package's parameters.
        rule: `(ctx, *operands, **params) -> values`, which builds MLIR; or one that `lower_fun` made.
        platform: "cpu", "cuda" or "gpu"; by default all platforms without a rule of their own. Rules for other
            platforms are kept and never applied.
        inline, cacheable: have no effect: operations are written in place, and again for each application.
    """
    lowerings.setdefault(prim, {})[platform] = rule
    if isinstance(prim, CorePrimitiveView):
        from functorch_like.jax_alias.modules.replaced_lowerings import replace

        replace(prim)
