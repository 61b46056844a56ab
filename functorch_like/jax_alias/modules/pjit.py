"""`jax.experimental.pjit`."""

from __future__ import annotations

from functorch_like.jax_alias.modules.one_device import with_sharding_constraint as with_sharding_constraint
from functorch_like.jax_alias.modules.root import jit

pjit = jit
