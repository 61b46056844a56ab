"""Parts of the gamma functions in double precision, for vectors, and functions that are right to single precision.

gamma(z + 1) = sqrt(2 pi) t**(z + 1/2) exp(-t) / R(s) with t = z + 3/2 and s = 1 - 3 / t, as in Lanczos's approximation
(SIAM J. Numer. Anal. 1, 1964). For z >= 0, s is in [-1, 1]. The polynomials are Chebyshev interpolants of 40 nodes,
computed with mpmath to 60 digits and cut off where the rest is below 4e-16.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from functorch_like.primitives.formulas.logarithm import log_of_normal
from functorch_like.primitives.formulas.term import Term, choose, polynomial, where

#: R(s).
RECIPROCAL = (
    0.8449145677995561,
    0.15746414599984357,
    -0.0024305145874791113,
    3.23229311750328e-05,
    1.8979809014853928e-05,
    1.0887086255265495e-06,
    -4.4740778628917485e-07,
    -1.4406355600578477e-07,
    -1.0875669630598833e-08,
    7.449584720460167e-09,
    3.7810408936916525e-09,
    8.07157528440982e-10,
    -1.3799293005845962e-10,
    -1.8099519798533585e-10,
    -3.82860396386688e-11,
    5.766569943232815e-12,
)
#: digamma(z + 1) - log(t), in s.
DIGAMMA = (
    -0.3954556480228666,
    0.471073268300707,
    -0.09184496408705368,
    0.01947978986934951,
    -0.0038789681653383997,
    0.0007548500745304887,
    -0.00015459777812837816,
    3.117243608514908e-05,
    -5.944199463806033e-06,
    1.2609804107324385e-06,
    -2.5200109187302846e-07,
    4.292241147104613e-08,
    -1.2111080464196046e-08,
    1.694869003709309e-09,
    -1.3982530102239777e-10,
    2.264854715429839e-10,
)
#: sin(pi r) / r and cos(pi r) for |r| <= 1/2, in r**2.
SINE = (
    3.1415926535897927,
    -5.167712780049786,
    2.550164039861884,
    -0.5992645288256148,
    0.08214587882077493,
    -0.007370364352718201,
    0.0004659870919775173,
    -2.1133714397960184e-05,
)
COSINE = (
    0.9999999999999981,
    -4.934802200543688,
    4.058712126333393,
    -1.3352627661841194,
    0.23533058834009699,
    -0.025806532133815882,
    0.001927870511963925,
    -0.00010041698903468872,
)


def turn(x: Term) -> tuple[Term, Term]:
    """Distance r of x from the nearest whole number n, and (-1)**n."""
    nearest = x.apply("stablehlo.round_nearest_even")
    half = nearest * 0.5
    return x - nearest, 1 - 4 * (half - half.floor())


def sine(r: Term) -> Term:
    """sin(pi r) for |r| <= 1/2."""
    return r * polynomial(r * r, SINE)


def cosine(r: Term) -> Term:
    """cos(pi r) for |r| <= 1/2."""
    return polynomial(r * r, COSINE)


class Scale(NamedTuple):
    """gamma(z + 1) in parts, for z >= 0.

    Attributes:
        t: z + 3/2.
        inverse: 1 / t.
        at: the variable s of the polynomials.
        reciprocal: R(s).
    """

    t: Term
    inverse: Term
    at: Term
    reciprocal: Term


def scale(z: Term) -> Scale:
    """Take gamma(z + 1) apart."""
    t = z + 1.5
    inverse = 1 / t
    at = 1 - 3 * inverse
    return Scale(t, inverse, at, polynomial(at, RECIPROCAL))


def stirling(z: Term) -> Term:
    """log gamma(z) - ((z - 1/2) log z - z + log(2 pi) / 2) for z > 0, which goes to 0 (DLMF 5.11.1)."""
    parts = scale(z)
    return (z + 0.5) * (1.5 / z).apply("stablehlo.log_plus_one") - 1.5 - parts.reciprocal.log()


def digamma_above(parts: Scale, log_t: Term) -> Term:
    """digamma(z + 1)."""
    return log_t + polynomial(parts.at, DIGAMMA)


def lgamma(x: Term) -> Term:
    """log |gamma(x)|: of gamma(|x| + 1) divided by x, or by reflection (DLMF 5.5.3) left of 0."""
    size, left = abs(x), x < 0
    parts = scale(size)
    main = (size + 0.5) * (log_of_normal(parts.t) - 1) - 1
    r, _ = turn(where(left, x, 0.5))
    top = where(left, x.like(math.pi), math.sqrt(2 * math.pi))
    bottom = where(left, abs(sine(r)) * math.sqrt(2 * math.pi) / parts.reciprocal, size * parts.reciprocal)
    rest = log_of_normal(top / bottom)
    end = size.equals(math.inf) | bottom.equals(0)
    return choose(
        where(left, -main, main) + rest, (x.differs(x), x), (end, math.inf), (x.equals(1) | x.equals(2), 0)
    )  # fmt: skip


def digamma(x: Term) -> Term:
    """Digamma: of |x| + 1 less 1 / x, or by reflection (DLMF 5.5.4) left of 0."""
    left = x < 0
    parts = scale(abs(x))
    above = digamma_above(parts, log_of_normal(parts.t))
    r, _ = turn(where(left, x, 0.5))
    top = where(left, cosine(r) * math.pi, 1)
    bottom = where(left, sine(r), x)
    value = above - top / bottom
    pole = (left & r.equals(0)) | x.equals(-math.inf)
    return choose(value, (pole, math.nan), (x.equals(math.inf) | x.differs(x), x))


#: Numbers of summands before the expansion of Euler and Maclaurin, DLMF 25.11.5; and its B_2j / (2j)!.
_DIRECT = 4
_EULER = tuple(b / math.factorial(2 * j + 2) for j, b in enumerate(
    (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
))  # fmt: skip
#: The greatest order of `polygamma` by the expansion.
HIGHEST = 12


def _expansion(s: Any, top: Any, at: Term, power: Term) -> Term:
    """The sum of (at + k)**-s over k = 0, 1, ..., where at**-s is `power` and s in the products is `top`."""
    inverse = 1 / at
    square = inverse * inverse
    total, factor = power * (at / (s - 1) + 0.5), power * inverse * top
    for j, c in enumerate(_EULER):
        total = total + factor * c
        factor = factor * square * ((top + (2 * j + 1)) * (top + (2 * j + 2)))
    return total


def zeta(s: Term, q: Term) -> Term:
    """The Hurwitz zeta function for finite s > 1 and q > 0."""
    power = lambda base: (-s * log_of_normal(base)).exp()
    at = q + _DIRECT
    total = power(q)
    for k in range(1, _DIRECT):
        total = total + power(q + k)
    return total + _expansion(s, s.apply("stablehlo.minimum", 1e3), at, power(at))


def zeta_is_usual(s: Term, q: Term) -> Term:
    """Return True where `zeta` applies."""
    return (s > 1) & (s < math.inf) & (q > 0) & (q < math.inf)


class Digits(NamedTuple):
    """Parts of `polygamma` that its number of digits depends on.

    Attributes:
        direct: number of summands before the expansion, less the order.
        sine, cosine: sin(pi r) and cos(pi r) for |r| <= 1/2.
    """

    direct: int
    sine: Callable[[Term], Term]
    cosine: Callable[[Term], Term]


_SINGLE = Digits(_DIRECT, sine, cosine)


def polygamma(x: Term, *, m: int, digits: Digits | None = None) -> Term:
    """The m-th derivative of digamma, m >= 1: of |x| + 1 and x**-(m + 1), or by reflection (DLMF 5.15.6) left of 0."""
    direct, sine, cosine = digits or _SINGLE
    left, end = x < 0, abs(x).equals(math.inf)
    size = where(end, 1, abs(x))
    total = _zeta_by_expansion(m + 1, size + 1, direct + m - 1) if m <= HIGHEST else _zeta_by_xla(m + 1, size + 1)
    sign, factor = (1.0 if m % 2 else -1.0), math.gamma(m + 1)
    right = (total + 1 / _whole_power(x, m + 1)) * (sign * factor)
    r, _ = turn(where(left & ~end, x, 0.5))
    root = sine(r)
    slope = polynomial(cosine(r) / root, _cotangent(m)) / (root * root)
    pole, outer = (math.inf, 0.0) if m % 2 else (math.nan, -0.0)
    poles = where(left, root, x if m % 2 == 0 else 1).equals(0) | (end & left)
    return choose(where(left, slope * sign - total * factor, right), (poles, pole), (end, outer), (x.differs(x), x))


def _zeta_by_expansion(s: int, q: Term, direct: int) -> Term:
    total = sum((_whole_power(1 / (q + k), s) for k in range(1, direct)), _whole_power(1 / q, s))
    at = q + direct
    return total + _expansion(float(s), float(s), at, _whole_power(1 / at, s))


def _zeta_by_xla(s: int, q: Term) -> Term:
    """The Hurwitz zeta function of q > 0, where XLA's is right."""
    return q.like(s).apply("chlo.zeta", q)


def _cotangent(m: int) -> list[float]:
    """Coefficients p with (-1)**m pi (d/dx)**m cot(pi x) = p(cot(pi x)) / sin(pi x)**2."""
    p = [math.pi**2]
    for _ in range(m - 1):
        above = [a + b for a, b in zip([*p, 0.0, 0.0], [0.0, 0.0, *p], strict=True)]  # times 1 + cot**2
        p = [math.pi * k * a for k, a in enumerate(above)][1:]
    return p


def _whole_power(x: Term, n: int) -> Term:
    half = _whole_power(x, n // 2) if n > 1 else x
    return half if n == 1 else half * half * x if n % 2 else half * half
