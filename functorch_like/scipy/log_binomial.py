"""Logarithms of gamma(n + 1) / (gamma(a + 1) gamma(b + 1)) x**a (1 - x)**b with n = a + b, of its kin, and of products.

They are probabilities of binomial distributions and densities of beta distributions. A power x**a / gamma(a + 1) is
taken as (m x)**a exp(-m x) / gamma(a + 1) with m = n: each factor is near its greatest value where the whole is (C.
Loader, "Fast and accurate computation of binomial probabilities", 2000). Below n = 1, m is 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functorch_like import numpy as fnp
from functorch_like.lax import stop_gradient
from functorch_like.scipy.exact_differences import product_less, rounding_of_sum, rounding_of_total, sum_less_one
from functorch_like.scipy.gamma_terms import power, power_slope, scale_of, total, total_slope
from functorch_like.scipy.slopes import with_slopes


def _gaps(a: Any, b: Any, x: Any) -> tuple[Any, Any, Any, Any, Any]:
    """n = a + b; its scale m; m - n without the rounding of n; m x - a and m (1 - x) - b."""
    n = a + b
    m = scale_of(n)
    over = (m - n) + rounding_of_sum(a, b)
    gap = product_less(m, x, a)
    return n, m, over, gap, over - gap


def _flat_slope(flat: Any, zero: Any, x: Any) -> Any:
    """Return `zero / x` where `flat` holds, else 0: its value is 0, and its derivative by the shape is 1 / x."""
    inside = flat & (x > 0)
    return fnp.where(inside, zero / fnp.where(inside, x, 1), 0)


def _made(shift: int) -> Callable[..., Any]:
    def value(a: Any, b: Any, x: Any) -> Any:
        n, m, _, gap, other = _gaps(a, b, x)
        one, two, whole = power(a, m * x, gap, shift), power(b, m * (1 - x), other, shift), total(n)
        factor = one.factor * m * (m / n) if shift else one.factor
        out = (one.exponent + two.exponent - whole.exponent) + fnp.log(factor * (two.factor / whole.factor))
        certain = (n == 0) | ((x == 0) & (a == 0)) | ((x == 1) & (b == 0))
        return out if shift else fnp.where(certain, 0, out)

    def by_a(out: Any, a: Any, b: Any, x: Any) -> Any:
        n, m, over, gap, _ = _gaps(a, b, x)
        slope = power_slope(a, m * x, gap) - total_slope(n, over - (m - n))
        return slope + b / a / n if shift else slope

    def by_b(out: Any, a: Any, b: Any, x: Any) -> Any:
        n, m, over, _, gap = _gaps(a, b, x)
        slope = power_slope(b, m * (1 - x), gap) - total_slope(n, over - (m - n))
        return slope + a / b / n if shift else slope

    def by_x(out: Any, a: Any, b: Any, x: Any) -> Any:
        """(a - shift) / x - (b - shift) / (1 - x)."""
        _, _, over, gap, _ = _gaps(a, b, x)
        no_a, no_b = a == shift, b == shift
        left, right = fnp.where(no_a, 1, x), fnp.where(no_b, 1, 1 - x)
        both = over * x - gap - shift * (1 - 2 * x)
        slope = fnp.where(no_a, shift - b, fnp.where(no_b, a - shift, both)) / (left * right)
        return fnp.where(no_a & no_b, 0, slope) + _flat_slope(no_a, a - shift, x) - _flat_slope(no_b, b - shift, 1 - x)

    return with_slopes(value, by_a, by_b, by_x)


#: log(gamma(n + 1) / (gamma(a + 1) gamma(b + 1)) x**a (1 - x)**b), for a, b >= 0.
log_binomial = _made(0)
#: log(gamma(n) / (gamma(a) gamma(b)) x**(a - 1) (1 - x)**(b - 1)), for a, b > 0.
log_beta_density = _made(1)


def _share(shift: int) -> Callable[..., Any]:
    """Make the function log((m x)**(a - shift) exp(-m x) / gamma(a + 1 - shift)) of a, x and m."""

    def value(a: Any, x: Any, m: Any) -> Any:
        parts = power(a, m * x, product_less(m, x, a), shift)
        return parts.exponent + fnp.log(parts.factor)

    def by_a(out: Any, a: Any, x: Any, m: Any) -> Any:
        slope = power_slope(a, m * x, product_less(m, x, a))
        return slope + 1 / a if shift else slope

    def by_x(out: Any, a: Any, x: Any, m: Any) -> Any:
        flat = a == shift
        slope = fnp.where(flat, -m, -(product_less(m, x, a) + shift) / fnp.where(flat, 1, x))
        return slope + _flat_slope(flat, a - shift, x)

    return with_slopes(value, by_a, by_x, None)


_SHARES = _share(0), _share(1)


def _log_total_body(n: Any, rounding: Any) -> Any:
    parts = total(n)
    return parts.exponent + fnp.log(parts.factor)


_log_total = with_slopes(_log_total_body, lambda out, n, rounding: total_slope(n, rounding), None)


def log_shares(a: Any, x: Any, axis: int, shift: int) -> Any:
    """Return log(gamma(n + 1) prod x**a / gamma(a + 1)) of shares x along an axis; n is the sum of a.

    With a shift of 1 it is log(gamma(n) prod x**(a - 1) / gamma(a)). The shares need not add up to 1.
    """
    n = fnp.sum(a, axis)
    m = stop_gradient(scale_of(n))  # the result does not depend on it
    parts = _SHARES[shift](a, x, fnp.broadcast_to(fnp.expand_dims(m, axis), fnp.shape(a)))
    value = (
        fnp.sum(parts, axis) + m * sum_less_one(x, axis) - _log_total(n, stop_gradient(rounding_of_total(a, n, axis)))
    )
    return value + fnp.shape(a)[axis] * fnp.log(m) - fnp.log(n) if shift else value
