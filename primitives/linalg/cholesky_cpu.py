"""cholesky of many small matrices, written out: calling LAPACK for each takes longer than the work itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import SampleInput, aval_of
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.base.lowering import Alternative
from functorch_like.primitives.linalg.makers import Stack

#: Up to this size, from so many matrices on: five to twenty times faster. Larger ones would be faster too
#: (docs/lowerings.md), but take seconds to compile.
SMALL, MANY = 3, 1024


def _takes(ins: Sequence[ShapedArray], outs: Sequence[ShapedArray], **_: Any) -> bool:
    (x,) = ins
    real = x.dtype in (dtypes.float32, dtypes.float64)
    return real and 2 <= x.shape[-1] <= SMALL and math.prod(x.shape[:-2]) >= MANY


def _columns(x: Any) -> Any:
    """Column by column, on the entries as vectors over all matrices; NaN where a pivot is not positive, as LAPACK."""
    shape = aval_of(x).shape
    n, count = shape[-1], math.prod(shape[:-2])
    flat = structural.transpose(structural.reshape(x, shape=(count, n * n)), permutation=(1, 0))

    def entry(i: int, j: int) -> Any:
        at = n * i + j
        return structural.reshape(
            structural.slice(flat, start_indices=(at, 0), limit_indices=(at + 1, count), strides=None), shape=(count,)
        )

    factor: dict[tuple[int, int], Any] = {}
    good = None
    for j in range(n):
        for i in range(j, n):
            rest = entry(i, j)
            for k in range(j):
                rest = elementwise.sub(rest, elementwise.mul(factor[i, k], factor[j, k]))
            if i == j:
                positive = elementwise.gt(rest, structural.full_like(rest, 0))
                good = positive if good is None else elementwise.and_(good, positive)
                factor[i, j] = elementwise.sqrt(rest)
            else:
                factor[i, j] = elementwise.div(rest, factor[j, j])
    zero = structural.full((count,), 0, aval_of(x).dtype)
    bad = structural.full_like(zero, np.nan)
    kept = [elementwise.select_n(good, bad, factor.get((i, j), zero)) for i in range(n) for j in range(n)]
    joined = structural.concatenate(*[structural.reshape(v, shape=(1, count)) for v in kept], dimension=0)
    return structural.reshape(structural.transpose(joined, permutation=(1, 0)), shape=shape)


def _edges() -> list[tuple[SampleInput, bool]]:
    spread = lambda x: x @ np.swapaxes(x, -1, -2) + np.eye(x.shape[-1], dtype=x.dtype)
    one = lambda shape, dtype: SampleInput((ShapedArray(shape, dtype),), prepare=spread)
    four = [[[1, 9], [2, 1]], [[4, 7], [2, 5]], [[0, 0], [0, 1]], [[-1, 0], [0, 1]]]  # one of them is definite
    broken = np.tile(np.array(four, np.float32), (MANY // 4, 1, 1))
    return [
        (one((MANY, SMALL, SMALL), "float32"), True),
        (one((MANY // 2, 2, 3, 3), "float64"), True),
        (SampleInput((broken,), smooth=False), True),
        (one((MANY - 1, 2, 2), "float32"), False),
        (one((MANY, SMALL + 1, SMALL + 1), "float32"), False),
        (SampleInput((ShapedArray((MANY, 1, 1), "float32"),), domain=(1, 2)), False),
    ]


WRITTEN_OUT = Alternative(
    "written out, column by column",
    f"at least {MANY} real matrices of size 2 to {SMALL}",
    _takes,
    lambda e, x: Stack(e, e.ins[0].ndim - 2).inline(_columns, x),
    _edges,
    slow_compile=True,
)
