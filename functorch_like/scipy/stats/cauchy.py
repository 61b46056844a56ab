"""Cauchy's distribution."""

from __future__ import annotations

import math
from typing import Any

from functorch_like import numpy as fnp
from functorch_like.scipy.stats.families import Family

_family = Family("Cauchy's distribution", "0.5")


@_family
def logpdf(x: Any) -> Any:
    size = fnp.abs(x)
    far = size > 1
    near, inverse = fnp.where(far, 1, x), 1 / fnp.where(far, size, 1)  # neither square overflows
    tail = 2 * fnp.log(inverse) - fnp.log1p(inverse * inverse)
    return fnp.where(far, tail, -fnp.log1p(near * near)) - math.log(math.pi)


@_family
def cdf(x: Any) -> Any:
    return fnp.arctan2(1, -x) / math.pi


@_family
def logcdf(x: Any) -> Any:
    right = x > 0
    least = fnp.arctan2(1, fnp.abs(x)) / math.pi  # from the less probable side
    return fnp.where(right, fnp.log1p(-least), fnp.log(least))


@_family
def ppf(q: Any) -> Any:
    """tan(pi (q - 1/2)); near 0 and 1, where that is infinite, by the cotangent."""
    low, high = q < 0.25, q > 0.75
    end = fnp.where(low, q, fnp.where(high, 1 - q, 0.25))
    tail = 1 / fnp.tan(math.pi * end)
    middle = fnp.tan(math.pi * (fnp.where(low | high, 0.5, q) - 0.5))
    return fnp.where(low, -tail, fnp.where(high, tail, middle))


pdf = _family.exp(logpdf)
sf = _family.mirrored(cdf, "sf")
logsf = _family.mirrored(logcdf, "logsf")
isf = _family.mirrored(ppf, "isf")
