"""The negative binomial distribution: failures up to the n-th success."""

from __future__ import annotations

import math
from typing import Any

from functorch_like import numpy as fnp
from functorch_like.scipy.log_binomial import log_binomial
from functorch_like.scipy.stats.families import Family

_family = Family(
    "the negative binomial distribution", "1, 3, 0.3", lambda n, p: (n > 0) & (p > 0) & (p <= 1), discrete=True
)


@_family
def logpmf(k: Any, n: Any, p: Any) -> Any:
    inside = k >= 0
    k = fnp.where(inside, k, 0)
    return fnp.where(inside, log_binomial(n, k, p) + fnp.log(n / (n + k)), -math.inf)


pmf = _family.exp(logpmf)
