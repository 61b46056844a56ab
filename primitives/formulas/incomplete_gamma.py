"""The regularized incomplete gamma functions and their derivatives, computed in float64.

With D = x**a exp(-x) / gamma(a + 1) and P = igamma, Q = igammac = 1 - P, by regions as in Gautschi, "A computational
procedure for incomplete gamma functions" (1979) and Temme (DLMF 8.12). `Digits` has the borders.

- a large and x within a factor of 2 of it: the error function and a series in 1/a, DLMF 8.12.3 to 8.12.12;
- else x below a, or small: P = D sum_n x**n / ((a + 1) ... (a + n)), DLMF 8.7.1;
- else: Q = a D times Legendre's continued fraction, DLMF 8.9.2;
- Q for x small and P near 1: DLMF 8.7.3, whose terms alternate.

Numbers of terms are fixed, those that the slowest element of a region needs. The sum and the fraction are computed as
quotients of two recurrences, whose only division is the last. Each region but that of the sum is computed only in
programs that meet an element of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from functorch_like.primitives.formulas.gamma import lgamma1p_near
from functorch_like.primitives.formulas.gamma_single import Scale, digamma_above, scale
from functorch_like.primitives.formulas.special import erfc
from functorch_like.primitives.formulas.temme import GAMMA_STAR, TEMME
from functorch_like.primitives.formulas.term import Term, choose, polynomial, where, where_needed

#: x / a between which the series in 1/a applies.
_LOW, _HIGH = 0.5, 1.7


class Digits(NamedTuple):
    """Borders of regions and numbers of terms for a precision.

    Attributes:
        large: the least `a` of the series in 1/a.
        least: the least x of the fraction.
        near_one: the least P beside which Q is not computed as 1 - P where x is below `least`.
        summands, steps, alternating: terms of the sum, the fraction and the alternating series.
        rows: numbers of coefficients of each power of 1/a.
        most_a, most_x: beyond these, D is 0 wherever it is used; the recurrences stay finite.
    """

    large: float
    least: float
    near_one: float
    summands: int
    steps: int
    alternating: int
    rows: tuple[int, ...]
    most_a: float
    most_x: float


#: For results in float64. More digits than these are lost in D only.
DOUBLE = Digits(20.0, 1.5, 0.75, 56, 68, 22, tuple(map(len, TEMME)), 4500.0, 8000.0)
#: For results in float32 and below: 10 digits.
SINGLE = Digits(12.0, 3.0, 0.999, 32, 19, 25, (16, 14, 12, 10, 10, 9, 7), 1500.0, 4000.0)


def _series(a: Term, x: Term, count: int) -> Term:
    """The sum of P over D."""
    numerator = denominator = a.like(1)
    for k in range(count, 0, -1):
        denominator = (a + k) * denominator
        numerator = denominator + x * numerator
    return numerator / denominator


def _series_slope(a: Term, x: Term, count: int) -> tuple[Term, Term]:
    """The sum of P over D, and its derivative by a."""
    n = d = a.like(1)
    dn = dd = a.like(0)
    for k in range(count, 0, -1):
        below = a + k
        dd, d = below * dd + d, below * d
        dn, n = dd + x * dn, d + x * n
    inverse = 1 / d
    total = n * inverse
    return total, (dn - total * dd) * inverse


def _fraction(a: Term, x: Term, count: int) -> Term:
    """Legendre's fraction."""
    shift = x + 1 - a
    n, d = shift + 2 * count, a.like(1)
    for k in range(count, 0, -1):
        n, d = (shift + 2 * (k - 1)) * n + (k * a - k * k) * d, n
    return d / n


def _fraction_slope(a: Term, x: Term, count: int) -> tuple[Term, Term]:
    """Legendre's fraction, and the derivative by a of its logarithm."""
    shift = x + 1 - a
    n, d = shift + 2 * count, a.like(1)
    dn, dd = a.like(-1), a.like(0)
    for k in range(count, 0, -1):
        over, under = shift + 2 * (k - 1), k * a - k * k
        dn, dd = over * dn - n + under * dd + k * d, dn
        n, d = over * n + under * d, n
    return d / n, dd / d - dn / n


def _small(a: Term, x: Term, count: int) -> Term:
    """Q for small x: 1 - w - w a sum_n (-x)**n / (n! (a + n)), w = x**a / gamma(a + 1)."""
    total, term = a.like(0), a.like(1)
    for k in range(1, count + 1):
        term = term * x * (-1 / k)
        total = total + term / (a + k)
    less = (a * x.log() - lgamma1p_near(a)).apply("stablehlo.exponential_minus_one")  # w - 1
    return -less - (less + 1) * a * total


def _half_square(mu: Term) -> Term:
    """mu - log(1 + mu) for -1/2 <= mu <= 0.7: with r = mu / (2 + mu) it is mu r - 2 (artanh(r) - r), DLMF 4.6.4."""
    r = mu / (mu + 2)
    square = r * r
    return r * (mu - 2 * square * polynomial(square, [1 / (2 * k + 3) for k in range(15)]))


def _eta(a: Term, x: Term) -> tuple[Term, Term, Term]:
    """mu = x / a - 1, half the square of eta, and eta."""
    mu = (x - a) / a
    half = _half_square(mu)
    size = (half * 2).sqrt()
    return mu, half, where(mu < 0, -size, size)


def _uniform(a: Term, x: Term, rows: tuple[int, ...], upper: bool) -> Term:
    """P or Q, DLMF 8.12.3 and 8.12.4."""
    _, half, eta = _eta(a, x)
    inverse, series = 1 / a, a.like(0)
    for c, count in reversed([*zip(TEMME, rows, strict=False)]):
        series = series * inverse + polynomial(eta, c[:count])
    rest = (a * -half).exp() * (inverse * (0.5 / math.pi)).sqrt() * series
    scaled = eta * (a * 0.5).sqrt()
    return erfc(scaled) * 0.5 + rest if upper else erfc(-scaled) * 0.5 - rest


def _uniform_slope(a: Term, x: Term, rows: tuple[int, ...]) -> tuple[Term, Term]:
    """The derivative of P by a, where d eta / d a = -mu / (eta a); and over D."""
    mu, half, eta = _eta(a, x)
    inverse = 1 / a
    centre = abs(mu) < 1e-8
    turned = where(centre, 1 + mu * (1 / 3), mu / where(centre, 1, eta))  # mu / eta
    series, by_eta, by_inverse = (a.like(0) for _ in range(3))
    for c, count in reversed([*zip(TEMME, rows, strict=False)]):
        by_inverse = by_inverse * inverse + series
        by_eta = by_eta * inverse + polynomial(eta, [k * v for k, v in enumerate(c[:count])][1:])
        series = series * inverse + polynomial(eta, c[:count])
    # The exponent -a eta**2 / 2 has the derivative mu - eta**2 / 2.
    rest = series * (mu - half - 0.5 * inverse) - inverse * (turned * by_eta + inverse * by_inverse)
    slope = 0.5 * eta - turned - rest
    # D is the factor of the slope over gamma*(a).
    return (a * -half).exp() * (inverse * (0.5 / math.pi)).sqrt() * slope, polynomial(inverse, GAMMA_STAR) * slope


class _Pieces:
    """Operands and regions.

    Attributes:
        a, x: operands, 1 outside the domain.
        low_a, low_x: the same, bounded.
        inside, below, above, near: the domain, and where the sum, the fraction, the series in 1/a apply.
        parts, front, log_ratio: of D; log(x / t) of the former's t.
    """

    def __init__(self, a: Term, x: Term, digits: Digits) -> None:
        self.digits = digits
        self.inside = (a > 0) & (x > 0) & (a < math.inf) & (x < math.inf)
        self.a, self.x = a, x = where(self.inside, a, 1), where(self.inside, x, 1)
        least = lambda v, bound: v.apply("stablehlo.minimum", bound)
        self.low_a, self.low_x = least(a, digits.most_a), least(x, digits.most_x)
        large = a > digits.large
        self.near = large & (x >= _LOW * a) & (x <= _HIGH * a)
        border = where(large, _LOW * a, (a + 1).apply("stablehlo.maximum", digits.least))
        self.below = x < border
        self.above = self.inside & ~(self.below | self.near)
        self.parts = scale(a)
        self.front, self.log_ratio = _front(a, x, self.parts)

    def where_near(self, formula: Callable[[Term, Term], Term | tuple[Term, Term]], count: int = 1) -> list[Term]:
        """A formula for large a and x close to it, evaluated if there are any."""
        a, x = where(self.near, self.a, 1), where(self.near, self.x, 1)
        return where_needed(self.near, formula, a, x, count=count)


