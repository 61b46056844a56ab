"""Laplace's distribution."""

from __future__ import annotations

import math
from typing import Any

from functorch_like import numpy as fnp
from functorch_like.scipy.stats.families import Family

_family = Family("Laplace's distribution", "0.5")


@_family
def logpdf(x: Any) -> Any:
    return -fnp.abs(x) - math.log(2)


def _size(x: Any) -> Any:
    """Return |x| with the slope 1 at 0, where the functions of it have a derivative."""
    return fnp.where(x < 0, -x, x)


@_family
def cdf(x: Any) -> Any:
    half = 0.5 * fnp.exp(-_size(x))
    return fnp.where(x < 0, half, 1 - half)


@_family
def logcdf(x: Any) -> Any:
    size = _size(x)
    return fnp.where(x < 0, -size - math.log(2), fnp.log1p(-0.5 * fnp.exp(-size)))


@_family
def ppf(q: Any) -> Any:
    low = q < 0.5
    return fnp.where(low, fnp.log(2 * fnp.where(low, q, 0.5)), -fnp.log(2 * (1 - fnp.where(low, 0.5, q))))


pdf = _family.exp(logpdf)
sf = _family.mirrored(cdf, "sf")
logsf = _family.mirrored(logcdf, "logsf")
isf = _family.mirrored(ppf, "isf")
