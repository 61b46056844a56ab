"""The beta-binomial distribution: successes in n trials whose probability is drawn from a beta distribution."""

from __future__ import annotations

import math
from typing import Any

from functorch_like import numpy as fnp
from functorch_like.lax import stop_gradient
from functorch_like.scipy.log_binomial import log_beta_density, log_binomial
from functorch_like.scipy.stats.families import Family

_family = Family(
    "the beta-binomial distribution", "1, 3, 2.0, 1.5",
    lambda n, a, b: (n >= 0) & (fnp.floor(n) == n) & (a > 0) & (b > 0), discrete=True,
)  # fmt: skip


def _log(k: Any, m: Any, a: Any, b: Any) -> Any:
    """Return the log of (k + m)! / (k! m!) B(k + a, m + b) / B(a, b).

    It is a probability of a binomial distribution times a density of a beta distribution, over another density, for
    any probability p. At the mean of the last one, none of them is much greater than the result.
    """
    swap = k + a > m + b
    k, m, a, b = fnp.where(swap, m, k), fnp.where(swap, k, m), fnp.where(swap, b, a), fnp.where(swap, a, b)
    c, d = k + a, m + b
    p = stop_gradient(c / (c + d))
    return log_binomial(k, m, p) + log_beta_density(a, b, p) - log_beta_density(c, d, p)


@_family
def logpmf(k: Any, n: Any, a: Any, b: Any) -> Any:
    inside = (k >= 0) & (k <= n)
    k, n = fnp.where(inside, k, 0), fnp.where(inside, n, 0)
    return fnp.where(inside, _log(k, n - k, a, b), -math.inf)


pmf = _family.exp(logpmf)
