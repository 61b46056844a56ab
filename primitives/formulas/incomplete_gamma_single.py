"""The regularized incomplete gamma functions in double precision for results in single precision.

Numbers of terms are fixed, and good to 1e-10. With D = x**a exp(-x) / gamma(a + 1):

- a <= 12 and x < max(a + 1, 3), or x < a / 2: P = D sum_n x**n / ((a + 1) ... (a + n)), DLMF 8.7.1;
- other x for a <= 12, or x > 1.7 a: Q = a D times Legendre's continued fraction, DLMF 8.9.2;
- Q for a < 0.001 and x < 3: DLMF 8.7.3, whose terms alternate;
- the rest: the error function and a series in 1/a, DLMF 8.12.3 to 8.12.12.

The sum and the fraction are computed as quotients of two recurrences, whose only division is the last. Each region but
the first is computed only in programs that meet an element of it.
"""

from __future__ import annotations

import math
from typing import Any

from functorch_like.primitives.formulas.gamma import ZETA_LESS_ONE
from functorch_like.primitives.formulas.gamma_single import Scale, digamma_above, scale
from functorch_like.primitives.formulas.incomplete_gamma import TEMME, outside
from functorch_like.primitives.formulas.special import erfc
from functorch_like.primitives.formulas.term import Term, polynomial, where, where_needed

_LARGE, _LEAST, _LOW, _HIGH = 12.0, 3.0, 0.5, 1.7
_SUMMANDS, _STEPS, _ALTERNATING = 32, 19, 25
_TINY = 1e-3
#: log gamma(1 + a) / a, DLMF 5.7.3.
_LGAMMA1P = (-0.5772156649015329, *((-1) ** k * (z + 1) / k for k, z in enumerate(ZETA_LESS_ONE[:6], 2)))
#: Beyond these, D is 0 in single precision wherever it is used; the recurrences stay finite.
_MOST_A, _MOST_X = 1500.0, 4000.0
# Of DLMF 8.12.7 the coefficients c_k of a**-k, as series in eta, by the recurrence 8.12.10 with mpmath to 60 digits.
_TEMME = tuple(row[:count] for row, count in zip(TEMME, (16, 14, 12, 10, 10, 9, 7), strict=True))


def _front(a: Term, x: Term, parts: Scale) -> tuple[Term, Term]:
    """D, and log(x / t)."""
    log_ratio = (x * parts.inverse).log()
    power = (a * log_ratio + (parts.t - x)).exp()
    return power * (parts.inverse * (0.5 / math.pi)).sqrt() * parts.reciprocal, log_ratio


def _series(a: Term, x: Term) -> Term:
    """The sum of P over D."""
    numerator = denominator = a.like(1)
    for k in range(_SUMMANDS, 0, -1):
        denominator = (a + k) * denominator
        numerator = denominator + x * numerator
    return numerator / denominator


def _series_slope(a: Term, x: Term) -> tuple[Term, Term]:
    """The sum of P over D, and its derivative by a."""
    n = d = a.like(1)
    dn = dd = a.like(0)
    for k in range(_SUMMANDS, 0, -1):
        below = a + k
        dd, d = below * dd + d, below * d
        dn, n = dd + x * dn, d + x * n
    inverse = 1 / d
    total = n * inverse
    return total, (dn - total * dd) * inverse


def _fraction(a: Term, x: Term) -> Term:
    """Legendre's fraction."""
    shift = x + 1 - a
    n, d = shift + 2 * _STEPS, a.like(1)
    for k in range(_STEPS, 0, -1):
        n, d = (shift + 2 * (k - 1)) * n + (k * a - k * k) * d, n
    return d / n


def _fraction_slope(a: Term, x: Term) -> tuple[Term, Term]:
    """Legendre's fraction, and the derivative by a of its logarithm."""
    shift = x + 1 - a
    n, d = shift + 2 * _STEPS, a.like(1)
    dn, dd = a.like(-1), a.like(0)
    for k in range(_STEPS, 0, -1):
        over, under = shift + 2 * (k - 1), k * a - k * k
        dn, dd = over * dn - n + under * dd + k * d, dn
        n, d = over * n + under * d, n
    return d / n, dd / d - dn / n


def _small(a: Term, x: Term) -> Term:
    """Q for a below _TINY and x below _LEAST: 1 - w - w a sum_n (-x)**n / (n! (a + n)), w = x**a / gamma(a + 1)."""
    total, term = a.like(0), a.like(1)
    for k in range(1, _ALTERNATING + 1):
        term = term * x * (-1 / k)
        total = total + term / (a + k)
    power = a * x.log() - a * polynomial(a, _LGAMMA1P)
    less = power * polynomial(power, [1 / math.factorial(k) for k in range(1, 10)])  # exp(power) - 1
    return -less - (less + 1) * a * total


def _half_square(mu: Term) -> Term:
    """mu - log(1 + mu) for -1/2 <= mu <= 0.7: with r = mu / (2 + mu) it is mu r - 2 (artanh(r) - r), DLMF 4.6.4."""
    r = mu / (mu + 2)
    square = r * r
    return r * (mu - 2 * square * polynomial(square, [1 / (2 * k + 3) for k in range(15)]))


def _eta(a: Term, x: Term) -> tuple[Term, Term, Term]:
    mu = (x - a) / a
    half = _half_square(mu)
    size = (half * 2).sqrt()
    return mu, half, where(mu < 0, -size, size)


def _uniform(a: Term, x: Term, upper: bool) -> Term:
    """P or Q, DLMF 8.12.3 and 8.12.4."""
    _, half, eta = _eta(a, x)
    inverse = 1 / a
    series = polynomial(eta, _TEMME[-1])
    for c in _TEMME[-2::-1]:
        series = series * inverse + polynomial(eta, c)
    rest = (a * -half).exp() * (inverse * (0.5 / math.pi)).sqrt() * series
    scaled = eta * (a * 0.5).sqrt()
    return erfc(scaled) * 0.5 + rest if upper else erfc(-scaled) * 0.5 - rest


def _uniform_slope(a: Term, x: Term) -> Term:
    """The derivative of P by a, where d eta / d a = -mu / (eta a)."""
    mu, half, eta = _eta(a, x)
    inverse = 1 / a
    centre = abs(mu) < 1e-8
    turned = where(centre, 1 + mu * (1 / 3), mu / where(centre, 1, eta))  # mu / eta
    series, by_eta, by_inverse = (a.like(0) for _ in range(3))
    for c in reversed(_TEMME):
        by_inverse = by_inverse * inverse + series
        by_eta = by_eta * inverse + polynomial(eta, [k * v for k, v in enumerate(c)][1:])
        series = series * inverse + polynomial(eta, c)
    # The exponent -a eta**2 / 2 has the derivative mu - eta**2 / 2.
    factor = (a * -half).exp() * (inverse * (0.5 / math.pi)).sqrt()
    rest = series * (mu - half - 0.5 * inverse) - inverse * (turned * by_eta + inverse * by_inverse)
    return factor * (0.5 * eta - turned - rest)


class _Pieces:
    """Operands and regions.

    Attributes:
        a, x: operands, 1 outside the domain.
        low_a, low_x: the same, bounded.
        inside, below, above, near: the domain, and where the sum, the fraction, the series in 1/a apply.
        parts, front, log_ratio: of D.
    """

    def __init__(self, a: Term, x: Term) -> None:
        self.inside = (a > 0) & (x > 0) & (a < math.inf) & (x < math.inf)
        self.a, self.x = a, x = where(self.inside, a, 1), where(self.inside, x, 1)
        least = lambda v, bound: v.apply("stablehlo.minimum", bound)
        self.low_a, self.low_x = least(a, _MOST_A), least(x, _MOST_X)
        large = a > _LARGE
        self.near = large & (x >= _LOW * a) & (x <= _HIGH * a)
        border = where(large, _LOW * a, (a + 1).apply("stablehlo.maximum", _LEAST))
        self.below = x < border
        self.above = self.inside & ~(self.below | self.near)
        self.parts = scale(a)
        self.front, self.log_ratio = _front(a, x, self.parts)


def regularized(upper: bool) -> Any:
    """P, or with `upper` Q."""

    def formula(a: Term, x: Term) -> Term:
        at = _Pieces(a, x)
        (fraction,) = where_needed(at.above, _fraction, at.low_a, at.low_x)
        u, v = where(at.near, at.a, 1), where(at.near, at.x, 1)
        (near,) = where_needed(at.near, lambda a, x: _uniform(a, x, upper), u, v)
        p, q = at.front * _series(at.low_a, at.low_x), at.front * at.low_a * fraction
        value = where(at.below, 1 - p, q) if upper else where(at.below, p, 1 - q)
        value = where(at.near, near, value)
        if upper:  # there 1 - p loses digits
            tiny = at.below & (at.a < _TINY)
            (small,) = where_needed(tiny, _small, where(tiny, at.a, 0), where(tiny, at.x, 1))
            value = where(tiny, small, value)
        return outside(a, x, value, at.inside, float(upper), float(not upper))

    return formula


def grad_formula(a: Term, x: Term) -> Term:
    """The derivative of P by a."""
    at = _Pieces(a, x)
    fraction, rate = where_needed(at.above, _fraction_slope, at.low_a, at.low_x, count=2)
    u, v = where(at.near, at.a, 1), where(at.near, at.x, 1)
    (near,) = where_needed(at.near, _uniform_slope, u, v)
    log_rate = at.log_ratio - digamma_above(at.parts, at.a.like(0))  # log x - digamma(a + 1)
    total, change = _series_slope(at.low_a, at.low_x)
    low = total * log_rate + change
    high = -fraction * (at.low_a * (log_rate + rate) + 1)
    value = where(at.near, near, at.front * where(at.below, low, high))
    return outside(a, x, value, at.inside, 0.0, 0.0)
