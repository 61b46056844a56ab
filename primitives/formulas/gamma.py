"""Parts of the incomplete gamma and beta functions, as formulas of `Term`s in float64.

Each keeps its relative accuracy where the textbook form cancels. The numbers are Taylor coefficients, computed with
mpmath to 40 digits.
"""

from __future__ import annotations

from functorch_like.primitives.formulas.term import Term, choose, polynomial, where

#: zeta(k) - 1 for k = 2, 3, ...
_ZETA_LESS_ONE = (
    0.6449340668482264,
    0.2020569031595943,
    0.08232323371113819,
    0.03692775514336993,
    0.01734306198444914,
    0.008349277381922827,
    0.00407735619794434,
    0.0020083928260822143,
    0.0009945751278180853,
    0.0004941886041194645,
    0.0002460865533080483,
    0.00012271334757848915,
    6.124813505870483e-05,
    3.058823630702049e-05,
    1.528225940865187e-05,
    7.637197637899763e-06,
    3.81729326499984e-06,
    1.908212716553939e-06,
    9.539620338727962e-07,
    4.769329867878064e-07,
    2.38450502727733e-07,
    1.1921992596531106e-07,
    5.960818905125948e-08,
    2.980350351465228e-08,
    1.4901554828365043e-08,
    7.45071178983543e-09,
    3.725334024788457e-09,
    1.862659723513049e-09,
)

_LGAMMA = (1 - 0.5772156649015329, *((-1) ** k * z / k for k, z in enumerate(_ZETA_LESS_ONE, 2)))


def lgamma_near_two(a: Term) -> Term:
    """log gamma(2 + a) for |a| <= 1/2, with its zero at 0 (DLMF 5.7.3)."""
    return a * polynomial(a, _LGAMMA)


def lgamma1p_near(a: Term) -> Term:
    """log gamma(1 + a) for -1/2 <= a <= 5/2, by gamma(1 + a) = a gamma(a)."""
    below, above = a <= 0.5, a > 1.5
    small = lgamma_near_two(choose(a - 1, (below, a), (above, a - 2)))
    return small + where(below, -where(below, a, 0).log1p(), where(above, a, 1).log())


#: In powers of r**2: artanh(r) / r**3 - 1 / r**2 for |r| <= 1/3.
LOG1P_LESS = tuple(1 / (2 * k + 3) for k in range(18))


def log1p_less(u: Term) -> Term:
    """log(1 + u) - u: with r = u / (2 + u) the logarithm is 2 artanh(r) (DLMF 4.6.4), and u - 2r is u r."""
    small = abs(u) < 0.5
    v = where(small, u, 0)
    r = v / (v + 2)
    square = r * r
    series = polynomial(square, LOG1P_LESS)
    return where(small, 2 * r * square * series - v * r, u.log1p() - u)


def digamma(x: Term) -> Term:
    """The derivative of log gamma."""
    return x.apply("chlo.digamma")
