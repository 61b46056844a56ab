"""Riemann's zeta function on the whole real line.

Right of 1 it is the sum of n**-x; from 0 to 1 the alternating sum of P. Borwein, "An efficient algorithm for the
Riemann zeta function" (2000), algorithm 2; and left of 0 the reflection, DLMF 25.4.1.
"""

from __future__ import annotations

import math
from typing import Any

from functorch_like import numpy as fnp
from functorch_like.primitives import elementwise
from functorch_like.primitives.elementwise.zeta import zeta as hurwitz
from functorch_like.scipy.special.makers import in_double, one

#: Terms of the alternating sum; the error is below 3 / (3 + sqrt(8))**TERMS, so 1e-17.
_TERMS = 24


def _weights() -> list[float]:
    """Return what each power (k + 1)**-x counts, before the division by 1 - 2**(1 - x)."""
    n = _TERMS
    part = lambda i: math.factorial(n + i - 1) * 4**i * n // (math.factorial(n - i) * math.factorial(2 * i))
    sums = [sum(part(i) for i in range(k + 1)) for k in range(n + 1)]
    return [(-1) ** k * (sums[n] - sums[k]) / sums[n] for k in range(n)]


_WEIGHTS = _weights()


def _between(x: Any) -> Any:
    """Return the function from 0 to 1."""
    total = sum(weight * fnp.exp(-math.log(k + 1) * x) for k, weight in enumerate(_WEIGHTS))
    return -total / fnp.expm1((1 - x) * math.log(2))


def _sine(x: Any) -> Any:
    """Return sin(pi x / 2), exactly 0 at even numbers."""
    turn = x - 4 * fnp.round(x / 4)
    turn = fnp.where(turn > 1, 2 - turn, fnp.where(turn < -1, -2 - turn, turn))
    return fnp.sin(math.pi / 2 * turn)


def _body(x: Any) -> Any:
    left, middle = x < 0, (x >= 0) & (x < 1)
    below = fnp.where(left, x, -1)
    sums = hurwitz(fnp.where(left, 1 - below, fnp.where(x > 1, x, 2)), fnp.ones_like(x))
    factor = 2 * fnp.exp(elementwise.lgamma(1 - below) + (below - 1) * math.log(2 * math.pi))
    out = fnp.where(left, factor * _sine(below) * sums, sums)
    out = fnp.where(middle, _between(fnp.where(middle, x, 0)), out)
    out = fnp.where(x == 1, math.inf, fnp.where(x == math.inf, 1, out))
    return fnp.where(x != x, math.nan, out)


riemann = one("zeta", in_double(_body), "Riemann's zeta function.", "2.5")
