"""The exponential distribution."""

from __future__ import annotations

import math
from typing import Any

from functorch_like import numpy as fnp
from functorch_like.scipy.logarithms import log1mexp
from functorch_like.scipy.stats.families import Family

_family = Family("the exponential distribution", "0.5")


@_family
def logpdf(x: Any) -> Any:
    return fnp.where(x < 0, -math.inf, -x)


@_family
def cdf(x: Any) -> Any:
    return -fnp.expm1(logsf.standard(x))


@_family
def logcdf(x: Any) -> Any:
    return log1mexp(logsf.standard(x))


@_family
def logsf(x: Any) -> Any:
    return fnp.where(x < 0, 0, -x)


@_family
def ppf(q: Any) -> Any:
    return -fnp.log1p(-q)


@_family
def isf(q: Any) -> Any:
    return -fnp.log(q)


pdf = _family.exp(logpdf)
sf = _family.exp(logsf)
