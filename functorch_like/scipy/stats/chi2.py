"""The chi-squared distribution: a gamma distribution of scale 2."""

from __future__ import annotations

import math
from typing import Any

from functorch_like.scipy.stats import gamma
from functorch_like.scipy.stats.families import Family

_family = Family("the chi-squared distribution", "0.5, 2.0", lambda df: df > 0)


@_family
def logpdf(x: Any, df: Any) -> Any:
    return gamma.logpdf.standard(x / 2, df / 2) - math.log(2)


@_family
def cdf(x: Any, df: Any) -> Any:
    return gamma.cdf.standard(x / 2, df / 2)


@_family
def sf(x: Any, df: Any) -> Any:
    return gamma.sf.standard(x / 2, df / 2)


@_family
def logcdf(x: Any, df: Any) -> Any:
    return gamma.logcdf.standard(x / 2, df / 2)


@_family
def logsf(x: Any, df: Any) -> Any:
    return gamma.logsf.standard(x / 2, df / 2)


pdf = _family.exp(logpdf)
