"""The beta distribution."""

from __future__ import annotations

import math
from typing import Any

from functorch_like import numpy as fnp
from functorch_like.primitives.elementwise.incomplete_beta import regularized_incomplete_beta
from functorch_like.scipy.log_binomial import log_beta_density
from functorch_like.scipy.stats.families import Family

_family = Family("the beta distribution", "0.5, 2.0, 3.0", lambda a, b: (a > 0) & (b > 0))


@_family
def logpdf(x: Any, a: Any, b: Any) -> Any:
    inside = (x >= 0) & (x <= 1)
    y = fnp.where(inside, x, 0.5)
    return fnp.where(inside, log_beta_density(a, b, y), fnp.where(x != x, x, -math.inf))


@_family
def cdf(x: Any, a: Any, b: Any) -> Any:
    return regularized_incomplete_beta(a, b, fnp.clip(x, 0, 1))


@_family
def sf(x: Any, a: Any, b: Any) -> Any:
    return regularized_incomplete_beta(b, a, 1 - fnp.clip(x, 0, 1))


@_family
def logcdf(x: Any, a: Any, b: Any) -> Any:
    p, q = cdf.standard(x, a, b), sf.standard(x, a, b)
    low = p < 0.5
    return fnp.where(low, fnp.log(fnp.where(low, p, 1)), fnp.log1p(-fnp.where(low, 0, q)))


@_family
def logsf(x: Any, a: Any, b: Any) -> Any:
    return logcdf.standard(1 - fnp.clip(x, 0, 1), b, a)


pdf = _family.exp(logpdf)
