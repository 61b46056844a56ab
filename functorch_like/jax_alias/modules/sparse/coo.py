"""`jax.experimental.sparse.coo`: the format COO."""

from __future__ import annotations

from functorch_like.experimental.sparse import COO as COO
from functorch_like.experimental.sparse import CuSparseEfficiencyWarning as CuSparseEfficiencyWarning
from functorch_like.experimental.sparse import JAXSparse as JAXSparse
from functorch_like.experimental.sparse import coo_fromdense as coo_fromdense
from functorch_like.experimental.sparse import coo_matmat as coo_matmat
from functorch_like.experimental.sparse import coo_matvec as coo_matvec
from functorch_like.experimental.sparse import coo_todense as coo_todense
