"""The normal distribution."""

from __future__ import annotations

import math
from typing import Any

from functorch_like import numpy as fnp
from functorch_like.scipy import normal
from functorch_like.scipy.stats.families import Family

_family = Family("the normal distribution", "0.5")


@_family
def logpdf(x: Any) -> Any:
    return -0.5 * x * x - 0.5 * math.log(2 * math.pi)


@_family
def pdf(x: Any) -> Any:
    far = fnp.abs(x) > 40  # the density is 0; its derivative at infinity would be NaN
    return fnp.exp(logpdf.standard(fnp.where(far, 40, x)))


@_family
def cdf(x: Any) -> Any:
    return normal.ndtr(x)


@_family
def logcdf(x: Any) -> Any:
    return normal.log_ndtr(x)


@_family
def ppf(q: Any) -> Any:
    return normal.ndtri(q)


sf = _family.mirrored(cdf, "sf")
logsf = _family.mirrored(logcdf, "logsf")
isf = _family.mirrored(ppf, "isf")
