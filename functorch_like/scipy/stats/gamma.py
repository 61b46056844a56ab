"""The gamma distribution."""

from __future__ import annotations

import math
from typing import Any

from functorch_like import numpy as fnp
from functorch_like.primitives.elementwise.incomplete_gamma import igamma, igammac
from functorch_like.scipy.log_gamma_tails import log_lower_gamma, log_upper_gamma
from functorch_like.scipy.log_poisson import log_gamma_density
from functorch_like.scipy.stats.families import Family

_family = Family("the gamma distribution", "0.5, 2.0", lambda a: a > 0)


@_family
def logpdf(x: Any, a: Any) -> Any:
    inside = x >= 0
    y = fnp.where(inside, x, 1)
    inside &= (x < math.inf) & (a != math.inf)
    y, a = fnp.where(inside, y, 1), fnp.where(a == math.inf, 1, a)
    return fnp.where(inside, log_gamma_density(a, y), fnp.where(x != x, x, -math.inf))


@_family
def cdf(x: Any, a: Any) -> Any:
    return igamma(a, fnp.where(x < 0, 0, x))


@_family
def sf(x: Any, a: Any) -> Any:
    return igammac(a, fnp.where(x < 0, 0, x))


@_family
def logcdf(x: Any, a: Any) -> Any:
    p, q = cdf.standard(x, a), sf.standard(x, a)
    low = p < 0.5
    return fnp.where(low, log_lower_gamma(a, x, fnp.where(low, p, 1)), fnp.log1p(-fnp.where(low, 0, q)))


@_family
def logsf(x: Any, a: Any) -> Any:
    p, q = cdf.standard(x, a), sf.standard(x, a)
    low = p < 0.5
    return fnp.where(low, fnp.log1p(-fnp.where(low, p, 0)), log_upper_gamma(a, x, fnp.where(low, 1, q)))


pdf = _family.exp(logpdf)
