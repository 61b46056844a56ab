"""lgamma, digamma and polygamma in double precision, in all regimes at once, so that CPUs run vectors.

XLA:CPU calls scalar functions, and loses digits near 1 and 2. Polynomials are Chebyshev interpolants by mpmath.
"""

from __future__ import annotations

import math

from functorch_like.primitives.elementwise.vectorized_cpu import large_double
from functorch_like.primitives.formulas import gamma_single
from functorch_like.primitives.formulas.logarithm import log_of_normal
from functorch_like.primitives.formulas.term import Term, choose, estrin, quotient, where

#: log gamma(2 + z) / z for |z| <= 1/2.
_NEAR = (
    0.42278433509846713, 0.3224670334241132, -0.06735230105319563, 0.02058080842778338, -0.007385551028935545,
    0.002890510330865901, -0.0011927539009983087, 0.0005096695196526673, -0.00022315497746292723,
    9.945761692157133e-05, -4.4923727564247656e-05, 2.050601970174762e-05, -9.45628851510172e-06,
    4.3828545383846665e-06, -1.9743106888421067e-06, 9.242852225162277e-07, -5.811277768921246e-07,
    2.7475390051909663e-07,
)  # fmt: skip
#: log gamma(4.75 + z) for |z| <= 1.25.
_MIDDLE = (
    2.8085714185757364, 1.4492040552784629, 0.11711437078957103, -0.009103402098328899, 0.0010568550001929867,
    -0.00014661993522007967, 2.2509971854849378e-05, -3.688351179580605e-06, 6.322059056693784e-07,
    -1.1197669050021095e-07, 2.0330618049074825e-08, -3.762866560940403e-09, 7.070402588879793e-10,
    -1.345197193954953e-10, 2.5951824696025214e-11, -5.030428099261888e-12, 9.28507442700957e-13,
    -1.8214512383233712e-13, 5.202557910405936e-14, -1.033773664052183e-14,
)  # fmt: skip
#: In powers of 1/x**2, for x >= 6, as in Stirling's series: x (log gamma(x) - (x - 1/2)(log(x) - 1) - _HALF).
_FAR = (
    0.08333333333333333, -0.002777777777777551, 0.0007936507934316619, -0.0005952380131643024, 0.0008417353128972711,
    -0.0019158553219704195, 0.006302222071914903, -0.02530045615535285, 0.07944960996448742,
)  # fmt: skip
_HALF = 0.4189385332046727  # (log(2 pi) - 1) / 2
#: In powers of r**2: sin(pi r) / r for |r| <= 1/2.
_SINE = (
    3.141592653589793, -5.16771278004997, 2.5501640398773455, -0.5992645293207921, 0.08214588661112787,
    -0.007370430945707596, 0.0004663028056889684, -2.191535285969446e-05, 7.952025736213849e-07,
    -2.293998713586946e-08, 5.249879114060463e-10,
)  # fmt: skip
#: In powers of z: digamma(3/2 + z) / (3/2 + z - r) for |z| <= 1/2, with its zero r; the number, and the value there.
_BY_ROOT = (
    0.951055876031833, -0.4236274212814605, 0.2405424842407742, -0.14840492305390884, 0.09498872445494122,
    -0.061922133273064534, 0.04076083381242074, -0.02697579675613825, 0.0179072524394512, -0.011908218001568644,
    0.007926944646403797, -0.005279964873257405, 0.003519006401502276, -0.002345267632540769, 0.0015566317474486838,
    -0.0010376374098418604, 0.0007233266279287554, -0.0004821990530566789, 0.0002272331660987376,
    -0.00015148586836773365, 0.00025968482126430747, -0.00017312261802727394,
)  # fmt: skip
_ROOT, _AT_ROOT = 1.4616321449683622, 9.549995429965697e-17 * 0.9676722454476212
#: In powers of 1/x**2, for x >= 6 (DLMF 5.11.2): x**2 (log(x) - 1/(2x) - digamma(x)).
_FAR_SLOPE = (
    0.08333333333333333, -0.008333333333333314, 0.003968253968225959, -0.004166666650734133, 0.0075757528939969345,
    -0.021091985673306127, 0.08324461700342232, -0.43687790853532266, 2.7467820679941632, -16.496233647188873,
    60.828588615448886,
)  # fmt: skip


