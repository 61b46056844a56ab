"""Parts of the gamma functions in double precision for results in single precision: vectors, without branches.

gamma(z + 1) = sqrt(2 pi) t**(z + 1/2) exp(-t) / R(s) with t = z + 3/2 and s = 1 - 3 / t, as in Lanczos's approximation
(SIAM J. Numer. Anal. 1, 1964). For z >= 0, s is in [-1, 1]. The polynomials are Chebyshev interpolants of 40 nodes,
computed with mpmath to 60 digits and cut off where the rest is below 4e-16.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from functorch_like.primitives.formulas.real import bits
from functorch_like.primitives.formulas.term import Term, polynomial

#: R(s).
_RECIPROCAL = (
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
_DIGAMMA = (
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
_SINE = (
    3.1415926535897927,
    -5.167712780049786,
    2.550164039861884,
    -0.5992645288256148,
    0.08214587882077493,
    -0.007370364352718201,
    0.0004659870919775173,
    -2.1133714397960184e-05,
)
_COSINE = (
    0.9999999999999981,
    -4.934802200543688,
    4.058712126333393,
    -1.3352627661841194,
    0.23533058834009699,
    -0.025806532133815882,
    0.001927870511963925,
    -0.00010041698903468872,
)
#: (2 artanh(r) / r - 2) / r**2 for |r| <= 0.1717, in r**2.
_LOG = (
    0.666666666666667,
    0.3999999999989839,
    0.2857142862645262,
    0.2222221106056441,
    0.18182894320084278,
    0.15331554743280912,
    0.14618452072714802,
)
_ROOT_HALF = int(np.array(math.sqrt(0.5)).view(np.int64))
_ONE, _MANTISSA = 0x3FF << 52, (1 << 52) - 1
_WHOLE = 0x433 << 52  # the bits of 2**52, whose last digit is 1


def log(x: Term) -> Term:
    """Natural logarithm of a positive normal float64, by artanh (DLMF 4.6.4); infinities and NaN give numbers.

    XLA's takes twice the time.
    """
    raw, aval = bits(x)
    op = lambda name, a, b: x.e.op(f"stablehlo.{name}", [a, x.e.full(b, aval)], [aval])
    real = lambda v: Term(x.e, x.e.op("stablehlo.bitcast_convert", [v], [x.aval]), x.aval)
    moved = op("add", raw, _ONE - _ROOT_HALF)
    exponent = real(op("or", op("shift_right_logical", moved, 52), _WHOLE)) - (2.0**52 + 1023)
    m = real(op("add", op("and", moved, _MANTISSA), _ROOT_HALF))  # sqrt(1/2) <= m < sqrt(2)
    r = (m - 1) / (m + 1)
    square = r * r
    return exponent * math.log(2) + (r * square * polynomial(square, _LOG) + r * 2)


def turn(x: Term) -> tuple[Term, Term]:
    """Distance r of x from the nearest whole number n, and (-1)**n."""
    nearest = x.apply("stablehlo.round_nearest_even")
    half = nearest * 0.5
    return x - nearest, 1 - 4 * (half - half.floor())


def sine(r: Term) -> Term:
    """sin(pi r) for |r| <= 1/2."""
    return r * polynomial(r * r, _SINE)


def cosine(r: Term) -> Term:
    """cos(pi r) for |r| <= 1/2."""
    return polynomial(r * r, _COSINE)


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
    return Scale(t, inverse, at, polynomial(at, _RECIPROCAL))


def digamma_above(parts: Scale, log_t: Term) -> Term:
    """digamma(z + 1)."""
    return log_t + polynomial(parts.at, _DIGAMMA)
