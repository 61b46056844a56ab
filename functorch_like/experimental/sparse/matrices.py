"""Checks of the operands of formats that store one matrix: `COO`, `CSR` and `CSC`."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import AxisError, ShapeError
from functorch_like.numpy import promotion


def dense_matrix(mat: Any, what: str) -> Any:
    """Return a dense matrix as an array.

    Raises:
        ShapeError: for another number of dimensions.
    """
    result: Any = mat if promotion.is_array(mat) else fnp.asarray(mat)
    if aval_of(result).ndim != 2:
        raise promotion.error(
            ShapeError, f"{what} takes a matrix, got {aval_of(result)!r}", "use BCOO for other ranks, or vmap"
        )
    return result


def is_swap(axes: Sequence[int] | None, mat: Any) -> bool:
    """Return True for a permutation that exchanges the two axes of a matrix, False for one that keeps them.

    Raises:
        AxisError: for anything else.
    """
    if axes is None:
        return True
    try:
        order = [operator.index(a) % 2 if -2 <= operator.index(a) < 2 else a for a in axes]
    except TypeError:
        order = []
    if sorted(order) != [0, 1]:
        raise promotion.error(AxisError, f"axes {axes!r} of {mat!r}", "give (1, 0), (0, 1) or nothing")
    return order == [1, 0]
