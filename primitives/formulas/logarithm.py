"""Logarithms in double precision, as forms that CPUs run on vectors: XLA:CPU's own take three times as long, or more.

The polynomial is interpolated in Chebyshev nodes by mpmath.
"""

from __future__ import annotations

import math
from typing import Any

from functorch_like.primitives.formulas.real import bits, of_bits, pattern, with_rest
from functorch_like.primitives.formulas.term import Term, estrin, quotient, where

#: In a number plus this one the whole part is in the last bits.
LAST_BITS = 1.5 * 2**52
#: log(2) in two parts: a number of 32 bits, whose products with whole numbers are exact, and the rest.
LOG2, LOG2_REST = 0.6931471803691238, 1.9082149292705877e-10
#: In powers of s**2, for |s| <= tan(pi/8)**2: (log((1 + s)/(1 - s))/s - 2) / s**2.
_LOG = (
    0.6666666666666666, 0.3999999999999999, 0.2857142857143586, 0.22222222219710297, 0.18181818615177278,
    0.15384573450028968, 0.13335711085008436, 0.11686508917312045, 0.11896558568412165,
)  # fmt: skip


def log_of_normal(x: Term, lack: Any = None) -> Term:
    """log(x + lack) for normal numbers x = (1 + f) 2**k: f - f**2/2 + s (f**2/2 + ...) with s = f / (2 + f)."""
    e, (raw, whole) = x.e, bits(x)
    op = lambda name, a, b: e.op(f"stablehlo.{name}", [a, b if not isinstance(b, int) else e.full(b, whole)], [whole])
    # Counted from sqrt(1/2) on, so that 1 + f is between it and sqrt(2).
    exponent = op("shift_right_arithmetic", op("subtract", raw, pattern(math.sqrt(0.5), x.aval.dtype)), 52)
    k = of_bits(op("add", exponent, pattern(LAST_BITS, x.aval.dtype)), x) - LAST_BITS
    f = of_bits(op("subtract", raw, op("shift_left", exponent, 52)), x) - 1
    s = quotient(f, f + 2)
    square, half = s * s, 0.5 * f * f
    rest = k * LOG2_REST if lack is None else k * LOG2_REST + lack / x
    return k * LOG2 - ((half - (s * (half + square * estrin(square, _LOG)) + rest)) - f)


def log(x: Term) -> Term:
    """Natural logarithm."""
    normal = (x > 0) & (x < math.inf)
    return where(normal, log_of_normal(x), where(x.equals(0), -math.inf, where(x > 0, x, math.nan)))


def log1p(x: Term) -> Term:
    """log(1 + x)."""
    y, lack = with_rest(x, x.like(1))
    value = where(
        (x > -1) & (x < math.inf), log_of_normal(y, lack), where(x.equals(-1), -math.inf, where(x > 0, x, math.nan))
    )
    return where(x.equals(0), x, value)
