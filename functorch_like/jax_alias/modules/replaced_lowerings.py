"""Lowering rules of a library for primitives of the package, in place of the package's own."""

from __future__ import annotations

from typing import Any

import numpy as np

from functorch_like import caches
from functorch_like.compiler.lower import emit
from functorch_like.jax_alias.modules.lowering_rules import Lowering, apply_rule, rule_of
from functorch_like.jax_alias.modules.programs import CorePrimitiveView

_REPLACED: set[CorePrimitiveView] = set()


def replace(prim: CorePrimitiveView) -> None:
    """Make the registered rules of a primitive of the package count; its own applies on platforms without one.

    All traces and programs are dropped, since they may hold the package's lowering.
    """
    caches.clear_caches()
    if prim in _REPLACED:
        return
    _REPLACED.add(prim)
    primitive, own = prim.core_primitive, prim.core_primitive.lower

    def lower(e: Any, *operands: Any, **params: Any) -> Any:
        rule = rule_of(prim, e.platform)
        if rule is None:
            return own(e, *operands, **params)
        if isinstance(rule, Lowering):
            jaxpr, consts = rule.staged(e.ins, params)
            outs = emit(e, jaxpr, [*(e.constant(np.asarray(c)) for c in consts), *operands])
        else:
            outs = apply_rule(prim, rule, e, operands, params)
        return outs if primitive.multiple_results else outs[0]

    object.__setattr__(primitive, "lower", lower)
    object.__setattr__(primitive, "builtin", False)  # it may call libraries, and programs have no key without lowering
