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


def _bounded(x: Any) -> Any:
    """Return x, or -30 where it is less: the probability of less is 0, and exp(-x) and its derivatives may overflow."""
    return fnp.where(x < -30, -30, x)


@_family
def pdf(x: Any) -> Any:
    return fnp.exp(logpdf.standard(_bounded(x)))


@_family
def cdf(x: Any) -> Any:
    return fnp.exp(logcdf.standard(_bounded(x)))


@_family
def logcdf(x: Any) -> Any:
    return -fnp.exp(-x)


@_family
def sf(x: Any) -> Any:
    return -fnp.expm1(-fnp.exp(-_bounded(x)))


@_family
def logsf(x: Any) -> Any:
    far = x > 40  # exp(-x) is lost beside 1
    return fnp.where(far, -x, log1mexp(-fnp.exp(-fnp.where(far, 40, _bounded(x)))))


@_family
def ppf(q: Any) -> Any:
    return -fnp.log(-fnp.log(q))


@_family
def isf(q: Any) -> Any:
    return -fnp.log(-fnp.log1p(-q))
