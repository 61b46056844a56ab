"""The beta distribution."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.numpy import promotion
from functorch_like.primitives.elementwise.incomplete_beta import regularized_incomplete_beta
from functorch_like.scipy.log_binomial import log_beta_density, log_binomial
from functorch_like.scipy.logarithms import least_of_log, log_probability
from functorch_like.scipy.stats.families import Family

_family = Family("the beta distribution", "0.5, 2.0, 3.0", lambda a, b: (a > 0) & (b > 0))


@_family
def logpdf(x: Any, a: Any, b: Any) -> Any:
    inside = (x >= 0) & (x <= 1)
    y = fnp.where(inside, x, 0.5)
    return fnp.where(inside, log_beta_density(a, b, y), fnp.where(x != x, x, -math.inf))


@_family
def cdf(x: Any, a: Any, b: Any) -> Any:
    return _between(lambda x: regularized_incomplete_beta(a, b, x), x, 0, 1)


@_family
def sf(x: Any, a: Any, b: Any) -> Any:
    return _between(lambda x: _above(x, a, b), x, 1, 0)


def _between(fun: Callable[[Any], Any], x: Any, low: float, high: float) -> Any:
    """Return a function of x from 0 to 1, with other values below and above.

    Its slope at 0 and 1 may be infinite, so that clipped values would have the slope NaN.
    """
    below, above = x < 0, x > 1
    value = fun(fnp.where(below | above, 0.5, x))
    return fnp.where(below, low, fnp.where(above, high, value))


def _above(x: Any, a: Any, b: Any) -> Any:
    """1 - x has no rounding in double precision if x is narrower; else the density says what the rounding counts."""
    aval = aval_of(x)
    if aval.dtype != dtypes.float64:
        wide = _above(*(promotion.convert(v, dtypes.float64) for v in (x, a, b)))
        return promotion.convert(wide, aval.dtype, aval.weak_type)
    y = 1 - x
    value = regularized_incomplete_beta(b, a, y)
    rounding = (1 - y) - x
    inside = (rounding != 0) & (a > 0) & (b > 0) & fnp.isfinite(a + b)
    density = fnp.exp(log_beta_density(*(fnp.where(inside, v, 0.5) for v in (a, b, x))))
    return value + fnp.where(inside, rounding * density, 0)


def _log(x: Any, a: Any, b: Any, lower: bool) -> Any:
    """The logarithm of the less probable side is that of its probability, or of its fraction if that is no number."""
    p, q = regularized_incomplete_beta(a, b, x), _above(x, a, b)
    p, q = (p, q) if lower else (q, p)
    low = p < 0.5
    far = (p < least_of_log(p)) & (x > 0) & (x < 1) & fnp.isfinite(a + b)
    tail = lambda x, a, b: _tail(x, a, b, lower)
    return fnp.where(low, log_probability(fnp.where(low, p, 1), far, tail, x, a, b), fnp.log1p(-fnp.where(low, 0, q)))


_TERMS = 20


def _tail(x: Any, a: Any, b: Any, lower: bool) -> Any:
    """The logarithm of a tiny probability, by the continued fraction DLMF 8.17.22, which converges fast there."""
    front, n = log_binomial(a, b, x), a + b
    a, b, x = (a, b, x) if lower else (b, a, 1 - x)
    fraction: Any = 1
    for k in range(_TERMS, -1, -1):
        if k < _TERMS:
            even = (k + 1) * (b - k - 1) / (a + 2 * k + 1) * (x / (a + 2 * k + 2))
            fraction = 1 + even / fraction
        fraction = 1 - (a + k) / (a + 2 * k) * ((n + k) / (a + 2 * k + 1) * x) / fraction
    return front + fnp.log(b / n) - fnp.log(fraction)


@_family
def logcdf(x: Any, a: Any, b: Any) -> Any:
    return _between(lambda x: _log(x, a, b, True), x, -math.inf, 0)


@_family
def logsf(x: Any, a: Any, b: Any) -> Any:
    return _between(lambda x: _log(x, a, b, False), x, 0, -math.inf)


pdf = _family.exp(logpdf)
