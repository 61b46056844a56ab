"""Dirichlet's distribution of shares that add up to 1."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.operands import given
from functorch_like.scipy.log_binomial import log_shares
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


def logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """log of the density of Dirichlet's distribution.

    Args:
        x: shares (k, ...), or all but the last of them, (k - 1, ...).
        alpha: parameters (k,), above 0.

    Returns:
        An array of the further dimensions; -inf where the shares are negative or do not add up to 1.

    Raises:
        ShapeError: for other shapes.

    >>> round(float(ft.scipy.stats.dirichlet.logpdf([0.2, 0.8], [1.0, 2.0])), 4)
    0.47
    """
    x, alpha = given(x, alpha)
    k = aval_of(alpha).shape[0] if aval_of(alpha).ndim == 1 else -1
    if not aval_of(x).ndim or aval_of(x).shape[0] not in (k, k - 1):
        raise promotion.error(
            ShapeError, f"dirichlet.logpdf of {aval_of(x)!r} with alpha {aval_of(alpha)!r}", "give (k, ...) and (k,)"
        )
    return _logpdf(x, alpha)


@eager_jit
def _logpdf(x: Any, alpha: Any) -> Any:
    x, alpha = map(promotion.to_inexact, promotion.promote(x, alpha))
    if aval_of(x).shape[0] != aval_of(alpha).shape[0]:
        x = fnp.concatenate([x, 1 - fnp.sum(x, 0, keepdims=True)])
    off = fnp.abs(fnp.sum(x, 0) - 1)
    inside = fnp.all(x >= 0, 0) & (off <= 50 * float(fnp.finfo(aval_of(x).dtype).eps) * aval_of(x).shape[0])
    powers = fnp.reshape(alpha, (-1,) + (1,) * (aval_of(x).ndim - 1))
    powers, shares = promotion.promote_and_broadcast(powers, fnp.where(inside, x, 0.5))
    value = log_shares(powers, shares, 0, 1)
    return fnp.where(fnp.all(alpha > 0), fnp.where(inside, value, -math.inf), math.nan)


def pdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """The density of Dirichlet's distribution; arguments as for `logpdf`.

    >>> round(float(ft.scipy.stats.dirichlet.pdf([0.2, 0.8], [1.0, 2.0])), 4)
    1.6
    """
    return fnp.exp(logpdf(x, alpha))
