"""lgamma in double precision, as a form that CPUs run on vectors: all regimes at once, with one logarithm for them.

XLA:CPU calls scalar functions, and loses digits near 1 and 2. Polynomials are Chebyshev interpolants by mpmath.
"""

from __future__ import annotations

import math

from functorch_like.primitives.elementwise.exponential_double_cpu import log_of_normal
from functorch_like.primitives.elementwise.vectorized_cpu import large_double
from functorch_like.primitives.formulas.term import Term, choose, estrin, where

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
    sine = r * estrin(r * r, _SINE)
    value = where(left, log_of_normal(math.pi / where(r > 0, sine, 1)) - value, value)
    return where(pole, math.inf, where(abs(x) < math.inf, value, abs(x)))


LGAMMA = large_double("lgamma", lgamma, domain=(-9.0, 9.0))._replace(slow_compile=True)
