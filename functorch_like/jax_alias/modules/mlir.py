"""`jax.interpreters.mlir`: lowerings of primitives, as functions that are traced."""

from __future__ import annotations

from typing import Any

from functorch_like.jax_alias.modules.user_primitives import Lowering, lowerings

LoweringRule = Any
lower_fun = Lowering


def register_lowering(prim: Any, rule: Any, platform: str | None = None, inline: bool = True, **options: Any) -> None:
    """Register how a primitive is lowered, on all platforms.

    The rule is one that `lower_fun` made. One that builds MLIR is not called: the host runs the implementation instead.
    """
    lowerings[prim] = rule


class LoweringRuleContext:
    """Class of the context of JAX's lowering rules, for annotations only."""


ModuleContext = LoweringRuleContext
