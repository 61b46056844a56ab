"""`jax.experimental.sparse.random`: random sparse arrays."""

from __future__ import annotations

from functorch_like.experimental.sparse import random_bcoo as random_bcoo
