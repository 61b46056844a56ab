"""The generalized normal distribution, whose density falls as exp(-|x|**beta)."""

from __future__ import annotations

import math
from typing import Any

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.primitives import elementwise
from functorch_like.primitives.elementwise.incomplete_gamma import igammac
from functorch_like.scipy.stats.families import Family

_family = Family("the generalized normal distribution", "0.5, 2.0", lambda beta: beta > 0)


def _power(x: Any, beta: Any) -> Any:
    """Return |x|**beta, with derivatives that are finite at 0 where the function has them."""
    zero = x == 0
    return fnp.where(zero, 0, fnp.where(zero, 1, fnp.abs(x)) ** beta)


@_family
def logpdf(x: Any, beta: Any) -> Any:
    return -(elementwise.lgamma(1 + 1 / beta) + math.log(2)) - _power(x, beta)


@_family
def cdf(x: Any, beta: Any) -> Any:
    power = _power(x, beta)
    # Near 0 by the first two terms of the series of the incomplete gamma function: the power may underflow.
    near = power < dtypes.finfo(aval_of(power).dtype).eps / 4
    series = 0.5 + 0.5 * x * fnp.exp(-elementwise.lgamma(1 + 1 / beta)) * (1 - power / (1 + beta))
    half = 0.5 * igammac(1 / beta, fnp.where(near, 1, power))
    return fnp.where(near, series, fnp.where(x < 0, half, 1 - half))


pdf = _family.exp(logpdf)
sf = _family.mirrored(cdf, "sf")
