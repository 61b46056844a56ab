"""Logarithms of sums and differences, from logarithms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.lax import cond
from functorch_like.primitives.formulas.gamma import LOG1P_LESS
from functorch_like.primitives.formulas.term import estrin
from functorch_like.scipy.horner import horner
from functorch_like.scipy.slopes import with_slopes


def log1mexp(x: Any) -> Any:
    """Return log(1 - exp(x)) for x <= 0 (M. Maechler, "Accurately computing log(1 - exp(-|a|))", 2012)."""
    near = x > -math.log(2)
    return fnp.where(near, fnp.log(-fnp.expm1(fnp.where(near, x, -1))), fnp.log1p(-fnp.exp(fnp.where(near, -1, x))))


def log_minus(x: Any, y: Any) -> Any:
    """Return log(exp(x) - exp(y)) for x >= y; -inf where they are equal."""
    same = x == y
    gap = fnp.where(same, -1, y - fnp.where(same, y + 1, x))
    return fnp.where(same, -math.inf, fnp.where(same, 0, x) + log1mexp(gap))


def least_of_log(x: Any) -> float:
    """Return a number from which on logarithms of probabilities in the dtype of x have all digits."""
    return 1e-280 if aval_of(x).dtype == dtypes.float64 else 1e-30


def log_probability(p: Any, far: Any, tail: Callable[..., Any], *args: Any) -> Any:
    """Return log(p); where p is tiny, and `far` is true, tail(*args), which is computed if that is so anywhere."""
    zero = p == 0
    near = fnp.where(zero & ~far, -math.inf, fnp.log(fnp.where(zero | far, 1, p)))
    some = lambda near, *args: fnp.where(far, tail(*(fnp.where(far, x, 0.5) for x in args)), near)
    return cond(fnp.any(far), some, lambda near, *args: near, near, *args)


def log1p_less(u: Any) -> Any:
    """Return log(1 + u) - u for |u| <= 1/2.

    With r = u / (2 + u) it is 2 artanh(r) - u (DLMF 4.6.4), and u - 2r is u r.
    """
    r = u / (u + 2)
    square = r * r
    series = horner(square, LOG1P_LESS if aval_of(u).dtype == dtypes.float64 else LOG1P_LESS[:8])
    return r * (2 * square * series - u)


def softplus(x: Any) -> Any:
    """Return log(1 + exp(x))."""
    return fnp.logaddexp(x, 0)


def _logit_body(x: Any) -> Any:
    """Use log(x / (1 - x)), and near its zero 2 artanh(2x - 1), by its series (DLMF 4.38.5)."""
    z = 2 * x - 1
    near = fnp.abs(z) < 0.25
    z = fnp.where(near, z, 0)
    terms = 13 if aval_of(x).dtype == dtypes.float64 else 6
    series = z * estrin(z * z, [2 / (2 * k + 1) for k in range(terms)])
    return fnp.where(near, series, fnp.log(x / (1 - x)))


_logit = with_slopes(_logit_body, lambda out, x: 1 / x + 1 / (1 - x))


def logit(x: Any) -> Any:
    """Return log(x) - log(1 - x)."""
    return fnp.log(x) - fnp.log1p(-x) if dtypes.is_complex(aval_of(x).dtype) else _logit(x)
