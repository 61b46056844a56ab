"""Products of two sparse arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import UnsupportedError
from functorch_like.experimental.sparse.bcoo import BCOO
from functorch_like.experimental.sparse.checks import known
from functorch_like.experimental.sparse.elements import masked, placed, stored
from functorch_like.experimental.sparse.lifting import over_batches
from functorch_like.experimental.sparse.ordering import sum_duplicates
from functorch_like.numpy import promotion


def sparse_dot(lhs: BCOO, rhs: BCOO, contract: Any, batch: Any, dtype: Any) -> BCOO:
    """Return the product of two sparse operands.

    Where indices are known, the pairs of elements that match are found first, and only these are multiplied. Under
    transformations that hide them every pair is compared: nse of lhs times nse of rhs.

    Args:
        lhs, rhs: the operands.
        contract: pairs of axes that are summed.
        batch: pairs of axes that are batches: the batch dimensions of both, in order.
        dtype: of the result, or None.

    Raises:
        UnsupportedError: for dense dimensions, and batch dimensions that are not batches of the product.
    """
    n = lhs.n_batch
    if lhs.n_dense or rhs.n_dense or n != rhs.n_batch or list(batch) != [(k, k) for k in range(n)]:
        raise promotion.error(
            UnsupportedError, f"the product of {lhs!r} and {rhs!r} with the batch axes {list(batch)}",
            "use arrays without dense dimensions, whose batch dimensions are those of the product "
            "(.update_layout(n_batch=..., n_dense=0)), or make one operand dense",
        )  # fmt: skip
    pairs = [(a - n, b - n) for a, b in contract]
    x, y = promotion.promote(lhs.data, rhs.data)
    if dtype is not None:
        x, y = x.astype(dtype), y.astype(dtype)
    free = [[k for k in range(m.n_sparse) if k not in [p[side] for p in pairs]] for side, m in enumerate((lhs, rhs))]
    out = [m._sparse_shape[k] for m, part in ((lhs, free[0]), (rhs, free[1])) for k in part]
    rows = None if n else _meetings(lhs, rhs, pairs)
    columns = [([p[side] for p in pairs], free[side]) for side in (0, 1)]

    def one(d: Any, i: Any, e: Any, j: Any) -> Any:
        if rows is not None:
            i, j, d, e = i[rows[0]], j[rows[1]], d[rows[0]], e[rows[1]]
            keep = fnp.ones(len(rows[0]), bool)
            flat = lambda z: z
        else:
            grid = (aval_of(i).shape[0], aval_of(j).shape[0])
            flat = lambda z: fnp.reshape(
                fnp.broadcast_to(z, (*grid, *aval_of(z).shape[2:])), (-1, *aval_of(z).shape[2:])
            )
            keep = stored(i, lhs._sparse_shape)[:, None] & stored(j, rhs._sparse_shape)[None]
            i, j, d, e = i[:, None], j[None], d[:, None], e[None]
            for a, b in pairs:
                keep = keep & (i[..., a] == j[..., b])
            keep = flat(keep)
        at = fnp.concatenate([flat(i[..., _at(columns[0][1])]), flat(j[..., _at(columns[1][1])])], axis=-1)
        return masked(flat(d) * flat(e), keep), placed(at, keep, out)

    data, indices = over_batches(one, n, x, lhs.indices, y, rhs.indices)
    made = BCOO._of(data, indices, out)
    room = math.prod(out)
    return sum_duplicates(made, None if rows is not None else min(made.nse, room), False)


def _at(columns: list[int]) -> np.ndarray[Any, Any]:
    return np.array(columns, int)


def _meetings(lhs: BCOO, rhs: BCOO, pairs: list[tuple[int, int]]) -> tuple[Any, Any] | None:
    """Return the positions of elements that match, or None where indices are not known."""
    i, j = known(lhs.indices), known(rhs.indices)
    if i is None or j is None:
        return None
    left: Any = np.flatnonzero((i < np.array(lhs._sparse_shape)).all(-1))
    right: Any = np.flatnonzero((j < np.array(rhs._sparse_shape)).all(-1))
    sizes = tuple(lhs._sparse_shape[a] for a, _ in pairs)
    key = lambda rows, columns: np.ravel_multi_index(tuple(rows[:, columns].T.astype(np.int64)), sizes)
    if not sizes:
        return np.repeat(left, len(right)), np.tile(right, len(left))
    a: Any
    b: Any
    a, b = key(i[left], [p for p, _ in pairs]), key(j[right], [q for _, q in pairs])
    order = np.argsort(b, kind="stable")
    start, stop = (np.searchsorted(b[order], a, side) for side in ("left", "right"))
    counts = stop - start
    offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return left[np.repeat(np.arange(len(a)), counts)], right[order[np.repeat(start, counts) + offsets]]
