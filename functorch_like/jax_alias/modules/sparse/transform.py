"""`jax.experimental.sparse.transform`: `sparsify`."""

from __future__ import annotations

from functorch_like.experimental.sparse import BCOO as BCOO
from functorch_like.experimental.sparse import BCSR as BCSR
from functorch_like.experimental.sparse import bcoo_multiply_dense as bcoo_multiply_dense
from functorch_like.experimental.sparse import bcoo_multiply_sparse as bcoo_multiply_sparse
from functorch_like.experimental.sparse import sparsify as sparsify
