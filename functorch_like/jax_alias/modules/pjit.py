"""`jax.experimental.pjit`."""

from __future__ import annotations

from functorch_like.jax_alias.modules.root import jit
from functorch_like.lax import with_sharding_constraint as with_sharding_constraint

pjit = jit
