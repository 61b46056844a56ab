"""`jax.experimental.sparse.bcoo`: the format BCOO."""

from __future__ import annotations

from functorch_like.experimental.sparse import BCOO as BCOO
from functorch_like.experimental.sparse import CuSparseEfficiencyWarning as CuSparseEfficiencyWarning
from functorch_like.experimental.sparse import JAXSparse as JAXSparse
from functorch_like.experimental.sparse import SparseEfficiencyError as SparseEfficiencyError
from functorch_like.experimental.sparse import SparseEfficiencyWarning as SparseEfficiencyWarning
from functorch_like.experimental.sparse import bcoo_broadcast_in_dim as bcoo_broadcast_in_dim
from functorch_like.experimental.sparse import bcoo_concatenate as bcoo_concatenate
from functorch_like.experimental.sparse import bcoo_conv_general_dilated as bcoo_conv_general_dilated
from functorch_like.experimental.sparse import bcoo_dot_general as bcoo_dot_general
from functorch_like.experimental.sparse import bcoo_dot_general_sampled as bcoo_dot_general_sampled
from functorch_like.experimental.sparse import bcoo_dynamic_slice as bcoo_dynamic_slice
from functorch_like.experimental.sparse import bcoo_extract as bcoo_extract
from functorch_like.experimental.sparse import bcoo_fromdense as bcoo_fromdense
from functorch_like.experimental.sparse import bcoo_gather as bcoo_gather
from functorch_like.experimental.sparse import bcoo_multiply_dense as bcoo_multiply_dense
from functorch_like.experimental.sparse import bcoo_multiply_sparse as bcoo_multiply_sparse
from functorch_like.experimental.sparse import bcoo_reduce_sum as bcoo_reduce_sum
from functorch_like.experimental.sparse import bcoo_reshape as bcoo_reshape
from functorch_like.experimental.sparse import bcoo_rev as bcoo_rev
from functorch_like.experimental.sparse import bcoo_slice as bcoo_slice
from functorch_like.experimental.sparse import bcoo_sort_indices as bcoo_sort_indices
from functorch_like.experimental.sparse import bcoo_squeeze as bcoo_squeeze
from functorch_like.experimental.sparse import bcoo_sum_duplicates as bcoo_sum_duplicates
from functorch_like.experimental.sparse import bcoo_todense as bcoo_todense
from functorch_like.experimental.sparse import bcoo_transpose as bcoo_transpose
from functorch_like.experimental.sparse import bcoo_update_layout as bcoo_update_layout
from functorch_like.experimental.sparse.ordering import bcoo_eliminate_zeros as bcoo_eliminate_zeros
