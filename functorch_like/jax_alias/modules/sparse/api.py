"""`jax.experimental.sparse.api`: constructors and conversion."""

from __future__ import annotations

from functorch_like.experimental.sparse import BCOO as BCOO
from functorch_like.experimental.sparse import BCSR as BCSR
from functorch_like.experimental.sparse import COO as COO
from functorch_like.experimental.sparse import CSC as CSC
from functorch_like.experimental.sparse import CSR as CSR
from functorch_like.experimental.sparse import JAXSparse as JAXSparse
from functorch_like.experimental.sparse import empty as empty
from functorch_like.experimental.sparse import eye as eye
from functorch_like.experimental.sparse import todense as todense
