"""`jax.experimental.sparse.bcsr`: the format BCSR."""

from __future__ import annotations

from functorch_like.experimental.sparse import BCSR as BCSR
from functorch_like.experimental.sparse import CuSparseEfficiencyWarning as CuSparseEfficiencyWarning
from functorch_like.experimental.sparse import JAXSparse as JAXSparse
from functorch_like.experimental.sparse import SparseEfficiencyWarning as SparseEfficiencyWarning
from functorch_like.experimental.sparse import bcsr_broadcast_in_dim as bcsr_broadcast_in_dim
from functorch_like.experimental.sparse import bcsr_concatenate as bcsr_concatenate
from functorch_like.experimental.sparse import bcsr_dot_general as bcsr_dot_general
from functorch_like.experimental.sparse import bcsr_extract as bcsr_extract
from functorch_like.experimental.sparse import bcsr_fromdense as bcsr_fromdense
from functorch_like.experimental.sparse import bcsr_sum_duplicates as bcsr_sum_duplicates
from functorch_like.experimental.sparse import bcsr_todense as bcsr_todense
from functorch_like.experimental.sparse.bcsr import bcsr_eliminate_zeros as bcsr_eliminate_zeros
