"""Powers over gamma functions, in parts in which nothing large cancels: what log densities consist of.

The logarithm of x**a exp(-x) / gamma(a + 1) is a sum of terms as large as a log a, but only as large as log a itself
near x = a: at a = 1e5, float32 would keep no digit after the point. With
gamma(a + 1) = sqrt(2 pi) t**(a + 1/2) exp(-t) / R (see `primitives/formulas/gamma_single.py`), t = a + 3/2 and
u = x / t - 1, it is t (log(1 + u) - u) - 3/2 log(1 + u) - log(2 pi t) / 2 + log R. All depends on x - a, which callers
give, because they know it with more digits.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.primitives.formulas.gamma_single import RECIPROCAL
from functorch_like.scipy.horner import horner
from functorch_like.scipy.logarithms import log1p_less

#: t (digamma(z + 1) - log(t)), in s = 1 - 3 / t: a Chebyshev interpolant of 40 nodes, computed with mpmath.
_DIGAMMA = (
    -1.1863669440685993, 0.22685286083351416, -0.04868203142771261, 0.009757338180689615, -0.001879566313544026,
    0.0003849839050957674, -7.880944782108524e-05, 1.470789155916111e-05, -3.1246104932104356e-06,
    6.582269896565411e-07, -9.80571240392204e-08, 3.09062909258305e-08, -4.94670363285428e-09,
    -7.336798532445404e-11, -9.709616800130065e-10, -1.7077877189942556e-10, 8.568663484346228e-11,
    5.7280401082373043e-11,
)  # fmt: skip


def digits(x: Any, coefficients: Any, single: int) -> Any:
    """The coefficients that the dtype of x needs."""
    return coefficients if aval_of(x).dtype == dtypes.float64 else coefficients[:single]


class Parts(NamedTuple):
    """A positive quantity as exp(exponent) * factor.

    Attributes:
        exponent: number, or an infinity.
        factor: positive number.
    """

    exponent: Any
    factor: Any


def _scaled(a: Any, x: Any, gap: Any) -> tuple[Any, Any, Any, Any]:
    """t; whether x is near it; log(x / t), and near t this less x / t - 1."""
    t = a + 1.5
    u = (gap - 1.5) * (1 / t)
    near = fnp.abs(u) < 0.5
    v = fnp.where(near, u, 0)
    less = log1p_less(v)
    return t, near, fnp.where(near, less + v, fnp.log(fnp.where(near, 1, x / t))), less


def _at(t: Any) -> Any:
    return 1 - 3 / t


def _reciprocal(t: Any) -> Any:
    """R / sqrt(2 pi t)."""
    return horner(_at(t), digits(t, RECIPROCAL, 9)) / fnp.sqrt(2 * math.pi * t)


def power(a: Any, x: Any, gap: Any, shift: int = 0) -> Parts:
    """x**(a - shift) exp(-x) / gamma(a + 1 - shift) for a >= 0, x >= 0 and a shift of 0 or 1, with gap = x - a."""
    t, near, log, less = _scaled(a, x, gap)
    order = a - shift if shift else a
    far = fnp.where(order == 0, 0, order * log) - (gap - 1.5)
    exponent = fnp.where(near, t * less - (1.5 + shift) * log, far)
    factor = _reciprocal(t)
    return Parts(exponent, factor * (a / t) if shift else factor)


def _digamma_less_log(t: Any) -> Any:
    """digamma(a + 1) - log(t)."""
    return horner(_at(t), digits(t, _DIGAMMA, 11)) / t


def power_slope(a: Any, x: Any, gap: Any) -> Any:
    """log(x) - digamma(a + 1), the derivative by a of the logarithm of `power` without a shift."""
    t, _, log, _ = _scaled(a, x, gap)
    return log - _digamma_less_log(t)


def scale_of(n: Any) -> Any:
    """The x that `total` is at: n, and at least 1, since logarithms of a small n would cancel."""
    return fnp.maximum(n, 1)


def total(n: Any) -> Parts:
    """m**n exp(-m) / gamma(n + 1), which is `power` of n and m, for m = scale_of(n)."""
    m, t = scale_of(n), n + 1.5
    rest = 1.5 + (n - m)
    return Parts(rest - n * fnp.log1p(rest / m), _reciprocal(t))


def total_slope(n: Any, rounding: Any) -> Any:
    """log(m) - digamma(n + 1), the derivative of the logarithm of `total` for a constant m.

    n is a sum, which it exceeds by the given rounding.
    """
    m = scale_of(n)
    return rounding / m - fnp.log1p((1.5 + (n - m)) / m) - _digamma_less_log(n + 1.5)
