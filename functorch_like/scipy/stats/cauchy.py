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
    far = _is_far(size)
    near = fnp.where(far, 1, size)
    return -fnp.where(far, 2 * fnp.log(fnp.where(far, size, 1)), fnp.log1p(near * near)) - math.log(math.pi)


def _is_far(size: Any) -> Any:
    """Return True where 1 is lost beside the square, which might overflow."""
    return size > 1e17 if aval_of(size).dtype == dtypes.float64 else size > 1e10


@_family
def cdf(x: Any) -> Any:
    return fnp.arctan2(1, -x) / math.pi


@_family
def logcdf(x: Any) -> Any:
    right = x > 0
    size = fnp.where(right, x, -x)  # with a slope at 0
    far = _is_far(size)
    near = fnp.where(far, 1, size)
    least = fnp.where(far, 1 / (math.pi * fnp.where(far, size, 1)), fnp.arctan2(1, near) / math.pi)  # the smaller part
    tail = -fnp.log(math.pi * fnp.where(far, size, 1))  # its logarithm, where it might be 0
    left = fnp.where(far, tail, fnp.log(fnp.where(far, 1, least)))
    return fnp.where(right, fnp.log1p(-least), left)


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
