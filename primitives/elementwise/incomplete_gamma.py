"""The regularized incomplete gamma functions: igamma igammac igamma_grad_a random_gamma_grad."""

from __future__ import annotations

import math
from typing import Any

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.primitives import elementwise
from functorch_like.primitives.base.elementwise_makers import binary
from functorch_like.primitives.base.shapes import full_like
from functorch_like.primitives.elementwise.conversion import convert_element_type
from functorch_like.primitives.elementwise.erf_and_gamma import digamma_of, each
from functorch_like.primitives.elementwise.log_power import log_beside_power, power_factors
from functorch_like.primitives.formulas.incomplete_gamma import (
    DOUBLE,
    SINGLE,
    grad_formula,
    random_formula,
    regularized,
)
from functorch_like.primitives.formulas.term import widened


# ----------------------------------------------------------------------------------------------- the meaning, in NumPy
def _both(a: float, x: float) -> tuple[float, float]:
    """P and Q: the series below a + 1, the continued fraction above it."""
    if not (a >= 0 and x >= 0) or (a == x and a in (0, math.inf)):
        return math.nan, math.nan
    if x == 0 or a == math.inf:
        return 0.0, 1.0
    if a == 0 or x == math.inf:
        return 1.0, 0.0
    factor = math.exp(a * math.log(x) - x - math.lgamma(a + 1))
    if x < a + 1:
        p = factor * _sum(a, x)[0]
        return p, 1 - p
    tail = 0.0
    for k in range(int(400 + 10 * math.sqrt(a)), 0, -1):
        tail = k * (a - k) / (x + 2 * k + 1 - a + tail)
    q = factor * a / (x + 1 - a + tail)
    return 1 - q, q


def _sum(a: float, x: float) -> tuple[float, float]:
    term, slope, total, change = 1.0, 0.0, 1.0, 0.0
    for k in range(1, 100000):
        term, slope = term * x / (a + k), slope - 1 / (a + k)
        total, change = total + term, change + term * slope
        if k > x - a and abs(term * slope) < 1e-18 * abs(change):
            break
    return total, change


def _grad(a: float, x: float) -> float:
    if not (a > 0 and x >= 0):
        return math.nan
    return math.exp(a * math.log(x) - x - math.lgamma(a + 1)) * _relative_grad(a, x) if x > 0 else 0.0


def _relative_grad(a: float, x: float) -> float:
    total, change = _sum(a, x)
    return total * (math.log(x) - digamma_of(a + 1)) + change


def _random(a: float, x: float) -> float:
    """-P_a / p: the density p and the factor of the series of P_a have the quotient x / a."""
    return -_relative_grad(a, x) * x / a if a > 0 and x > 0 else -_grad(a, x)


# -------------------------------------------------------------------------------------------------------- derivatives
def density(a: Any, x: Any) -> Any:
    """x**(a - 1) exp(-x) / gamma(a), the derivative of igamma by x."""
    log, factor = power_factors(elementwise.sub(a, full_like(a, 1)), _finite(x))
    return elementwise.mul(factor, elementwise.exp(elementwise.sub(elementwise.sub(log, x), elementwise.lgamma(a))))


def _finite(x: Any) -> Any:
    """Return x, and 1 for infinity: exp(-x) outweighs powers of x, and what is added to them."""
    return elementwise.select_n(elementwise.eq(x, full_like(x, math.inf)), x, full_like(x, 1))


def difference(f: Any, at: int, *operands: Any) -> Any:
    """The derivative of f by one operand, which is positive: central differences of fourth order, in float64.

    The steps are relative to that operand.
    """
    dtype, step = aval_of(operands[at]).dtype, 2.0**-9
    wide = [convert_element_type(x, new_dtype=dtypes.float64) for x in operands]
    a = wide[at]
    moved = lambda k: f(*wide[:at], elementwise.mul(a, full_like(a, 1 + k * step)), *wide[at + 1 :])
    near, far = elementwise.sub(moved(1), moved(-1)), elementwise.sub(moved(2), moved(-2))
    total = elementwise.sub(elementwise.mul(near, full_like(a, 8)), far)
    return convert_element_type(elementwise.div(total, elementwise.mul(a, full_like(a, 12 * step))), new_dtype=dtype)


def _gamma(name: str, ref: Any, lower: Any, left: Any, right: Any, **facts: Any) -> Any:
    return binary(name, each(ref), lower, left, right, takes="f", domain=(0.4, 4.0), **facts)


igamma = _gamma(
    "igamma", lambda a, x: _both(a, x)[0], widened(regularized(DOUBLE, upper=False), regularized(SINGLE, upper=False)),
    lambda g, a, x, z: elementwise.mul(g, igamma_grad_a(a, x)),
    lambda g, a, x, z: elementwise.mul(g, density(a, x)),
)  # fmt: skip
igammac = _gamma(
    "igammac", lambda a, x: _both(a, x)[1], widened(regularized(DOUBLE, upper=True), regularized(SINGLE, upper=True)),
    lambda g, a, x, z: elementwise.mul(g, elementwise.neg(igamma_grad_a(a, x))),
    lambda g, a, x, z: elementwise.mul(g, elementwise.neg(density(a, x))),
)  # fmt: skip


def _grad_by_x(g: Any, a: Any, x: Any, z: Any) -> Any:
    log = log_beside_power(elementwise.sub(a, full_like(a, 1)), _finite(x))
    return elementwise.mul(g, elementwise.mul(density(a, x), elementwise.sub(log, elementwise.digamma(a))))


#: The derivative of igamma by a. Its own derivative by a is a difference quotient.
igamma_grad_a = _gamma(
    "igamma_grad_a", _grad, widened(grad_formula(DOUBLE), grad_formula(SINGLE)),
    lambda g, a, x, z: elementwise.mul(g, difference(igamma_grad_a, 0, a, x)), _grad_by_x,
)  # fmt: skip


def _random_by_x(g: Any, a: Any, x: Any, z: Any) -> Any:
    """z = -P_a / p, and p_x = p ((a - 1) / x - 1), p_a = p (log x - digamma a)."""
    slope = elementwise.sub(elementwise.div(elementwise.sub(a, full_like(a, 1)), x), full_like(a, 1))
    return elementwise.mul(
        g,
        elementwise.neg(
            elementwise.add(elementwise.sub(elementwise.log(x), elementwise.digamma(a)), elementwise.mul(z, slope))
        ),
    )


#: The derivative by a of a sample x of the gamma distribution, its quantile held fixed.
random_gamma_grad = _gamma(
    "random_gamma_grad", _random, widened(random_formula(DOUBLE), random_formula(SINGLE)),
    lambda g, a, x, z: elementwise.mul(g, difference(random_gamma_grad, 0, a, x)), _random_by_x,
)  # fmt: skip
