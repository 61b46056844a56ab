"""zeta: the Hurwitz zeta function, the sum of (q + k)**-x over k = 0, 1, ... (DLMF 25.11.1).

Derivatives by x are those of the expansion of Euler and Maclaurin, DLMF 25.11.5, term by term.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like.errors import ArgumentError
from functorch_like.primitives import elementwise
from functorch_like.primitives.base.elementwise_makers import binary, elementwise_primitive, same
from functorch_like.primitives.base.lowering import Lowering
from functorch_like.primitives.base.shapes import full_like
from functorch_like.primitives.elementwise.erf_and_gamma import each
from functorch_like.primitives.elementwise.vectorized_cpu import guarded
from functorch_like.primitives.formulas import gamma_single
from functorch_like.primitives.formulas.term import Term, choose, where, widened

_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)
#: Number of terms added one by one before the expansion at q + DIRECT.
DIRECT = 12


# ------------------------------------------------------------------------------------------------------- the expansion
def _product(a: Sequence[Any], b: Sequence[Any], count: int) -> list[Any]:
    """The first coefficients of the product of two power series."""
    return [sum(a[i] * b[n - i] for i in range(max(0, n - len(b) + 1), min(n, len(a) - 1) + 1)) for n in range(count)]


def _expansion(x: Any, q: Any, order: int, log: Any, power: Any, select: Any) -> Any:
    """The derivative of some order by x, for x > 1 and q > 0, each part a power series in e at x + e.

    Args:
        x, q: numbers or terms.
        order: of the derivative.
        log, power, select: functions that compute with them.
    """
    count = order + 1

    def decaying(base: Any) -> list[Any]:
        """base**-(x + e)."""
        series, rate = [power(base, -x)], -log(base)
        for j in range(1, count):
            series.append(series[-1] * rate * (1 / j))
        return series

    direct = [decaying(q + k) for k in range(DIRECT)]
    total = [sum(series[1:], series[0]) for series in zip(*direct, strict=True)][order]
    at = q + DIRECT
    tail, near = decaying(at), 1 / (x - 1)
    inverse = [near]  # 1 / (x - 1 + e)
    for _ in range(order):
        inverse.append(-inverse[-1] * near)
    total = total + _product(tail, inverse, count)[order] * at + tail[order] * 0.5
    rising: list[Any] = [x, x * 0 + 1]  # (x + e) (x + 1 + e) ..., divided by powers of `at`
    step, corrections = 1 / (at * at), []
    for k, bernoulli in enumerate(_BERNOULLI):
        corrections.append(_product(tail, rising, count)[order] * (bernoulli / math.factorial(2 * k + 2)) / at)
        for j in (1, 2):
            rising = _product(rising, [x + (2 * k + j), 1.0], count)
        rising = [c * step for c in rising]
    # Where the tail underflows, the rising powers may be infinite.
    rest = select(tail[0] > 0, sum(corrections[1:], corrections[0]), 0.0)
    return (total + rest) * math.factorial(order)


# ------------------------------------------------------------------------------------------------ the meaning, in NumPy
def _ref(x: float, q: float, order: int = 0) -> float:
    """Compute zeta(x, q) for x > 1 and q > 0."""
    if math.isnan(x) or math.isnan(q):
        return math.nan
    if x == 1 and (q > 0 or not order):
        return -math.inf if order % 2 else math.inf
    if not (x > 1 and q > 0):
        return math.inf if x > 1 and q == math.floor(q) and not order else math.nan
    if q == math.inf:
        return 0.0
    select = lambda condition, a, b: a if condition else b
    return float(_expansion(np.float64(x), np.float64(q), int(order), np.log, np.power, select))


# ----------------------------------------------------------------------------------------------------------- primitives
_same = same("zeta_derivative", "f")


def _by_q(g: Any, x: Any, q: Any, z: Any) -> Any:
    return elementwise.mul(g, elementwise.neg(elementwise.mul(x, zeta(elementwise.add(x, full_like(x, 1)), q))))


_standard = widened(lambda x, q: x.apply("chlo.zeta", q))
_UNUSUAL = (2.5, 1.0, 0.5, 2.5), (1.5, 2.0, 1.0, -0.5)
_quick = guarded("zeta", _standard, gamma_single.zeta, gamma_single.zeta_is_usual, _UNUSUAL)
zeta = binary(
    "zeta", each(_ref), Lowering("zeta", _standard, _quick),
    lambda g, x, q, z: elementwise.mul(g, zeta_derivative(x, q, order=1)), _by_q, takes="f", domain=(1.5, 4.0),
)  # fmt: skip


def _derivative_shape(x: Any, q: Any, *, order: int) -> Any:
    if order < 1:
        raise ArgumentError(f"order={order} of zeta_derivative is not a derivative", fix="give an int of at least 1")
    return _same(x, q)


def _formula(x: Term, q: Term, *, order: int) -> Term:
    value = _expansion(x, q, order, Term.log, lambda a, b: a.apply("stablehlo.power", b), where)
    pole = -math.inf if order % 2 else math.inf
    inside = q > 0
    return choose(
        math.nan, (inside & x.equals(1), x.like(pole)), (inside & q.equals(math.inf) & (x > 1), x.like(0)),
        (inside & (x > 1), value),
    )  # fmt: skip


def _derivative_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, order: int) -> tuple[Any, Any]:
    """Derivative by q, -x zeta(x + 1, q), differentiated by x."""
    (x, q), (dx, dq) = primals, tangents
    out = zeta_derivative(x, q, order=order)
    tangent = None if dx is None else elementwise.mul(dx, zeta_derivative(x, q, order=order + 1))
    if dq is not None:
        more = elementwise.add(x, full_like(x, 1))
        lower = zeta_derivative(more, q, order=order - 1) if order > 1 else zeta(more, q)
        slope = elementwise.add(
            elementwise.mul(x, zeta_derivative(more, q, order=order)), elementwise.mul(full_like(x, order), lower)
        )
        change = elementwise.neg(elementwise.mul(dq, slope))
        tangent = change if tangent is None else elementwise.add(tangent, change)
    return out, tangent


#: The derivative of zeta of some order by x.
zeta_derivative = elementwise_primitive(
    "zeta_derivative", lambda x, q, *, order: each(_ref)(x, q, np.full(x.shape, order)), widened(_formula), count=2,
    takes="f", jvp=_derivative_jvp, shape=_derivative_shape, domain=(1.5, 4.0), params=({"order": 1}, {"order": 2}),
)  # fmt: skip
