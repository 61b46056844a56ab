"""`jax.lax.linalg`."""

from __future__ import annotations

from typing import Any

from functorch_like import numpy as fnp
from functorch_like.lax import linalg


def ormqr(a: Any, taus: Any, c: Any, *, left: bool = True, transpose: bool = False) -> Any:
    """Return the product of a matrix and the square Q whose reflections `geqrf` returned.

    Args:
        a: (..., m, n), the Householder vectors below the diagonal.
        taus: (..., k), their factors.
        c: (..., m, p), or (..., p, m) where Q stands on the right.
        left: whether the product is Q c; else it is c Q.
        transpose: whether Q is replaced by its conjugate transpose.
    """
    *batch, m, n = a.shape
    wide = fnp.concatenate([a, fnp.zeros((*batch, m, max(m - n, 0)), a.dtype)], -1)[..., :m]
    factors = fnp.concatenate([taus, fnp.zeros((*batch, m - taus.shape[-1]), taus.dtype)], -1)
    q = linalg.householder_product(wide, factors)
    q = fnp.matrix_transpose(fnp.conj(q)) if transpose else q
    return q @ c if left else c @ q
