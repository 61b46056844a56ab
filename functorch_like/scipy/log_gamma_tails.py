"""Logarithms of the regularized incomplete gamma functions, also where these are too small for their dtype."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from functorch_like import numpy as fnp
from functorch_like.lax import cond
from functorch_like.scipy.log_poisson import log_poisson
from functorch_like.scipy.logarithms import least_of_log


def log_lower_gamma(a: Any, x: Any, p: Any) -> Any:
    """Return the logarithm of p = gammainc(a, x)."""
    return _log(a, x, p, (p < least_of_log(p)) & (x < a) & (x > 0), _lower_tail)


def log_upper_gamma(a: Any, x: Any, q: Any) -> Any:
    """Return the logarithm of q = gammaincc(a, x)."""
    return _log(a, x, q, (q < least_of_log(q)) & (x > a) & fnp.isfinite(x), _upper_tail)


def _log(a: Any, x: Any, p: Any, far: Any, tail: Callable[..., Any]) -> Any:
    """Use the logarithm itself, and a tail's own formula where the probability is tiny, if it is anywhere."""
    zero = p == 0
    near = fnp.where(zero & ~far, -math.inf, fnp.log(fnp.where(zero | far, 1, p)))
    some = lambda near, a, x: fnp.where(far, tail(fnp.where(far, a, 1), fnp.where(far, x, 1)), near)
    return cond(fnp.any(far), some, lambda near, a, x: near, near, a, x)


#: Terms of continued fractions; of Legendre's, small a needs more.
_LOWER, _UPPER = 20, 100


def _lower_tail(a: Any, x: Any) -> Any:
    """Use the continued fraction DLMF 8.9.1."""
    fraction = a + (2 * _LOWER + 1)
    for k in range(_LOWER, 0, -1):
        fraction = a + (2 * k - 1) + k * x / (a + 2 * k - (a + k) * x / fraction)
    return log_poisson(a, x) - fnp.log1p(-x / fraction)


def _upper_tail(a: Any, x: Any) -> Any:
    """Use Legendre's continued fraction, DLMF 8.9.2."""
    fraction = x + 2 * _UPPER + 1 - a
    for k in range(_UPPER, 0, -1):
        fraction = x + (2 * k - 1) - a - k * (k - a) / fraction
    return log_poisson(a, x) + fnp.log(a) - fnp.log(fraction)
