"""The geometric distribution: trials up to the first success."""

from __future__ import annotations

import math
from typing import Any

from functorch_like import numpy as fnp
from functorch_like.scipy.special import xlog1py
from functorch_like.scipy.stats.families import Family

_family = Family("the geometric distribution", "1, 0.3", lambda p: (p > 0) & (p <= 1), discrete=True)


@_family
def logpmf(k: Any, p: Any) -> Any:
    inside = k >= 1
    return fnp.where(inside, xlog1py(fnp.where(inside, k, 1) - 1, -p) + fnp.log(p), -math.inf)


pmf = _family.exp(logpmf)
