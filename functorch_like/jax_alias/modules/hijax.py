"""`jax.experimental.hijax`: types of a library's own values, and primitives over them with rules as methods.

Values of hi types are objects of their classes in all functions, never tracers. So methods for tracers of a type
(`aval_method`, `aval_property`) are stored and not called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functorch_like.avals import ShapedArray
from functorch_like.jax_alias.modules.ad import instantiate_zeros, is_undefined_primal
from functorch_like.jax_alias.modules.effect_types import control_flow_allowed_effects
from functorch_like.jax_alias.modules.hi_mutable import AvalQDD, MutableHiType
from functorch_like.jax_alias.modules.hi_primitives import HiPrimitive
from functorch_like.jax_alias.modules.hi_types import HiPspec, HiType, register_hitype
from functorch_like.jax_alias.modules.user_primitives import Zero
from functorch_like.jax_alias.modules.vjp_hi_primitives import VJPHiPrimitive
from functorch_like.ref import AbstractRef
from functorch_like.ref.views import RefView as TransformedRef

__all__ = [
    "AbstractRef", "AvalMutableQDD", "AvalQDD", "HiPrimitive", "HiPspec", "HiType", "MutableHiType", "ShapedArray",
    "TransformedRef", "VJPHiPrimitive", "Zero", "aval_method", "aval_property", "control_flow_allowed_effects",
    "instantiate_zeros", "is_undefined_primal", "register_hitype",
]  # fmt: skip

AbstractValue = ShapedArray


class AvalMutableQDD:
    """The type of a mutable operand and its state; no rule gets one, because operations act on objects.

    Args:
        aval: the type.
        mutable_qdd: the state.
    """

    def __init__(self, aval: Any, mutable_qdd: Any) -> None:
        self.aval, self.mutable_qdd = aval, mutable_qdd


class aval_property:
    """A property for tracers of a hi type.

    Args:
        fget: returns its value.
    """

    def __init__(self, fget: Callable[[Any], Any]) -> None:
        self.fget = fget


class aval_method:
    """A method for tracers of a hi type.

    Args:
        fun: the method.
    """

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun
