"""Cauchy's distribution, wrapped around a circle."""

from __future__ import annotations

import math
from typing import Any

from functorch_like import numpy as fnp
from functorch_like.scipy.stats.families import Family

_family = Family("Cauchy's distribution, wrapped around a circle", "0.5, 0.3", lambda c: (c > 0) & (c < 1))


@_family
def logpdf(x: Any, c: Any) -> Any:
    """1 + c**2 - 2 c cos x in a form that keeps its digits where it is small."""
    inside = (x >= 0) & (x <= 2 * math.pi)
    below = (1 - c) ** 2 + 4 * c * fnp.sin(0.5 * x) ** 2
    value = fnp.log1p(-c) + fnp.log1p(c) - math.log(2 * math.pi) - fnp.log(below)
    return fnp.where(inside, value, fnp.where(x != x, x, -math.inf))


pdf = _family.exp(logpdf)
