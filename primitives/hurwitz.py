"""Floor 5. zeta: the Hurwitz zeta function, the sum of (q + k)**-x over k = 0, 1, ... (DLMF 25.11.1)."""

from __future__ import annotations

import math
from typing import Any

from functorch_like.primitives import elementwise as E
from functorch_like.primitives.formulas import widened
from functorch_like.primitives.incomplete_gamma import difference
from functorch_like.primitives.rows import binary
from functorch_like.primitives.shapes import full_like
from functorch_like.primitives.special import each

_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)


def _ref(x: float, q: float) -> float:
    """By Euler and Maclaurin, DLMF 25.11.5, for x > 1 and q > 0."""
    if math.isnan(x) or math.isnan(q):
        return math.nan
    if x == 1:
        return math.inf
    if not (x > 1 and q > 0):
        return math.inf if x > 1 and q == math.floor(q) else math.nan
    total = math.fsum((q + k) ** -x for k in range(12))
    at = q + 12
    total += at ** (1 - x) / (x - 1) + at**-x / 2
    factor = x * at ** (-x - 1)
    for k, bernoulli in enumerate(_BERNOULLI):
        total += bernoulli * factor / math.factorial(2 * k + 2)
        factor *= (x + 2 * k + 1) * (x + 2 * k + 2) / (at * at)
    return total


def _by_q(g: Any, x: Any, q: Any, z: Any) -> Any:
    return E.mul(g, E.neg(E.mul(x, zeta(E.add(x, full_like(x, 1)), q))))


#: Its derivative by x is a difference quotient of fourth order.
zeta = binary(
    "zeta", each(_ref), widened(lambda x, q: x.apply("chlo.zeta", q)),
    lambda g, x, q, z: E.mul(g, difference(lambda v: zeta(v, q), x)), _by_q, takes="f", domain=(1.5, 4.0),
)  # fmt: skip
