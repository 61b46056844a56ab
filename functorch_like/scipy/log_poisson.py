"""Logarithms of the probabilities of Poisson's distribution, and of the density of the gamma distribution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functorch_like import numpy as fnp
from functorch_like.scipy.gamma_terms import power, power_slope
from functorch_like.scipy.slopes import with_slopes


def _made(shift: int) -> Callable[..., Any]:
    def value(a: Any, x: Any) -> Any:
        parts = power(a, x, x - a, shift)
        return fnp.where((x == 0) & (a == shift), 0, parts.exponent + fnp.log(parts.factor))

    def by_a(out: Any, a: Any, x: Any) -> Any:
        slope = power_slope(a, x, x - a)
        return slope + 1 / a if shift else slope

    def by_x(out: Any, a: Any, x: Any) -> Any:
        # At the end of x alone: elsewhere the slope depends on a, also where its value is -1.
        flat = (a == shift) & ((x == 0) | fnp.isinf(x))
        return fnp.where(flat, -1, ((a - shift) - x) / fnp.where(flat, 1, x))

    return with_slopes(value, by_a, by_x)


#: The logarithm of x**a exp(-x) / gamma(a + 1), for a >= 0 and x >= 0.
log_poisson = _made(0)
#: The logarithm of x**(a - 1) exp(-x) / gamma(a), for a > 0 and x >= 0.
log_gamma_density = _made(1)
