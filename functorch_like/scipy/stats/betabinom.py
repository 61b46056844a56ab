"""The beta-binomial distribution: successes in n trials whose probability is drawn from a beta distribution."""

from __future__ import annotations

import math
from typing import Any

from functorch_like import numpy as fnp
from functorch_like.scipy.gamma_ratios import betaln, log_choose
from functorch_like.scipy.stats.families import Family

_family = Family(
    "the beta-binomial distribution", "1, 3, 2.0, 1.5",
    lambda n, a, b: (n >= 0) & (fnp.floor(n) == n) & (a > 0) & (b > 0), discrete=True,
)  # fmt: skip


@_family
def logpmf(k: Any, n: Any, a: Any, b: Any) -> Any:
    inside = (k >= 0) & (k <= n)
    k, n = fnp.where(inside, k, 0), fnp.where(inside, n, 0)
    return fnp.where(inside, log_choose(n, k) + betaln(k + a, n - k + b) - betaln(a, b), -math.inf)


pmf = _family.exp(logpmf)
