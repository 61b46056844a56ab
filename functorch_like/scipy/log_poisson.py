"""The logarithm of x**a exp(-x) / gamma(a + 1), the probability of a under Poisson's distribution of mean x.

Its terms grow as a log a, and their sum as log a: at a = 1e5, float32 would keep no digit after the point. With
gamma(a + 1) = sqrt(2 pi) t**(a + 1/2) exp(-t) / R (see `primitives/formulas/gamma_single.py`), t = a + 3/2 and
u = x / t - 1, it is t (log(1 + u) - u) - 3/2 log(1 + u) - log(2 pi t) / 2 + log R, in which nothing large cancels.
"""

from __future__ import annotations

import math
from typing import Any

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.primitives.formulas.gamma_single import DIGAMMA, RECIPROCAL
from functorch_like.scipy.horner import horner
from functorch_like.scipy.slopes import with_slopes


def _digits(x: Any, coefficients: Any, single: int) -> Any:
    """The coefficients that the dtype of x needs."""
    return coefficients if aval_of(x).dtype == dtypes.float64 else coefficients[:single]


def _ratio(a: Any, x: Any) -> tuple[Any, Any, Any]:
    """t, log(x / t), and this less x / t - 1: near 0 by r = u / (2 + u), DLMF 4.6.4, as 2 artanh(r) - u."""
    t = a + 1.5
    u = (x - t) * (1 / t)
    small = fnp.abs(u) < 0.5
    v = fnp.where(small, u, 0)
    r = v / (v + 2)
    square = r * r
    series = horner(square, _digits(u, [1 / (2 * k + 3) for k in range(18)], 8))
    less = fnp.where(small, r * (2 * square * series - v), fnp.log(fnp.where(small, 1, x / t)) - u)
    return t, less + u, less


def _by_a(out: Any, a: Any, x: Any) -> Any:
    """log(x) - digamma(a + 1), both less log(t)."""
    t, whole, _ = _ratio(a, x)
    return whole - horner(1 - 3 / t, _digits(t, DIGAMMA, 14))


def _value(a: Any, x: Any) -> Any:
    none = x == 0
    t, whole, less = _ratio(a, fnp.where(none, 1, x))
    factor = horner(1 - 3 / t, _digits(t, RECIPROCAL, 9)) / fnp.sqrt(2 * math.pi * t)
    value = t * less - 1.5 * whole + fnp.log(factor)
    return fnp.where(none, fnp.where(a == 0, 0, -math.inf), value)


def _by_x(out: Any, a: Any, x: Any) -> Any:
    none = (a == 0) & (x == 0)
    return fnp.where(none, -1, (a - x) / fnp.where(none, 1, x))


#: The logarithm of x**a exp(-x) / gamma(a + 1), for a >= 0 and x >= 0.
log_poisson = with_slopes(_value, _by_a, _by_x)
