"""Bernoulli's distribution: 1 with probability p, else 0."""

from __future__ import annotations

import math
from typing import Any

from functorch_like import numpy as fnp
from functorch_like.scipy.special import xlog1py, xlogy
from functorch_like.scipy.stats.families import Family

_family = Family("Bernoulli's distribution", "1, 0.3", lambda p: (p >= 0) & (p <= 1), discrete=True)


@_family
def logpmf(k: Any, p: Any) -> Any:
    inside = (k == 0) | (k == 1)
    k = fnp.where(inside, k, 0)
    return fnp.where(inside, xlogy(k, p) + xlog1py(1 - k, -p), -math.inf)


@_family
def cdf(k: Any, p: Any) -> Any:
    return fnp.where(k < 0, 0, fnp.where(k < 1, 1 - p, 1))


@_family
def ppf(q: Any, p: Any) -> Any:
    return fnp.where(q == 0, -1, fnp.where((q <= 1 - p) & (q < 1), 0, 1))


pmf = _family.exp(logpmf)
