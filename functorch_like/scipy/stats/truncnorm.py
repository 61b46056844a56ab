"""The normal distribution between a and b, which are in units of the scale, counted from the location."""

from __future__ import annotations

import math
from typing import Any

from functorch_like import numpy as fnp
from functorch_like.scipy import normal
from functorch_like.scipy.logarithms import log1mexp, log_minus
from functorch_like.scipy.stats import norm
from functorch_like.scipy.stats.families import Family

_family = Family("the normal distribution between a and b", "0.5, -1.0, 2.0", lambda a, b: a < b)


def _mass(a: Any, b: Any) -> Any:
    """Return the log of the normal probability between a and b, on the side where both tails are small."""
    right, left = a > 0, b <= 0
    low, high = fnp.where(right, -b, a), fnp.where(right, -a, b)
    tail = right | left
    low_, high_ = fnp.where(tail, low, -2), fnp.where(tail, high, -1)
    middle = fnp.log1p(-normal.ndtr(fnp.where(tail, -1, a)) - normal.ndtr(fnp.where(tail, -1, -b)))
    return fnp.where(tail, log_minus(normal.log_ndtr(high_), normal.log_ndtr(low_)), middle)


@_family
def logpdf(x: Any, a: Any, b: Any) -> Any:
    inside = (x >= a) & (x <= b)
    value = norm.logpdf.standard(fnp.where(inside, x, 0)) - _mass(a, b)
    return fnp.where(inside, value, fnp.where(x != x, x, -math.inf))


def _part(low: Any, high: Any, a: Any, b: Any, other: Any) -> Any:
    """Return the log of the share of [low, high]; near 1 it is computed from the share of the rest, `other`."""
    whole = _mass(a, b)
    share, rest = _mass(low, high) - whole, _mass(*other) - whole
    most = share > -0.1
    return fnp.where(most, log1mexp(fnp.where(most, fnp.minimum(rest, 0), -1)), share)


@_family
def logcdf(x: Any, a: Any, b: Any) -> Any:
    x = fnp.clip(x, a, b)
    return _part(a, x, a, b, (x, b))


@_family
def logsf(x: Any, a: Any, b: Any) -> Any:
    x = fnp.clip(x, a, b)
    return _part(x, b, a, b, (a, x))


pdf = _family.exp(logpdf)
cdf = _family.exp(logcdf)
sf = _family.exp(logsf)
