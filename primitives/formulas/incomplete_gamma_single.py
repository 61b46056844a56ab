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
from functorch_like.primitives.formulas.incomplete_gamma import outside
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
_TEMME = (
    (
        -0.3333333333333333,
        0.08333333333333333,
        -0.014814814814814815,
        0.0011574074074074073,
        0.0003527336860670194,
        -0.0001787551440329218,
        3.919263178522438e-05,
        -2.185448510679992e-06,
        -1.85406221071516e-06,
        8.296711340953087e-07,
        -1.7665952736826078e-07,
        6.707853543401498e-09,
        1.0261809784240309e-08,
        -4.382036018453353e-09,
        9.14769958223679e-10,
        -2.5514193994946248e-11,
    ),
    (
        -0.001851851851851852,
        -0.003472222222222222,
        0.0026455026455026454,
        -0.0009902263374485596,
        0.00020576131687242798,
        -4.018775720164609e-07,
        -1.8098550334489977e-05,
        7.64916091608111e-06,
        -1.6120900894563446e-06,
        4.647127802807434e-09,
        1.378633446915721e-07,
        -5.752545603517705e-08,
        1.1951628599778148e-08,
        -1.7543241719747647e-11,
    ),
    (
        0.004133597883597883,
        -0.0026813271604938273,
        0.0007716049382716049,
        2.0093878600823047e-06,
        -0.0001073665322636516,
        5.2923448829120125e-05,
        -1.2760635188618728e-05,
        3.423578734096138e-08,
        1.3721957309062934e-06,
        -6.298992138380055e-07,
        1.4280614206064242e-07,
        -2.0477098421990866e-10,
    ),
    (
        0.0006494341563786008,
        0.00022947209362139917,
        -0.0004691894943952557,
        0.00026772063206283885,
        -7.561801671883977e-05,
        -2.396505113867297e-07,
        1.1082654115347302e-05,
        -5.6749528269915965e-06,
        1.4230900732435883e-06,
        -2.7861080291528143e-11,
    ),
    (
        -0.0008618882909167117,
        0.0007840392217200666,
        -0.0002990724803031902,
        -1.4638452578843418e-06,
        6.641498215465122e-05,
        -3.968365047179435e-05,
        1.1375726970678419e-05,
        2.507497226237533e-10,
        -1.6954149536558305e-06,
        8.907507532205309e-07,
    ),
    (
        -0.00033679855336635813,
        -6.972813758365857e-05,
        0.0002772753244959392,
        -0.00019932570516188847,
        6.797780477937208e-05,
        1.419062920643967e-07,
        -1.3594048189768693e-05,
        8.018470256334202e-06,
        -2.291481176508095e-06,
    ),
    (
        0.0005313079364639922,
        -0.0005921664373536939,
        0.0002708782096718045,
        7.902353232660328e-07,
        -8.153969367561969e-05,
        5.61168275310625e-05,
        -1.8329116582843375e-05,
    ),
)


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
