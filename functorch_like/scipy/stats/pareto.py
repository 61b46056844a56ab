"""Pareto's distribution."""

from __future__ import annotations

import math
from typing import Any

from functorch_like import numpy as fnp
from functorch_like.scipy.logarithms import log1mexp
from functorch_like.scipy.stats.families import Family

_family = Family("Pareto's distribution", "1.5, 2.0", lambda b: b > 0)


@_family
def logpdf(x: Any, b: Any) -> Any:
    inside = x >= 1
    tail = fnp.log(b) - (b + 1) * fnp.log(fnp.where(inside, x, 1))
    return fnp.where(inside, tail, fnp.where(x != x, x, -math.inf))


@_family
def cdf(x: Any, b: Any) -> Any:
    return -fnp.expm1(logsf.standard(x, b))


@_family
def logcdf(x: Any, b: Any) -> Any:
    return log1mexp(logsf.standard(x, b))


@_family
def logsf(x: Any, b: Any) -> Any:
    certain = (x < 1) | ((x == 1) & (b == math.inf))
    return fnp.where(certain, 0, -fnp.where(certain, 1, b) * fnp.log(fnp.where(certain, 1, x)))


@_family
def ppf(q: Any, b: Any) -> Any:
    return _quantile(fnp.log1p(-q), b)


@_family
def isf(q: Any, b: Any) -> Any:
    return _quantile(fnp.log(q), b)


def _quantile(log_tail: Any, b: Any) -> Any:
    """Return the x above which a part of the distribution lies; infinity where nothing does, for infinite b, too."""
    nothing = (log_tail == -math.inf) & (b == math.inf)
    return fnp.exp(-log_tail / fnp.where(nothing, 1, b))


pdf = _family.exp(logpdf)
sf = _family.exp(logsf)
