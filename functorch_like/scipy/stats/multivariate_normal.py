"""The normal distribution of vectors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.operands import given
from functorch_like.scipy.linalg import solve_triangular
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


def logpdf(x: ArrayLike, mean: ArrayLike = 0, cov: ArrayLike | None = 1, allow_singular: bool | None = None) -> Array:
    """log of the density of the normal distribution of vectors.

    Args:
        x: vectors (..., n), or numbers.
        mean: (..., n); a number for all.
        cov: covariances (..., n, n); (n,) for a diagonal one; a number for its multiple of the identity.
        allow_singular: take the density on the subspace where the distribution lies, and -inf outside of it. Otherwise
            it is NaN where the matrix is not positive definite.

    Returns:
        An array of the leading dimensions.

    Raises:
        ShapeError: for shapes that do not fit.

    >>> round(float(ft.scipy.stats.multivariate_normal.logpdf(fnp.zeros(2), fnp.zeros(2), fnp.eye(2))), 4)
    -1.8379
    """
    x, mean, cov = given(x, mean, cov)
    shapes = [aval_of(a).shape for a in (x, mean, cov)]
    n = shapes[2][-1] if shapes[2] else shapes[1][-1] if shapes[1] else shapes[0][-1] if shapes[0] else 1
    square = len(shapes[2]) < 2 or shapes[2][-2] == n
    if not square or any(s and s[-1] not in (1, n) for s in shapes[:2]):
        raise promotion.error(
            ShapeError,
            f"multivariate_normal.logpdf of {aval_of(x)!r}, mean {aval_of(mean)!r}, cov {aval_of(cov)!r}",
            "give (..., n), (..., n) and (..., n, n)",
        )
    return _logpdf(x, mean, cov, n=n, singular=bool(allow_singular))


@eager_jit(static=("n", "singular"), ints=True)
def _logpdf(x: Any, mean: Any, cov: Any, n: int, singular: bool) -> Any:
    x, mean, cov = map(promotion.to_inexact, promotion.promote(x, mean, cov))
    gap = x - mean
    gap = gap if aval_of(gap).ndim else fnp.reshape(gap, (1,))
    gap = promotion.broadcast(gap, (*aval_of(gap).shape[:-1], n))
    if aval_of(cov).ndim < 2:
        cov = cov * fnp.eye(n, dtype=aval_of(cov).dtype)
    lead = promotion.broadcast_shapes(aval_of(gap).shape[:-1], aval_of(cov).shape[:-2])
    gap = promotion.broadcast(gap, (*lead, n))
    if singular:
        values, vectors = fnp.linalg.eigh(cov)
        eps = float(fnp.finfo(aval_of(values).dtype).eps)
        mask = values > 1e3 * eps * fnp.max(fnp.abs(values), -1, keepdims=True)
        size = fnp.where(mask, values, 1)
        parts = fnp.squeeze(fnp.matmul(gap[..., None, :], vectors), -2)
        beside = fnp.sum(fnp.where(mask, 0, parts * parts), -1) > 1e3 * eps * (1 + fnp.sum(gap * gap, -1))
        distance = fnp.sum(fnp.where(mask, parts * parts / size, 0), -1)
        spread, rank = 0.5 * fnp.sum(fnp.log(size), -1), fnp.sum(fnp.where(mask, fnp.ones_like(size), 0), -1)
        value = -0.5 * distance - spread - 0.5 * math.log(2 * math.pi) * rank
        return fnp.where(beside, -math.inf, value)
    root = fnp.linalg.cholesky(cov)
    parts = solve_triangular(root, gap[..., None], lower=True)[..., 0]
    spread = fnp.sum(fnp.log(fnp.diagonal(root, axis1=-2, axis2=-1)), -1)
    return -0.5 * fnp.sum(parts * parts, -1) - spread - 0.5 * n * math.log(2 * math.pi)


def pdf(x: ArrayLike, mean: ArrayLike = 0, cov: ArrayLike | None = 1, allow_singular: bool | None = None) -> Array:
    """The density of the normal distribution of vectors; arguments as for `logpdf`.

    >>> round(float(ft.scipy.stats.multivariate_normal.pdf(fnp.zeros(2), fnp.zeros(2), fnp.eye(2))), 4)
    0.1592
    """
    return fnp.exp(logpdf(x, mean, cov, allow_singular))
