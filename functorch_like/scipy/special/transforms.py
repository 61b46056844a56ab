"""Box and Cox's transformations."""

from __future__ import annotations

import math
from typing import Any

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.scipy.special.makers import in_double, two

_TERMS = [1 / math.factorial(k + 1) for k in range(19)]


def _exprel(t: Any) -> Any:
    """Return (exp(t) - 1) / t; up to 1 by its power series, since its derivatives cancel there."""
    near = fnp.abs(t) < 1
    u, total = fnp.where(near, t, 0), 0.0
    for c in reversed(_TERMS):
        total = total * u + c
    v = fnp.where(near, 1, t)
    return fnp.where(near, total, fnp.expm1(v) / v)


#: Beyond this exp(x) - 1 is exp(x), in float64.
_LARGE = 40.0


def _of_log(log: Any, rate: Any) -> Any:
    """Return (exp(rate log) - 1) / rate, and log where the rate is 0."""
    if dtypes.is_complex(aval_of(log).dtype):
        return fnp.where(rate == 0, log, fnp.expm1(rate * log) / fnp.where(rate == 0, 1, rate))
    endless = fnp.isinf(log)
    power = rate * fnp.where(endless, 1, log)
    large = power > _LARGE  # the power may be infinite where its quotient is not
    body = log * _exprel(fnp.where(large, 1, power))
    size = fnp.abs(fnp.where(large, rate, 1))
    body = fnp.where(large, fnp.sign(rate) * fnp.exp(fnp.where(large, power, 0) - fnp.log(size)), body)
    below = fnp.where(endless & (rate != 0), rate, 1)
    ends = fnp.where(rate == 0, log, fnp.where((log > 0) == (rate > 0), fnp.sign(rate) * math.inf, -1 / below))
    return fnp.where(endless, ends, body)


boxcox = two(
    "boxcox", "x lmbda", in_double(lambda x, rate: _of_log(fnp.log(x), rate)),
    "(x**lmbda - 1) / lmbda, and log(x) where lmbda is 0.", complex=True,
)  # fmt: skip
boxcox1p = two(
    "boxcox1p", "x lmbda", in_double(lambda x, rate: _of_log(fnp.log1p(x), rate)), "boxcox(1 + x, lmbda).",
    complex=True,
)  # fmt: skip
