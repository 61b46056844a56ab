"""Cauchy's distribution."""

from __future__ import annotations

import math
from typing import Any

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.primitives.formulas.term import estrin
from functorch_like.scipy.angles import COS_SERIES, SIN_SERIES
from functorch_like.scipy.slopes import with_slopes
from functorch_like.scipy.stats.families import Family

_family = Family("Cauchy's distribution", "0.5")


@_family
def logpdf(x: Any) -> Any:
    size = fnp.abs(x)
    far = size > 1e17 if aval_of(x).dtype == dtypes.float64 else size > 1e10  # the square might overflow; the 1 is lost
    log = fnp.log1p(fnp.where(far, size, size * size))
    return -fnp.where(far, 2 * log, log) - math.log(math.pi)


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
    return _ppf(q)


def _ppf_body(q: Any) -> Any:
    low, high = q < 0.25, q > 0.75
    angle = math.pi * fnp.where(low, q, fnp.where(high, 1 - q, q - 0.5))
    square = angle * angle
    sin = angle + angle * square * estrin(square, SIN_SERIES)
    cos = 1 + square * estrin(square, COS_SERIES)
    ends = low | high
    value = fnp.where(ends, cos, sin) / fnp.where(ends, sin, cos)
    return fnp.where(low, -value, value)


_ppf = with_slopes(_ppf_body, lambda out, q: math.pi * (1 + out * out))


pdf = _family.exp(logpdf)
sf = _family.mirrored(cdf, "sf")
logsf = _family.mirrored(logcdf, "logsf")
isf = _family.mirrored(ppf, "isf")
