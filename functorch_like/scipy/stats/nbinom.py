"""The negative binomial distribution: failures up to the n-th success."""

from __future__ import annotations

import math
from typing import Any

from functorch_like import numpy as fnp
from functorch_like.scipy.gamma_ratios import betaln
from functorch_like.scipy.special import xlog1py
from functorch_like.scipy.stats.families import Family

_family = Family(
    "the negative binomial distribution", "1, 3, 0.3", lambda n, p: (n > 0) & (p > 0) & (p <= 1), discrete=True
)


@_family
def logpmf(k: Any, n: Any, p: Any) -> Any:
    inside = k >= 0
    k = fnp.where(inside, k, 0)
    value = n * fnp.log(p) + xlog1py(k, -p) - betaln(k + 1, n) - fnp.log(k + n)
    return fnp.where(inside, value, -math.inf)


pmf = _family.exp(logpmf)
