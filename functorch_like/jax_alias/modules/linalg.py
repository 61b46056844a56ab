"""`jax.numpy.linalg`: functions with JAX's options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import functorch_like as ft
from functorch_like import lax
from functorch_like import numpy as fnp
from functorch_like.numpy.linalg.decompositions import SVDResult


def multi_dot(arrays: Sequence[Any], *, precision: Any = None) -> Any:
    """Return `fnp.linalg.multi_dot`, its products of a precision."""
    if precision is None:
        return fnp.linalg.multi_dot(arrays)
    with ft.default_matmul_precision(precision):
        return fnp.linalg.multi_dot(arrays)


def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False, *, subset_by_index: Any = None
) -> Any:
    """Return `fnp.linalg.svd`; with `subset_by_index=(start, end)` the singular values `start` to `end - 1` only."""
    if subset_by_index is None:
        return fnp.linalg.svd(a, full_matrices, compute_uv, hermitian)  # type: ignore[call-overload]
    options: dict[str, Any] = {"full_matrices": full_matrices, "compute_uv": compute_uv}
    out = lax.linalg.svd(fnp.asarray(a), subset_by_index=subset_by_index, **options)
    return SVDResult(*out) if compute_uv else out


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
