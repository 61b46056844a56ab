"""`jax.numpy.linalg`: functions with JAX's options."""

from __future__ import annotations

from typing import Any

from functorch_like import lax
from functorch_like import numpy as fnp
from functorch_like.numpy.linalg.decompositions import SVDResult


def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False, *, subset_by_index: Any = None
) -> Any:
    """Return `fnp.linalg.svd`; with `subset_by_index=(start, end)` the singular values `start` to `end - 1` only."""
    if subset_by_index is None:
        return fnp.linalg.svd(a, full_matrices, compute_uv, hermitian)  # type: ignore[call-overload]
    options: dict[str, Any] = {"full_matrices": full_matrices, "compute_uv": compute_uv}
    out = lax.linalg.svd(fnp.asarray(a), subset_by_index=subset_by_index, **options)
    return SVDResult(*out) if compute_uv else out
