"""The regularized incomplete gamma functions and their derivatives, as formulas in float64.

With D = x**a exp(-x) / gamma(a + 1) and P = igamma, Q = igammac = 1 - P, by regions as in Gautschi, "A computational
procedure for incomplete gamma functions" (1979) and Temme (DLMF 8.12):

- x below a, or small: P = D sum_n x**n / ((a + 1) ... (a + n)), DLMF 8.7.1;
- x small and above a: Q = 1 - w - w a sum_n (-x)**n / (n! (a + n)), w = x**a / gamma(a + 1), DLMF 8.7.3;
- x above a: Q = a D times Legendre's continued fraction, DLMF 8.9.2, by Lentz's algorithm;
- a large: the error function and a series in 1/a, DLMF 8.12.3 to 8.12.9.

All is computed in float64; the sums end where they have converged. The derivative by a is that of the sums, term by
term; for large a, and for derivatives of it, a difference quotient of fourth order.
"""

from __future__ import annotations

import math
from typing import Any

from functorch_like.primitives.formulas.gamma import digamma, lgamma1p, log1p_less, stirling
from functorch_like.primitives.formulas.term import Term, choose, iterate, polynomial, where

_EPS = 2.0**-53
_LARGE, _MOST = 1e4, 5000
# Of DLMF 8.12.7 the coefficients c_k of a**-k, as series in eta.
TEMME = (
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
        -5.830772132550426e-11,
        2.4361948020667415e-11,
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
_TEMME = tuple(row[:count] for row, count in zip(TEMME, (18, 14, 10, 6), strict=False))


def _factor(a: Term, x: Term) -> Term:
    """D, without cancellation in its exponent."""
    u = (x - a) / a
    exponent = where(abs(u) < 0.5, a * log1p_less(u), a * (x / a).log() + (a - x))
    return (exponent - stirling(a)).exp() / (a * (2 * math.pi)).sqrt()


def _power_series(a: Term, x: Term, active: Term) -> tuple[Term, Term]:
    """The sum of P over D, and its derivative by a."""

    def step(k: Term, operands: Any, s: Term, ds: Term, t: Term, slope: Term) -> Any:
        a, x = operands
        below = a + k
        t, slope = t * x / below, slope - 1 / below
        change = t * slope
        return (s + t, ds + change, t, slope), (t <= s * _EPS) & (abs(change) <= abs(ds) * _EPS)

    one, zero = a.like(1), a.like(0)
    total, derivative, _, _ = iterate([one, zero, one, zero], [a, x], active, step, _MOST)
    return total, derivative


def _fraction(a: Term, x: Term, active: Term) -> tuple[Term, Term]:
    """Legendre's fraction, and the derivative by a of its logarithm."""

    def step(k: Term, operands: Any, h: Term, g: Term, c: Term, dc: Term, d: Term, dd: Term) -> Any:
        a, x = operands
        shift = k - a
        b, top = x + 1 + k + shift, -(k * shift)
        new_d = 1 / (b + top * d)
        new_dd = -(new_d * new_d) * (k * d + top * dd - 1)
        new_c = b + top / c
        new_dc = (k - top * dc / c) / c - 1
        factor, change = new_c * new_d, new_dc / new_c + new_dd / new_d
        done = (abs(factor - 1) <= 4 * _EPS) & (abs(change) <= (abs(g) + abs(dc / c)) * 4 * _EPS)  # of three roundings
        return (h * factor, g + change, new_c, new_dc, new_d, new_dd), done

    first = 1 / where(active, x + 1 - a, 1)
    start = [first, first, a.like(1e300), a.like(0), first, first * first]
    return tuple(iterate(start, [a, x], active, step, _MOST)[:2])  # type: ignore[return-value]


def small_upper(a: Term, x: Term, active: Term) -> Term:
    """Q for small x, by the alternating series."""

    def step(k: Term, operands: Any, s: Term, t: Term) -> Any:
        a, x = operands
        t = -(t * x) / k
        change = t / (a + k)
        return (s + change, t), abs(change) <= abs(s) * _EPS

    total, _ = iterate([a.like(0), a.like(1)], [a, x], active, step, 60)
    power = a * where(active, x, 1).log() - lgamma1p(where(active, a, 1))
    power_less = power.apply("stablehlo.exponential_minus_one")
    return -power_less - (power_less + 1) * a * total


def _uniform(a: Term, x: Term) -> tuple[Term, Term]:
    """P and Q for large a, DLMF 8.12.3 and 8.12.4."""
    mu = (x - a) / a
    size = (-2 * log1p_less(mu)).sqrt()
    eta = where(mu < 0, -size, size)
    near = eta.apply("stablehlo.minimum", 0.5).apply("stablehlo.maximum", -0.5)  # beyond, all that it multiplies is 0
    series = a.like(0)
    for c in reversed(_TEMME):
        series = series / a + polynomial(near, c)
    rest = (a * eta * eta * -0.5).exp() / (a * (2 * math.pi)).sqrt() * series
    scaled = eta * (a * 0.5).sqrt()
    return (-scaled).apply("chlo.erfc") * 0.5 - rest, scaled.apply("chlo.erfc") * 0.5 + rest


def _pieces(a: Term, x: Term) -> tuple[Term, Term, Term, Term, Term]:
    """Operands made safe, and where they are: inside the domain; a large; the series of P, or the fraction, applies."""
    inside = (a > 0) & (x > 0) & (a < math.inf) & (x < math.inf)
    a, x = where(inside, a, 1), where(inside, x, 1)
    large = a > _LARGE
    below = where(x <= 0.5, -0.4 / where(x < 1, x, 0.5).log(), where(x <= 1.1, x * 1.1, x)) < a
    return inside, a, x, large, below


def outside(a: Term, x: Term, value: Term, inside: Term, at_zero: float, at_end: float) -> Term:
    """The value at the borders of the domain, and NaN beyond."""
    invalid = (a < 0) | (x < 0) | a.differs(a) | x.differs(x)
    invalid = invalid | (a.equals(0) & x.equals(0)) | (a.equals(math.inf) & x.equals(math.inf))
    low = x.equals(0) | a.equals(math.inf)
    return choose(value.like(at_end), (invalid, math.nan), (inside, value), (low, at_zero))


def regularized(upper: bool) -> Any:
    """P, or with `upper` Q."""

    def formula(a: Term, x: Term) -> Term:
        inside, u, v, large, below = _pieces(a, x)
        total, _ = _power_series(u, v, below & ~large)
        tiny = ~below & ~large & (v <= 1.1)
        fraction, _ = _fraction(u, v, ~below & ~large & (v > 1.1))
        factor = _factor(u, v)
        p, q = factor * total, where(tiny, small_upper(u, v, tiny), factor * u * fraction)
        far_p, far_q = _uniform(u, v)
        value = where(below, 1 - p, q) if upper else where(below, p, 1 - q)
        value = where(large, far_q if upper else far_p, value)
        return outside(a, x, value, inside, float(upper), float(not upper))

    return formula


def _slope(a: Term, x: Term) -> tuple[Term, Term, Term]:
    """The derivative of P by a; the same over the density; and where they are defined."""
    inside, u, v, large, below = _pieces(a, x)
    below = below | (v <= 1.1)
    total, change = _power_series(u, v, below & ~large)
    fraction, rate = _fraction(u, v, ~below & ~large)
    log_x, factor = v.log(), _factor(u, v)
    over_factor = where(
        below, total * (log_x - digamma(u + 1)) + change, -(u * fraction * (log_x - digamma(u) + rate))
    )  # over D; the density is D a / x
    h = u.sqrt() * 0.002
    upper = v > u

    def at(shift: float) -> Term:
        p, q = _uniform(u + h * shift, v)
        return where(upper, -q, p)

    far = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h)
    density = factor * u / v
    known = large & (density > 1e-290)
    ratio = choose(-(v / u), (known, far / where(known, density, 1)), (~large, over_factor * v / u))
    return where(large, far, over_factor * factor), ratio, inside


def grad_formula(a: Term, x: Term) -> Term:
    """The derivative of P by a."""
    value, _, inside = _slope(a, x)
    return outside(a, x, value, inside, 0.0, 0.0)


def random_formula(a: Term, x: Term) -> Term:
    """Minus the derivative of P by a, over that by x."""
    _, ratio, inside = _slope(a, x)
    return outside(a, x, -ratio, inside, 0.0, math.inf)
