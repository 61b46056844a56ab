"""The logistic distribution."""

from __future__ import annotations

from typing import Any

from functorch_like import numpy as fnp
from functorch_like.primitives import elementwise
from functorch_like.scipy.logarithms import logit, softplus
from functorch_like.scipy.stats.families import Family

_family = Family("the logistic distribution", "0.5")


@_family
def logpdf(x: Any) -> Any:
    size = fnp.abs(x)
    return -size - 2 * fnp.log1p(fnp.exp(-size))


@_family
def cdf(x: Any) -> Any:
    return elementwise.logistic(x)


@_family
def logcdf(x: Any) -> Any:
    return -softplus(-x)


@_family
def ppf(q: Any) -> Any:
    return logit(q)


pdf = _family.exp(logpdf)
sf = _family.mirrored(cdf, "sf")
logsf = _family.mirrored(logcdf, "logsf")
isf = _family.mirrored(ppf, "isf")
