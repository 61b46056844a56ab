"""`jax.numpy.linalg`: functions with JAX's options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import functorch_like as ft
from functorch_like import numpy as fnp


def multi_dot(arrays: Sequence[Any], *, precision: Any = None) -> Any:
    """Return `fnp.linalg.multi_dot`, its products of a precision."""
    if precision is None:
        return fnp.linalg.multi_dot(arrays)
    with ft.default_matmul_precision(precision):
        return fnp.linalg.multi_dot(arrays)


def lstsq(a: Any, b: Any, rcond: float | None = None, *, numpy_resid: bool = False) -> Any:
    """Return `fnp.linalg.lstsq`.

    Args:
        a, b, rcond: as there.
        numpy_resid: return no sums of squares where NumPy returns none: for a rank below n, and m <= n. The rank must
            be known, so it does not work in a jitted function.
    """
    x, squares, rank, values = fnp.linalg.lstsq(a, b, rcond)
    if numpy_resid:
        rows, columns = fnp.shape(a)
        squares = fnp.zeros((0,), squares.dtype) if rows <= columns or int(rank) < columns else squares
    return x, squares, rank, values
