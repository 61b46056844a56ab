"""Arrays of scipy.sparse to BCOO and BCSR, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from functorch_like import numpy as fnp
from functorch_like.errors import ArgumentError, UnsupportedError
from functorch_like.experimental.sparse.bcoo import BCOO
from functorch_like.experimental.sparse.bcsr import BCSR
from functorch_like.experimental.sparse.checks import need
from functorch_like.experimental.sparse.conversion import index_type
from functorch_like.experimental.sparse.format import JAXSparse, method
from functorch_like.numpy import promotion


def _csr(mat: Any, n_batch: int, n_dense: int, what: str) -> Any:
    """Return an array of scipy.sparse in CSR, in canonical order."""
    if not (hasattr(mat, "tocsr") and hasattr(mat, "nnz")):
        raise promotion.error(ArgumentError, f"{what} takes an array of scipy.sparse, got {mat!r:.60}", "fromdense(x)")
    if n_batch or n_dense:
        raise promotion.error(
            UnsupportedError, f"{what} with n_batch={n_batch} and n_dense={n_dense}",
            "convert without, then use .update_layout(...)",
        )  # fmt: skip
    csr = mat.tocsr(copy=True)
    csr.sum_duplicates()
    return csr


@method
def bcoo_from_scipy(mat: Any, index_dtype: Any, n_batch: int, n_dense: int) -> BCOO:
    """Return an array of scipy.sparse as a BCOO."""
    what = "BCOO.from_scipy_sparse"
    csr = _csr(mat, n_batch, n_dense, what)
    coo = csr.tocoo()
    dtype = index_type(np.int32 if index_dtype is None else index_dtype, what)
    indices = np.stack([coo.row, coo.col], axis=-1).astype(dtype)
    return BCOO._of(fnp.asarray(coo.data), fnp.asarray(indices), coo.shape, is_sorted=True, unique=True)


@method
def bcsr_from_scipy(mat: Any, index_dtype: Any, n_batch: int, n_dense: int) -> BCSR:
    """Return an array of scipy.sparse as a BCSR."""
    what = "BCSR.from_scipy_sparse"
    csr = _csr(mat, n_batch, n_dense, what)
    dtype = index_type(np.int32 if index_dtype is None else index_dtype, what)
    data, indices, indptr = map(fnp.asarray, (csr.data, csr.indices.astype(dtype), csr.indptr.astype(dtype)))
    return BCSR._of(data, indices, indptr, csr.shape, is_sorted=True, unique=True)


def _plain(mat: JAXSparse) -> None:
    if mat.n_batch or mat.n_dense or mat.n_sparse != 2:
        raise promotion.error(
            UnsupportedError, f"{mat!r} is not a matrix for scipy.sparse", "use .update_layout(n_batch=0, n_dense=0)"
        )


@method
def bcoo_to_scipy(mat: BCOO) -> Any:
    """Return a `scipy.sparse.coo_array`."""
    import scipy.sparse

    _plain(mat)
    data, indices = (need(x, "to_scipy_sparse", "call it outside of jit and vmap") for x in (mat.data, mat.indices))
    keep = (indices < np.array(mat.shape)).all(-1)
    rows, columns = indices[keep].T
    return scipy.sparse.coo_array((data[keep], (rows, columns)), shape=mat.shape)


@method
def bcsr_to_scipy(mat: BCSR) -> Any:
    """Return a `scipy.sparse.csr_array`."""
    import scipy.sparse

    _plain(mat)
    data, indices, indptr = (
        need(x, "to_scipy_sparse", "call it outside of jit and vmap") for x in (mat.data, mat.indices, mat.indptr)
    )
    n = int(indptr[-1])
    return scipy.sparse.csr_array((data[:n], indices[:n], indptr), shape=mat.shape)
