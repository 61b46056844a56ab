"""`jax.experimental.sparse.util`: warnings and errors."""

from __future__ import annotations

from functorch_like.experimental.sparse import CuSparseEfficiencyWarning as CuSparseEfficiencyWarning
from functorch_like.experimental.sparse import SparseEfficiencyError as SparseEfficiencyError
from functorch_like.experimental.sparse import SparseEfficiencyWarning as SparseEfficiencyWarning
