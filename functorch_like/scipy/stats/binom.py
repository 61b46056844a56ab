"""The binomial distribution: successes in n trials."""

from __future__ import annotations

import math
from typing import Any

from functorch_like import numpy as fnp
from functorch_like.scipy.log_binomial import log_binomial
from functorch_like.scipy.stats.families import Family

_family = Family(
    "the binomial distribution", "1, 3, 0.3",
    lambda n, p: (n >= 0) & (fnp.floor(n) == n) & (p >= 0) & (p <= 1), discrete=True,
)  # fmt: skip


@_family
def logpmf(k: Any, n: Any, p: Any) -> Any:
    inside = (k >= 0) & (k <= n)
    k, n = fnp.where(inside, k, 0), fnp.where(inside, n, 0)
    return fnp.where(inside, log_binomial(k, n - k, p), -math.inf)


pmf = _family.exp(logpmf)
