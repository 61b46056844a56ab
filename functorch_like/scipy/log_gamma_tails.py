"""Logarithms of the regularized incomplete gamma functions, also where these are too small for their dtype."""

from __future__ import annotations

from typing import Any

from functorch_like import numpy as fnp
from functorch_like.scipy.log_poisson import log_poisson
from functorch_like.scipy.logarithms import least_of_log, log_probability


def log_lower_gamma(a: Any, x: Any, p: Any) -> Any:
    """Return the logarithm of p = gammainc(a, x)."""
    return log_probability(p, (p < least_of_log(p)) & (x < a) & (x > 0) & fnp.isfinite(a), _lower_tail, a, x)


def log_upper_gamma(a: Any, x: Any, q: Any) -> Any:
    """Return the logarithm of q = gammaincc(a, x)."""
    return log_probability(q, (q < least_of_log(q)) & (x > a) & fnp.isfinite(x), _upper_tail, a, x)


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
