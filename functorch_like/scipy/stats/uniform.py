"""The uniform distribution, on [loc, loc + scale]."""

from __future__ import annotations

import math
from typing import Any

from functorch_like import numpy as fnp
from functorch_like.lax import stop_gradient
from functorch_like.scipy.stats.families import Family

_family = Family("the uniform distribution on [loc, loc + scale]", "0.5")


@_family
def logpdf(x: Any) -> Any:
    return fnp.where((x < 0) | (x > 1), -math.inf, 0 * stop_gradient(x))  # NaN stays


@_family
def cdf(x: Any) -> Any:
    return fnp.clip(x, 0, 1)


@_family
def sf(x: Any) -> Any:
    return fnp.clip(1 - x, 0, 1)


@_family
def logcdf(x: Any) -> Any:
    return fnp.where(x < 0, -math.inf, fnp.log(fnp.clip(fnp.where(x < 0, 1, x), 0, 1)))


@_family
def logsf(x: Any) -> Any:
    return fnp.where(x > 1, -math.inf, fnp.log1p(-fnp.clip(fnp.where(x > 1, 0, x), 0, 1)))


@_family
def ppf(q: Any) -> Any:
    return q


@_family
def isf(q: Any) -> Any:
    return 1 - q


pdf = _family.exp(logpdf)
