"""Poisson's distribution: the number of independent events, mu on average."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.numpy import promotion
from functorch_like.numpy.operands import given
from functorch_like.primitives import elementwise
from functorch_like.primitives.elementwise.incomplete_gamma import igammac
from functorch_like.scipy.log_poisson import log_poisson
from functorch_like.scipy.special import xlogy
from functorch_like.scipy.stats.families import Family
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike

_family = Family("Poisson's distribution", "1, 3.0", lambda mu: mu >= 0, discrete=True)


@_family
def logpmf(k: Any, mu: Any) -> Any:
    inside = (k >= 0) & (k < math.inf)
    k = fnp.where(inside, k, 0)
    return fnp.where(inside, log_poisson(k, mu), -math.inf)


@_family
def cdf(k: Any, mu: Any) -> Any:
    inside = (k >= 0) & (k < math.inf)
    return fnp.where(inside, igammac(fnp.where(inside, k, 0) + 1, mu), fnp.where(k < 0, 0, 1))


pmf = _family.exp(logpmf)

_MOST = 50  # up to this mean, the entropy is computed as a sum
_TERMS = 160


def entropy(mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The entropy of Poisson's distribution, in nats: mu - mu log mu + E[log k!].

    Args:
        mu: mean: array or number.
        loc: location, which does not change the entropy.

    Returns:
        An array of the shape of mu; NaN for negative ones.

    >>> round(float(ft.scipy.stats.poisson.entropy(3.0)), 4)
    1.9315
    """
    return _entropy(*given(mu, loc))


@eager_jit(ints=True)
def _entropy(mu: Any, loc: Any) -> Any:
    """Sum for small means; use an asymptotic series (R. J. Evans et al., Am. Math. Monthly 95, 1988) for large ones.

    In float64: near the limit, terms cancel of which each is 50 times as large as the entropy.
    """
    mu = promotion.align_inexact(mu, loc)[0]
    aval = aval_of(mu)
    mu = promotion.convert(mu, dtypes.float64)
    large = mu > _MOST
    small = fnp.where(large, 1, mu)[..., None]
    k = fnp.asarray(np.arange(_TERMS), aval_of(mu).dtype)
    size = elementwise.lgamma(k + 1)
    weights = fnp.exp(xlogy(k, small) - size - small)
    summed = small[..., 0] - xlogy(small[..., 0], small[..., 0]) + fnp.sum(weights * size, -1)
    far = fnp.where(large, mu, _MOST)
    inverse = 1 / far
    series = 1 / 12 + inverse * (1 / 24 + inverse * (19 / 360 + inverse * (9 / 80 + inverse * (863 / 2520))))
    asymptotic = 0.5 * fnp.log(2 * math.pi * math.e * far) - inverse * series
    found = fnp.where(mu < 0, math.nan, fnp.where(large, asymptotic, summed))
    return promotion.convert(found, aval.dtype, aval.weak_type)