def _front(a: Term, x: Term, parts: Scale) -> tuple[Term, Term]:
    """D, and log(x / t)."""
    log_ratio = (x * parts.inverse).log()
    power = (a * log_ratio + (parts.t - x)).exp()
    return power * (parts.inverse * (0.5 / math.pi)).sqrt() * parts.reciprocal, log_ratio


def _outside(a: Term, x: Term, value: Term, inside: Term, at_zero: float, at_end: float) -> Term:
    """The value at the borders of the domain, and NaN beyond."""
    invalid = (a < 0) | (x < 0) | a.differs(a) | x.differs(x)
    invalid = invalid | (a.equals(0) & x.equals(0)) | (a.equals(math.inf) & x.equals(math.inf))
    low = x.equals(0) | a.equals(math.inf)
    return choose(value.like(at_end), (invalid, math.nan), (inside, value), (low, at_zero))


def regularized(digits: Digits, upper: bool) -> Callable[[Term, Term], Term]:
    """P, or with `upper` Q."""

    def formula(a: Term, x: Term) -> Term:
        at = _Pieces(a, x, digits)
        (fraction,) = where_needed(at.above, lambda a, x: _fraction(a, x, digits.steps), at.low_a, at.low_x)
        (near,) = at.where_near(lambda a, x: _uniform(a, x, digits.rows, upper))
        p = at.front * _series(at.low_a, at.low_x, digits.summands)
        q = at.front * at.low_a * fraction
        value = where(at.below, 1 - p, q) if upper else where(at.below, p, 1 - q)
        value = where(at.near, near, value)
        if upper:
            close = at.below & (at.x < digits.least) & (p > digits.near_one)  # where 1 - p loses digits
            u, v = where(close, at.a, 1), where(close, at.x, 1)
            (small,) = where_needed(close, lambda a, x: _small(a, x, digits.alternating), u, v)
            value = where(close, small, value)
        return _outside(a, x, value, at.inside, float(upper), float(not upper))

    return formula


def _slope(at: _Pieces) -> tuple[Term, Term]:
    """The derivative of P by a, and over D."""
    digits = at.digits
    fraction, rate = where_needed(
        at.above, lambda a, x: _fraction_slope(a, x, digits.steps), at.low_a, at.low_x, count=2
    )
    near, near_over_front = at.where_near(lambda a, x: _uniform_slope(a, x, digits.rows), count=2)
    log_rate = at.log_ratio - digamma_above(at.parts, at.a.like(0))  # log x - digamma(a + 1)
    total, change = _series_slope(at.low_a, at.low_x, digits.summands)
    low = total * log_rate + change
    high = -fraction * (at.low_a * (log_rate + rate) + 1)
    over_front = where(at.below, low, high)
    return where(at.near, near, at.front * over_front), where(at.near, near_over_front, over_front)


def grad_formula(digits: Digits) -> Callable[[Term, Term], Term]:
    """The derivative of P by a."""

    def formula(a: Term, x: Term) -> Term:
        at = _Pieces(a, x, digits)
        return _outside(a, x, _slope(at)[0], at.inside, 0.0, 0.0)

    return formula


def random_formula(digits: Digits) -> Callable[[Term, Term], Term]:
    """Minus the derivative of P by a, over that by x, which is D a / x."""

    def formula(a: Term, x: Term) -> Term:
        at = _Pieces(a, x, digits)
        ratio = at.x / at.a
        known = at.near | ((at.a < digits.most_a) & (at.x < digits.most_x))
        far = where(known, 2, ratio)
        limit = far * far.log() / (far - 1)  # for a to infinity, of no sample that is ever drawn
        value = where(known, -_slope(at)[1] * ratio, limit)
        return _outside(a, x, value, at.inside, 0.0, math.inf)

    return formula
