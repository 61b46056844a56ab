"""`jax.interpreters.xla`: platforms, and eager application of primitives by their lowerings."""

from __future__ import annotations

from functorch_like.jax_alias.modules.backend import Backend
from functorch_like.jax_alias.modules.user_primitives import apply_primitive

__all__ = ["Backend", "apply_primitive"]
