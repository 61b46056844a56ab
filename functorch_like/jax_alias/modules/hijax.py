"""`jax.experimental.hijax`: types of a library's own values, and primitives over them with rules as methods.

Of mutable types (`MutableHiType`, `Box`) there is nothing.
"""

from __future__ import annotations

from typing import Any

from functorch_like.avals import ShapedArray
from functorch_like.jax_alias.modules.ad import instantiate_zeros, is_undefined_primal
from functorch_like.jax_alias.modules.hi_primitives import HiPrimitive
from functorch_like.jax_alias.modules.hi_types import HiPspec, HiType, register_hitype
from functorch_like.jax_alias.modules.user_primitives import Zero
from functorch_like.jax_alias.modules.vjp_hi_primitives import VJPHiPrimitive
from functorch_like.ref import AbstractRef

__all__ = [
    "AbstractRef", "HiPrimitive", "HiPspec", "HiType", "ShapedArray", "VJPHiPrimitive", "Zero", "instantiate_zeros",
    "is_undefined_primal", "register_hitype",
]  # fmt: skip

AbstractValue = ShapedArray


class EffectTypes:
    """A set of classes of effects."""

    def __init__(self) -> None:
        self._types: set[type] = set()

    def add_type(self, effect_type: type) -> None:
        """Add a class. It has no effect: effects of libraries are allowed in loops and branches."""
        self._types.add(effect_type)

    def contains(self, effect: Any) -> bool:
        """Return True for an effect of a class in the set."""
        return isinstance(effect, tuple(self._types))


control_flow_allowed_effects = EffectTypes()
