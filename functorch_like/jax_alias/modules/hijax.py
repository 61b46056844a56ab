"""`jax.experimental.hijax`: types of a library's own values, and primitives over them with rules as methods.

Of mutable types (`MutableHiType`, `Box`) there is nothing.
"""

from __future__ import annotations

from functorch_like.avals import ShapedArray
from functorch_like.jax_alias.modules.ad import instantiate_zeros, is_undefined_primal
from functorch_like.jax_alias.modules.effect_types import control_flow_allowed_effects
from functorch_like.jax_alias.modules.hi_primitives import HiPrimitive
from functorch_like.jax_alias.modules.hi_types import HiPspec, HiType, register_hitype
from functorch_like.jax_alias.modules.user_primitives import Zero
from functorch_like.jax_alias.modules.vjp_hi_primitives import VJPHiPrimitive
from functorch_like.ref import AbstractRef

__all__ = [
    "AbstractRef", "HiPrimitive", "HiPspec", "HiType", "ShapedArray", "VJPHiPrimitive", "Zero",
    "control_flow_allowed_effects", "instantiate_zeros", "is_undefined_primal", "register_hitype",
]  # fmt: skip

AbstractValue = ShapedArray
