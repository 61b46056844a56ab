"""Student's distribution."""

from __future__ import annotations

import math
from typing import Any

from functorch_like import numpy as fnp
from functorch_like.scipy.gamma_ratios import betaln
from functorch_like.scipy.stats import norm
from functorch_like.scipy.stats.families import Family

_family = Family("Student's distribution", "0.5, 2.0", lambda df: df > 0)


@_family
def logpdf(x: Any, df: Any) -> Any:
    endless = df == math.inf
    n = fnp.where(endless, 1, df)
    value = -0.5 * fnp.log(n) - betaln(0.5 * n, fnp.full_like(n, 0.5)) - 0.5 * (n + 1) * fnp.log1p(x * x / n)
    return fnp.where(endless, norm.logpdf.standard(x), value)


pdf = _family.exp(logpdf)
