"""`jax.experimental.sparse.csr`: the formats CSR and CSC."""

from __future__ import annotations

from functorch_like.experimental.sparse import CSC as CSC
from functorch_like.experimental.sparse import CSR as CSR
from functorch_like.experimental.sparse import CuSparseEfficiencyWarning as CuSparseEfficiencyWarning
from functorch_like.experimental.sparse import JAXSparse as JAXSparse
from functorch_like.experimental.sparse import csr_fromdense as csr_fromdense
from functorch_like.experimental.sparse import csr_matmat as csr_matmat
from functorch_like.experimental.sparse import csr_matvec as csr_matvec
from functorch_like.experimental.sparse import csr_todense as csr_todense
