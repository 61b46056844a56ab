"""New sparse arrays: `empty`, `eye`, `random_bcoo`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes, random
from functorch_like import numpy as fnp
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.experimental.sparse.bcoo import BCOO
from functorch_like.experimental.sparse.bcsr import from_bcoo
from functorch_like.experimental.sparse.checks import sizes
from functorch_like.experimental.sparse.conversion import index_type, split
from functorch_like.experimental.sparse.coo import coo_from_bcoo
from functorch_like.experimental.sparse.csr import CSR
from functorch_like.experimental.sparse.format import JAXSparse
from functorch_like.experimental.sparse.layouts import bcoo_update_layout
from functorch_like.experimental.sparse.lifting import over_batches
from functorch_like.numpy import promotion

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike


def _empty(
    shape: tuple[int, ...], dtype: Any, index_dtype: Any, n_dense: int = 0, n_batch: int = 0, nse: int = 0
) -> BCOO:
    """Return a BCOO of padding alone."""
    sparse = split(shape, n_batch, n_dense, "sparse.empty")
    dense = shape[len(shape) - n_dense :]
    index = index_type(index_dtype, "sparse.empty")
    data = fnp.zeros((*shape[:n_batch], nse, *dense), dtype)
    indices = fnp.broadcast_to(fnp.asarray(np.array(sparse, index)), (*shape[:n_batch], nse, len(sparse)))
    return BCOO._of(data, indices, (*sparse, *dense), is_sorted=True, unique=True)


def _eye(rows: int, width: int, k: int, dtype: Any, index_dtype: Any, n_batch: int = 0, n_dense: int = 0) -> BCOO:
    """Return the BCOO of a diagonal of ones."""
    index = index_type(index_dtype, "sparse.eye")
    start, stop = max(0, -k), max(0, -k, min(rows, width - k))
    row = np.arange(start, stop)
    data = fnp.ones(len(row), dtype)
    mat = BCOO._of(data, fnp.asarray(np.stack([row, row + k], -1).astype(index)), (rows, width), is_sorted=True,
                   unique=True)  # fmt: skip
    return bcoo_update_layout(mat, n_batch=n_batch, n_dense=n_dense, on_inefficient=None)


def _shape(shape: Sequence[int] | int, what: str) -> tuple[int, ...]:
    """Return a shape as a tuple."""
    return sizes((shape,) if isinstance(shape, int) else shape, what)


def _compressed(mat: BCOO) -> CSR:
    rows = from_bcoo(mat)
    return CSR._of(rows.data, rows.indices, rows.indptr, rows._tail)


#: Conversions of a BCOO, by format. A CSC is the transpose of the CSR of the transpose.
_FORMATS: dict[str, Callable[[BCOO], JAXSparse]] = {
    "bcoo": lambda mat: mat, "bcsr": from_bcoo, "coo": coo_from_bcoo, "csr": _compressed,
    "csc": lambda mat: _compressed(mat.T).T,
}  # fmt: skip


def _in_format(mat: BCOO, sparse_format: str, what: str) -> JAXSparse:
    convert = _FORMATS.get(sparse_format)
    if convert is None:
        raise promotion.error(
            ArgumentError, f"sparse_format={sparse_format!r} of {what} is unknown",
            f"use one of {', '.join(map(repr, _FORMATS))}",
        )  # fmt: skip
    if sparse_format in ("coo", "csr", "csc") and (mat.ndim != 2 or mat.n_sparse != 2):
        raise promotion.error(
            ShapeError, f"{what} of {mat!r} in the format {sparse_format!r}",
            "these formats store one matrix, without batch or dense dimensions; use 'bcoo'",
        )  # fmt: skip
    return convert(mat)


def empty(
    shape: Sequence[int], dtype: DTypeLike | None = None, index_dtype: DTypeLike = "int32", sparse_format: str = "bcoo",
    **kwds: int,
) -> JAXSparse:  # fmt: skip
    """Return a sparse array of zeros.

    Args:
        shape: of the array.
        dtype: of the values; float32 by default.
        index_dtype: of the indices.
        sparse_format: "bcoo", "bcsr", "coo", "csr" or "csc".
        kwds: `n_batch`, `n_dense` and `nse`, the number of elements of padding to store; 0 by default.

    Raises:
        ArgumentError: for an unknown format.
        ShapeError: for anything but a matrix in the formats "coo", "csr" and "csc".

    Example:
        >>> from functorch_like.experimental import sparse
        >>> sparse.empty((2, 3))
        BCOO(float32[2, 3], nse=0)
    """
    chosen = dtypes.default_float() if dtype is None else dtype
    return _in_format(_empty(_shape(shape, "sparse.empty"), chosen, index_dtype, **kwds), sparse_format,
                      "sparse.empty")  # fmt: skip


def eye(
    N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None, index_dtype: DTypeLike = "int32",
    sparse_format: str = "bcoo", **kwds: int,
) -> JAXSparse:  # fmt: skip
    """Return a sparse matrix with ones on a diagonal.

    Args:
        N: number of rows.
        M: number of columns; as many as rows by default.
        k: the diagonal: 0 is the main one, positive ones are above it.
        dtype: of the values; float32 by default.
        index_dtype: of the indices.
        sparse_format: "bcoo", "bcsr", "coo", "csr" or "csc".
        kwds: `n_batch` and `n_dense`, for "bcoo" and "bcsr".

    Raises:
        ArgumentError: for an unknown format.

    Example:
        >>> from functorch_like.experimental import sparse
        >>> sparse.eye(2, 3, k=1).todense().tolist()
        [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    chosen = dtypes.default_float() if dtype is None else dtype
    rows, width = _shape((N, N if M is None else M), "sparse.eye")
    return _in_format(_eye(rows, width, int(k), chosen, index_dtype, **kwds), sparse_format, "sparse.eye")


def random_bcoo(
    key: ArrayLike, shape: Sequence[int], *, dtype: DTypeLike | None = None, indices_dtype: DTypeLike | None = None,
    nse: float = 0.2, n_batch: int = 0, n_dense: int = 0, unique_indices: bool = True, sorted_indices: bool = False,
    generator: Callable[..., Array] = random.uniform, **kwds: float,
) -> BCOO:  # fmt: skip
    """Return a sparse array with random values at random indices.

    Args:
        key: of `random.key`.
        shape: of the array.
        dtype: of the values; float32 by default.
        indices_dtype: of the indices; int32 by default.
        nse: number of elements in each batch; below 1, the fraction of all elements.
        n_batch: number of batch dimensions.
        n_dense: number of dense dimensions.
        unique_indices: True for indices of which none is drawn twice.
        sorted_indices: True for indices in order.
        generator: draws the values: a function of a key, a shape and a dtype.
        kwds: for the generator.

    Raises:
        ArgumentError: for more distinct indices than there are.
    """
    full = _shape(shape, "random_bcoo")
    sparse = split(full, n_batch, n_dense, "random_bcoo")
    batch, dense = full[:n_batch], full[len(full) - n_dense :]
    room = math.prod(sparse)
    count = math.ceil(nse * room) if 0 < nse < 1 else int(nse)
    if count < 0 or (unique_indices and count > room):
        raise promotion.error(
            ArgumentError, f"nse={nse} of random_bcoo for {room} elements",
            "pass at most that many, a fraction, or unique_indices=False",
        )  # fmt: skip
    index = index_type(np.int32 if indices_dtype is None else indices_dtype, "random_bcoo")
    key_data, key_indices = random.split(key)

    def draw(one: Any) -> Any:
        if not sparse:
            return fnp.zeros((count, 0), index)
        flat = random.choice(one, room, (count,), replace=not unique_indices)
        flat = fnp.sort(flat) if sorted_indices else flat
        return fnp.stack([i.astype(index) for i in fnp.unravel_index(flat, sparse)], axis=-1)

    indices = over_batches(draw, n_batch, random.split(key_indices, batch) if batch else key_indices)
    chosen = dtypes.default_float() if dtype is None else dtype
    data = generator(key_data, (*batch, count, *dense), chosen, **kwds)
    return BCOO._of(data, indices, (*sparse, *dense), is_sorted=sorted_indices, unique=unique_indices)
