"""Logarithms of sums and differences, from logarithms."""

from __future__ import annotations

import math
from typing import Any

from functorch_like import numpy as fnp


def log1mexp(x: Any) -> Any:
    """Return log(1 - exp(x)) for x <= 0 (M. Maechler, "Accurately computing log(1 - exp(-|a|))", 2012)."""
    near = x > -math.log(2)
    return fnp.where(near, fnp.log(-fnp.expm1(fnp.where(near, x, -1))), fnp.log1p(-fnp.exp(fnp.where(near, -1, x))))


def log_minus(x: Any, y: Any) -> Any:
    """Return log(exp(x) - exp(y)) for x >= y; -inf where they are equal."""
    same = x == y
    gap = fnp.where(same, -1, y - fnp.where(same, y + 1, x))
    return fnp.where(same, -math.inf, fnp.where(same, 0, x) + log1mexp(gap))


def softplus(x: Any) -> Any:
    """Return log(1 + exp(x))."""
    return fnp.logaddexp(x, 0)
