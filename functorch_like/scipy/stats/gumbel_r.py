"""Gumbel's distribution of maxima."""

from __future__ import annotations

import math
from typing import Any

from functorch_like import numpy as fnp
from functorch_like.scipy.logarithms import log1mexp
from functorch_like.scipy.stats.families import Family

_family = Family("Gumbel's distribution of maxima", "0.5")


@_family
def logpdf(x: Any) -> Any:
    least = x == -math.inf
    x = fnp.where(least, 0, x)
    return fnp.where(least, -math.inf, -x - fnp.exp(-x))


@_family
def logcdf(x: Any) -> Any:
    return -fnp.exp(-x)


@_family
def sf(x: Any) -> Any:
    return -fnp.expm1(-fnp.exp(-x))


@_family
def logsf(x: Any) -> Any:
    far = x > 40  # exp(-x) is lost beside 1
    return fnp.where(far, -x, log1mexp(-fnp.exp(-fnp.where(far, 40, x))))


@_family
def ppf(q: Any) -> Any:
    return -fnp.log(-fnp.log(q))


@_family
def isf(q: Any) -> Any:
    return -fnp.log(-fnp.log1p(-q))


pdf = _family.exp(logpdf)
cdf = _family.exp(logcdf)
