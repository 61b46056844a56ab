"""The logistic distribution."""

from __future__ import annotations

from typing import Any

from functorch_like import numpy as fnp
from functorch_like.primitives import elementwise
from functorch_like.scipy.logarithms import logit, softplus
from functorch_like.scipy.slopes import with_slopes
from functorch_like.scipy.stats.families import Family

_family = Family("the logistic distribution", "0.5")


@_family
def logpdf(x: Any) -> Any:
    size = fnp.abs(x)
    return -size - 2 * fnp.log1p(fnp.exp(-size))


#: 1 - out would have few digits where out is near 1.
_cdf = with_slopes(elementwise.logistic, lambda out, x: out * elementwise.logistic(-x))


@_family
def cdf(x: Any) -> Any:
    return _cdf(x)


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
