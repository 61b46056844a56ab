"""The multinomial distribution: how often each outcome of n trials occurs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from functorch_like import numpy as fnp
from functorch_like.numpy import promotion
from functorch_like.numpy.operands import given
from functorch_like.scipy.log_binomial import log_shares
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """log of the probability of counts of outcomes.

    Args:
        x: counts (..., k).
        n: number of trials.
        p: probabilities (..., k), which add up to 1.

    Returns:
        An array of the leading dimensions; -inf where the counts are negative, not whole, or do not add up to n.

    >>> round(float(ft.scipy.stats.multinomial.logpmf([1, 1], 2, [0.5, 0.5])), 4)
    -0.6931
    """
    return _logpmf(*given(x, n, p))


@eager_jit(ints=True)
def _logpmf(x: Any, n: Any, p: Any) -> Any:
    x, n, p = map(promotion.to_inexact, promotion.promote(x, n, p))
    x, p = promotion.promote_and_broadcast(x, p)
    inside = fnp.all((x >= 0) & (fnp.floor(x) == x), -1) & (fnp.sum(x, -1) == n)
    counts = fnp.where(inside[..., None], x, 0)
    value = log_shares(counts, p, -1, 0)
    return fnp.where(inside, value, -math.inf)


def pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The probability of counts of outcomes; arguments as for `logpmf`.

    >>> round(float(ft.scipy.stats.multinomial.pmf([1, 1], 2, [0.5, 0.5])), 4)
    0.5
    """
    return fnp.exp(logpmf(x, n, p))
