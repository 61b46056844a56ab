"""Products of matrices in compressed rows with dense matrices: a library's kernel on CPUs, elsewhere XLA's operations.

The kernel does not check indices. So those out of bounds are first moved into bounds, with values of zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functorch_like import ffi, lax
from functorch_like import numpy as fnp
from functorch_like.avals import ShapedArray
from functorch_like.backends.xla import cpu_sparse
from functorch_like.core import aval_of
from functorch_like.transforms.custom.custom_jvp import custom_jvp

#: With fewer products of elements the conversion costs more than it saves.
_ENOUGH = 2**14
#: For fewer columns XLA's gather and scatter are faster: 3 ms for a million elements and a vector, the kernel takes 8.
_COLUMNS = 8


def applies(data: Any, indices: Any, dense: Any, free: int) -> bool:
    """Return True for values, indices and a dense operand with `free` columns that the kernel supports.

    Args:
        data: the stored values.
        indices: sorted indices (nse, 2), or columns (nse,) of a matrix in compressed rows.
        dense: the dense operand.
        free: the number of its columns.
    """
    values, at = aval_of(data), aval_of(indices)
    if values.ndim != 1 or at.shape[1:] not in ((), (2,)) or aval_of(dense).dtype != values.dtype:
        return False
    return free >= _COLUMNS and values.size * free >= _ENOUGH and cpu_sparse.takes(values.dtype, at.dtype)


def product(plain: Callable[..., Any], data: Any, indices: Any, dense: Any, sparse: tuple[int, ...]) -> Any:
    """Return the product of a sorted sparse matrix and a dense one.

    Args:
        plain: the same product in XLA's operations, `plain(data, indices, dense)`, which derivatives use.
        data: (nse,).
        indices: (nse, 2).
        dense: (columns of the matrix, free).
        sparse: sizes of the matrix.
    """

    @custom_jvp
    def multiply(data: Any, indices: Any, dense: Any) -> Any:
        kernel = lambda d, i, x: _kernel(d, i, x, sparse)
        return lax.platform_dependent(data, indices, dense, cpu=kernel, default=plain)

    multiply.defjvps(lambda t, out, d, i, x: plain(t, i, x), None, lambda t, out, d, i, x: plain(d, i, t))
    return multiply(data, indices, dense)


def product_by_rows(
    plain: Callable[..., Any], data: Any, indices: Any, indptr: Any, dense: Any, sparse: tuple[int, ...]
) -> Any:
    """Return the product of a matrix in compressed rows and a dense one.

    Args:
        plain: the same product in XLA's operations, `plain(data, indices, indptr, dense)`, which derivatives use.
        data: (nse,).
        indices: columns, (nse,).
        indptr: (rows + 1,).
        dense: (columns of the matrix, free).
        sparse: sizes of the matrix.
    """

    @custom_jvp
    def multiply(data: Any, indices: Any, indptr: Any, dense: Any) -> Any:
        kernel = lambda d, i, p, x: _kernel_by_rows(d, i, p, x, sparse)
        return lax.platform_dependent(data, indices, indptr, dense, cpu=kernel, default=plain)

    multiply.defjvps(
        lambda t, out, d, i, p, x: plain(t, i, p, x), None, None, lambda t, out, d, i, p, x: plain(d, i, p, t)
    )
    return multiply(data, indices, indptr, dense)


def _kernel(data: Any, indices: Any, dense: Any, sparse: tuple[int, ...]) -> Any:
    rows, width = sparse
    dtype = aval_of(indices).dtype
    row, column = indices[:, 0], indices[:, 1]
    inside = (row >= 0) & (row < rows) & (column >= 0) & (column < width)
    starts = fnp.searchsorted(fnp.where(inside, row, np.array(rows, dtype)), fnp.arange(rows + 1, dtype=dtype))
    return _call(data, column, inside, starts.astype(dtype), dense, sparse)


def _kernel_by_rows(data: Any, indices: Any, indptr: Any, dense: Any, sparse: tuple[int, ...]) -> Any:
    dtype = aval_of(indices).dtype
    starts = fnp.clip(indptr, 0, aval_of(data).shape[0]).astype(dtype)
    return _call(data, indices, (indices >= 0) & (indices < sparse[1]), starts, dense, sparse)


def _call(data: Any, column: Any, inside: Any, starts: Any, dense: Any, sparse: tuple[int, ...]) -> Any:
    rows, width = sparse
    out = ShapedArray((rows, aval_of(dense).shape[1]), aval_of(data).dtype)
    call = ffi.ffi_call(cpu_sparse.TARGET, out, vmap_method="sequential")
    column = fnp.clip(column, 0, max(width - 1, 0))
    return call(fnp.where(inside, data, fnp.zeros_like(data)), starts, column, dense)
