"""Sparse arrays: `BCOO` (coordinates), `BCSR` (compressed rows) and formats of matrices, under JAX's names.

>>> from functorch_like.experimental import sparse
>>> m = sparse.BCOO.fromdense(fnp.asarray([[0.0, 2.0], [3.0, 0.0]]))
>>> (m @ fnp.asarray([1.0, 10.0])).tolist(), m.T.todense().tolist()
([20.0, 3.0], [[0.0, 3.0], [2.0, 0.0]])

They are pytrees of arrays, so jit, vmap, scan and grad take them as arguments and give them as results.
"""

from __future__ import annotations

from functorch_like.experimental.sparse import linalg as linalg
from functorch_like.experimental.sparse import operators as _operators  # noqa: F401  (their methods)
from functorch_like.experimental.sparse import scipy_arrays as _scipy_arrays  # noqa: F401
from functorch_like.experimental.sparse.bcoo import BCOO as BCOO
from functorch_like.experimental.sparse.bcsr import BCSR as BCSR
from functorch_like.experimental.sparse.bcsr import bcsr_broadcast_in_dim as bcsr_broadcast_in_dim
from functorch_like.experimental.sparse.bcsr import bcsr_concatenate as bcsr_concatenate
from functorch_like.experimental.sparse.bcsr import bcsr_extract as bcsr_extract
from functorch_like.experimental.sparse.bcsr import bcsr_fromdense as bcsr_fromdense
from functorch_like.experimental.sparse.bcsr import bcsr_sum_duplicates as bcsr_sum_duplicates
from functorch_like.experimental.sparse.bcsr import bcsr_todense as bcsr_todense
from functorch_like.experimental.sparse.conversion import bcoo_extract as bcoo_extract
from functorch_like.experimental.sparse.conversion import bcoo_fromdense as bcoo_fromdense
from functorch_like.experimental.sparse.conversion import bcoo_todense as bcoo_todense
from functorch_like.experimental.sparse.conversion import todense as todense
from functorch_like.experimental.sparse.convolutions import bcoo_conv_general_dilated as bcoo_conv_general_dilated
from functorch_like.experimental.sparse.coo import COO as COO
from functorch_like.experimental.sparse.coo import coo_fromdense as coo_fromdense
from functorch_like.experimental.sparse.coo import coo_matmat as coo_matmat
from functorch_like.experimental.sparse.coo import coo_matvec as coo_matvec
from functorch_like.experimental.sparse.coo import coo_todense as coo_todense
from functorch_like.experimental.sparse.creation import empty as empty
from functorch_like.experimental.sparse.creation import eye as eye
from functorch_like.experimental.sparse.creation import random_bcoo as random_bcoo
from functorch_like.experimental.sparse.csr import CSC as CSC
from functorch_like.experimental.sparse.csr import CSR as CSR
from functorch_like.experimental.sparse.csr import csr_fromdense as csr_fromdense
from functorch_like.experimental.sparse.csr import csr_matmat as csr_matmat
from functorch_like.experimental.sparse.csr import csr_matvec as csr_matvec
from functorch_like.experimental.sparse.csr import csr_todense as csr_todense
from functorch_like.experimental.sparse.derivatives import grad as grad
from functorch_like.experimental.sparse.derivatives import jacfwd as jacfwd
from functorch_like.experimental.sparse.derivatives import jacobian as jacobian
from functorch_like.experimental.sparse.derivatives import jacrev as jacrev
from functorch_like.experimental.sparse.derivatives import value_and_grad as value_and_grad
from functorch_like.experimental.sparse.elementwise import bcoo_multiply_dense as bcoo_multiply_dense
from functorch_like.experimental.sparse.elementwise import bcoo_multiply_sparse as bcoo_multiply_sparse
from functorch_like.experimental.sparse.format import CuSparseEfficiencyWarning as CuSparseEfficiencyWarning
from functorch_like.experimental.sparse.format import JAXSparse as JAXSparse
from functorch_like.experimental.sparse.format import SparseEfficiencyError as SparseEfficiencyError
from functorch_like.experimental.sparse.format import SparseEfficiencyWarning as SparseEfficiencyWarning
from functorch_like.experimental.sparse.format_products import bcsr_dot_general as bcsr_dot_general
from functorch_like.experimental.sparse.gathering import bcoo_gather as bcoo_gather
from functorch_like.experimental.sparse.layouts import bcoo_update_layout as bcoo_update_layout
from functorch_like.experimental.sparse.ordering import bcoo_sort_indices as bcoo_sort_indices
from functorch_like.experimental.sparse.ordering import bcoo_sum_duplicates as bcoo_sum_duplicates
from functorch_like.experimental.sparse.products import bcoo_dot_general as bcoo_dot_general
from functorch_like.experimental.sparse.products import bcoo_dot_general_sampled as bcoo_dot_general_sampled
from functorch_like.experimental.sparse.rearranging import bcoo_broadcast_in_dim as bcoo_broadcast_in_dim
from functorch_like.experimental.sparse.rearranging import bcoo_concatenate as bcoo_concatenate
from functorch_like.experimental.sparse.rearranging import bcoo_reshape as bcoo_reshape
from functorch_like.experimental.sparse.rearranging import bcoo_rev as bcoo_rev
from functorch_like.experimental.sparse.rearranging import bcoo_squeeze as bcoo_squeeze
from functorch_like.experimental.sparse.rearranging import bcoo_transpose as bcoo_transpose
from functorch_like.experimental.sparse.reductions import bcoo_reduce_sum as bcoo_reduce_sum
from functorch_like.experimental.sparse.slicing import bcoo_dynamic_slice as bcoo_dynamic_slice
from functorch_like.experimental.sparse.slicing import bcoo_slice as bcoo_slice
from functorch_like.experimental.sparse.sparsify import sparsify as sparsify
