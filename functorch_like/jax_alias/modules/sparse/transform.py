"""`jax.experimental.sparse.transform`: `sparsify`."""

from __future__ import annotations

from functorch_like.experimental.sparse import sparsify as sparsify
