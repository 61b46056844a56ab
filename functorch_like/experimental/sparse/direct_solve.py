"""A sparse linear system solved by SuperLU, which SciPy brings, on the host."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functorch_like import lax
from functorch_like import numpy as fnp
from functorch_like.avals import ShapeDtypeStruct
from functorch_like.calling.host_callbacks import pure_callback
from functorch_like.core import aval_of
from functorch_like.experimental.sparse.bcsr import coordinates

#: SuperLU's orders of columns, by the number of `spsolve`.
ORDERS = ("NATURAL", "MMD_AT_PLUS_A", "MMD_ATA", "COLAMD")


def solve_rows(data: Any, indices: Any, indptr: Any, b: Any, order: str) -> Any:
    """Solve A x = b for a square matrix A in compressed rows; derivatives are solutions, too.

    The derivative by A is that by its stored elements.
    """
    n = aval_of(indptr).shape[0] - 1
    at = coordinates(indices, indptr, 0, n, n)
    rows, columns = at[:, 0], at[:, 1]

    def times(x: Any) -> Any:
        weights = data if aval_of(x).ndim == 1 else data[:, None]
        return fnp.zeros_like(x).at[rows].add(weights * x[columns])

    def solver(transposed: bool) -> Any:
        def solve(_: Any, right: Any) -> Any:
            def on_host(*operands: Any) -> np.ndarray[Any, Any]:
                return _solved(operands, aval_of(b).ndim, transposed, order)

            out = ShapeDtypeStruct(aval_of(right).shape, aval_of(right).dtype)
            return pure_callback(on_host, out, data, rows, columns, right, vmap_method="expand_dims")

        return solve

    return lax.custom_linear_solve(times, b, solver(False), solver(True))


def _solved(operands: Any, ndim: int, transposed: bool, order: str) -> np.ndarray[Any, Any]:
    """Solve on the host. All operands have the same number of leading batch dimensions, some of size 1."""
    data, rows, columns, b = map(np.asarray, operands)
    lead = b.ndim - ndim
    batch = np.broadcast_shapes(*(x.shape[:lead] for x in (data, rows, columns, b)))
    if lead and math.prod(data.shape[:lead] + rows.shape[:lead] + columns.shape[:lead]) == 1:
        # One matrix for all: its factors are computed once, and the batch becomes columns.
        n = b.shape[lead]
        wide = np.moveaxis(b.reshape(-1, n, math.prod(b.shape[lead + 1 :])), 1, 0)
        x = _one(data.ravel(), rows.ravel(), columns.ravel(), wide.reshape(n, -1), transposed, order)
        return np.moveaxis(x.reshape(wide.shape), 0, 1).reshape(b.shape)
    spread = [np.broadcast_to(x, batch + x.shape[lead:]) for x in (data, rows, columns, b)]
    out = np.empty(spread[3].shape, b.dtype)
    for k in np.ndindex(batch):
        out[k] = _one(*(x[k] for x in spread), transposed=transposed, order=order)
    return out


def _one(data: Any, rows: Any, columns: Any, b: Any, transposed: bool, order: str) -> np.ndarray[Any, Any]:
    from scipy.sparse import coo_matrix
    from scipy.sparse.linalg import splu

    n = b.shape[0]
    if not n:
        return b
    inside = (rows < n) & (columns < n)  # without padding
    try:
        factors = splu(coo_matrix((data[inside], (rows[inside], columns[inside])), (n, n)).tocsc(), permc_spec=order)
    except RuntimeError:  # singular
        return np.full_like(b, np.nan)
    return factors.solve(np.ascontiguousarray(b), "T" if transposed else "N").astype(b.dtype)
