"""Products of sparse matrices whose rows and columns are separate vectors, as in COO and CSR, with dense arrays.

A pair of vectors is read faster than the two columns of the indices of a BCOO, which lie side by side in memory.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functorch_like import dtypes, lax
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.experimental.sparse.elements import masked, spread

#: Elements of a block, and from how many elements on running sums are taken of blocks.
_BLOCK, _LONG = 8, 2**15


def row_numbers(indptr: Any, nse: int, dtype: Any) -> Any:
    """Return the row of each element of a matrix in compressed rows; for padding, the number of rows.

    Args:
        indptr: (rows + 1,).
        nse: number of elements.
        dtype: of the result.
    """
    size = nse if nse < _LONG else nse + -nse % _BLOCK
    marks = fnp.zeros(size, dtype).at[indptr[1:]].add(1, indices_are_sorted=True, mode="drop")
    if nse < _LONG:
        return fnp.cumsum(marks, dtype=dtype)
    # Sums of the first elements of each block, for all blocks at once, and running sums of the blocks' totals. On CPUs
    # this takes half of the time of running sums of all elements.
    blocks = fnp.reshape(marks, (-1, 1, _BLOCK))
    inner = fnp.sum(fnp.where(np.tri(_BLOCK, dtype=bool), blocks, fnp.zeros_like(blocks)), axis=-1, dtype=dtype)
    totals = inner[:, -1]
    before = fnp.cumsum(totals, dtype=dtype) - totals
    return fnp.reshape(inner + before[:, None], (-1,))[:nse]


def element_product(data: Any, row: Any, col: Any, dense: Any, sparse: tuple[int, ...], axis: int) -> Any:
    """Return the product of a sparse matrix, or its transpose, with a dense array that sums over the latter's axis 0.

    Args:
        data: (nse,).
        row: (nse,).
        col: (nse,).
        dense: (sparse[axis], ...), of the dtype of data.
        sparse: sizes of the matrix.
        axis: the axis of the matrix that is summed.

    Returns:
        An array (sparse[1 - axis], ...).
    """
    dtype, rest = aval_of(data).dtype, aval_of(dense).shape[1:]
    out = fnp.zeros((sparse[1 - axis], *rest), dtype)
    if not math.prod(sparse):
        return out
    wide = lambda x: x.astype("int32") if aval_of(x).dtype.itemsize < 4 else x  # so that padding is out of bounds
    places = wide(row), wide(col)
    inside = [(x >= 0) & (x < np.array(n, aval_of(x).dtype)) for x, n in zip(places, sparse, strict=True)]
    # Zeros are added for padding, whatever position is read and written for it.
    values = masked(data, inside[0] & inside[1])
    window = tuple(range(1, len(rest) + 1))
    rows = lax.gather(
        dense, places[axis][:, None], lax.GatherDimensionNumbers(window, (0,), (0,)), (1, *rest), mode="clip"
    )
    terms = fnp.multiply(spread(values, rows), rows)
    add = lax.scatter_max if dtype == dtypes.bool_ else lax.scatter_add
    numbers = lax.ScatterDimensionNumbers(window, (0,), (0,))
    return add(out, places[1 - axis][:, None], terms, numbers, mode="drop")
