"""`jax.interpreters.xla`: eager application of primitives by their lowerings."""

from __future__ import annotations

from functorch_like.jax_alias.modules.user_primitives import apply_primitive

__all__ = ["apply_primitive"]