def _sine(r: Term) -> Term:
    """sin(pi r) for |r| <= 1/2."""
    return r * estrin(r * r, _SINE)


def _positive(x: Term) -> Term:
    """log gamma(x) for x > 0: by gamma(x + 1) = x gamma(x) from around 2, directly from 3.5 on."""
    tiny, small, around, above, middle = x < 0.5, x < 1.5, x < 2.5, x < 3.5, x < 6
    z = choose(x - 3, (tiny, x), (small, x - 1), (around, x - 2))
    far = where(middle, 6, x)
    inverse = 1 / far
    start = choose(
        (_HALF + inverse * estrin(inverse * inverse, _FAR)),
        (above, z * estrin(z, _NEAR)),
        (middle, _over_middle(where(above, 4.75, x) - 4.75)),
    )
    argument = choose(x, (tiny, x * (x + 1)), (small, x), (around, x.like(1)), (above, x - 1), (middle, x.like(1)))
    factor = choose(x - 0.5, (small, x.like(-1)), (middle, x.like(1)))
    logarithm = log_of_normal(argument)
    return factor * where(middle, logarithm, logarithm - 1) + start


def _over_middle(z: Term) -> Term:
    first, *others = _MIDDLE
    return first + z * estrin(z, others)


def lgamma(x: Term) -> Term:
    """log |gamma(x)|: for x < 0 by gamma(x) gamma(1 - x) sin(pi x) = pi."""
    left = x < 0
    value = _positive(where(left, 1 - x, x))
    r = abs(x - x.apply("stablehlo.round_nearest_even"))
    pole = r.equals(0) & (x <= 0)
    value = where(left, log_of_normal(math.pi / where(r > 0, _sine(r), 1)) - value, value)
    return where(pole, math.inf, where(abs(x) < math.inf, value, abs(x)))


def _positive_slope(x: Term) -> Term:
    """digamma(x) for x > 0: by digamma(x + 1) = digamma(x) + 1/x from its zero, or from 6 on."""
    small, around, middle = x < 1, x < 2, x < 6
    y = where(small, x + 1, where(around, x, 1.5))
    by_root = (y - _ROOT) * estrin(y - 1.5, _BY_ROOT) - _AT_ROOT  # XLA would add both parts of the zero
    far = where(around, 6, where(middle, x + 4, x))
    inverse = 1 / far
    square = inverse * inverse
    by_series = log_of_normal(far) - (0.5 * inverse + square * estrin(square, _FAR_SLOPE))
    # Four steps from x to x + 4, with p = x (x + 3): (2x + 3) / p + (2x + 3) / (p + 2).
    held = where(middle, x, 1)
    p = held * (held + 3)
    steps = quotient(where(small, 1, (2 * held + 3) * (2 * p + 2)), where(small, x, p * (p + 2)))
    return where(around, by_root, by_series) - choose(steps, (small, steps), (around, x.like(0)), (~middle, x.like(0)))


def digamma(x: Term) -> Term:
    """The derivative of lgamma: for x < 0 by digamma(1 - x) - digamma(x) = pi cot(pi x)."""
    left = x < 0
    r = x - x.apply("stablehlo.round_nearest_even")
    turned = math.pi * _sine(0.5 - abs(r)) / where(left, _sine(r), 1)
    value = _positive_slope(where(left, 1 - x, x))
    value = where(left, where(r.equals(0), math.nan, value - turned), value)
    return where(abs(x) < math.inf, value, where(x > 0, x, math.nan))


def polygamma(x: Term, *, m: int) -> Term:
    """The m-th derivative of digamma. With eight summands more than its order the expansion has all digits."""
    return gamma_single.polygamma(x, m=m, digits=gamma_single.Digits(8, _sine, lambda r: _sine(0.5 - abs(r))))


DIGAMMA = large_double("digamma", digamma, domain=(-9.0, 9.0))._replace(slow_compile=True)
LGAMMA = large_double("lgamma", lgamma, domain=(-9.0, 9.0))._replace(slow_compile=True)
