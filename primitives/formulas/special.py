"""Formulas for special functions where XLA's own lose digits: in tails, near zeros and near poles.

Tables are polynomials in powers, from Chebyshev expansions computed with mpmath to 60 digits. Those for single
precision stop where the rest is below its rounding.
"""

from __future__ import annotations

import math

from functorch_like import dtypes
from functorch_like.primitives.formulas.real import upper
from functorch_like.primitives.formulas.term import Term, choose, estrin, polynomial, quotient, where

#: (1 + 2x) exp(x**2) erfc(x), x >= 0, in u = (x - K) / (x + K), as in Shepherd and Laframboise, Math. Comp. 36, 1981.
ERFC_MIDDLE = 3.75
ERFC = (
    1.2375126308378275,
    -0.14024059858554697,
    0.0035854154854644293,
    0.0822767384901452,
    -0.10880393014174886,
    0.09230432116037748,
    -0.05869339858963677,
    0.028362277418956406,
    -0.009746579558029276,
    0.0017556258528952954,
    0.0002937136655913448,
    -0.0002901540805408417,
    5.164909889268241e-05,
    2.238423915508223e-05,
    -1.1444146237700524e-05,
    -9.73559896736775e-07,
    1.751637648849062e-06,
    -5.7218230603224086e-08,
    -2.5866850716155884e-07,
    2.3263508708859124e-08,
    3.8675334242222354e-08,
    -3.744210080962018e-09,
    -5.1739902140113095e-09,
    3.1114333809799254e-10,
    4.2514714447963895e-10,
)
_ERFC_SINGLE = (
    1.2375126300326993,
    -0.14024059953590887,
    0.00358549531406309,
    0.08227677399009918,
    -0.10880522754949953,
    0.09230393753827405,
    -0.05868544049363111,
    0.028364105117372054,
    -0.009770087183368234,
    0.0017511576292398034,
    0.00033016745627228067,
    -0.00028431307575109806,
    2.2046718905694024e-05,
    1.8521947386750102e-05,
)
#: digamma(r + t) / t for |t| <= 3/8 at its positive zero r. The zero is a number of the dtype plus the rest.
_DIGAMMA = (
    0.9676722454476212,
    -0.4427631689835921,
    0.25849976095565375,
    -0.1639427054424139,
    0.10782405069061864,
    -0.07219956125532813,
    0.04880428822242535,
    -0.03316112655375716,
    0.02259764555664407,
    -0.015424762871555264,
    0.010538862006069284,
    -0.007204604317317727,
    0.0049256580917861744,
    -0.003368794930576786,
    0.002316151903284607,
    -0.001586028757711834,
    0.0010142389291467383,
    -0.0006883769015072231,
    0.0007079022240581091,
    -0.0004925619506889504,
)
_DIGAMMA_SINGLE = (
    0.967672246810607,
    -0.442763174180098,
    0.2584992798922521,
    -0.16394197219602716,
    0.10785111857122191,
    -0.07222841837968288,
    0.04827508690509492,
    -0.032701179774933795,
    0.026744296193425658,
    -0.018569854223490938,
)
_ROOT = {
    "float64": (1.4616321449683622, 9.549995429965697e-17, _DIGAMMA),
    "float32": (1.4616321325302124, 1.2438149938918909e-08, _DIGAMMA_SINGLE),
}
#: erf_inv(x) / x in w - 5/2 below w = 5, and in sqrt(w) - 3.168 above; w = -log((1 - x)(1 + x)), after Giles (2010).
_NEAR = (
    1.5014093517282388,
    0.24664028938940982,
    -0.004177324921932883,
    -0.0012527484164558688,
    0.00021826392314411755,
    -4.959743495185408e-06,
    -3.426175951749159e-06,
    4.6542873048510424e-07,
    1.6487176840838708e-08,
    -8.739830973051999e-09,
    4.3511473069028143e-10,
)
_FAR = (
    3.001526809444553,
    1.0042969794286134,
    0.0064038980091655736,
    -0.004692007605867983,
    0.00328406079728268,
    -0.002210503818134833,
    0.0011688584094661197,
    -0.0003453526150720298,
    -6.584684910976983e-05,
    0.00011027166788610025,
    -3.248795354410839e-05,
)
_MIDDLE = 3.1680339887498947
#: exp(x), by Taylor's series: for |x| <= 3e-5, and for |x| <= 0.09 in single precision.
_EXP, _EXP_SINGLE = ([1 / math.factorial(k) for k in range(count)] for count in (4, 6))


def erfc(x: Term) -> Term:
    """erfc in single and double precision: its tail keeps its digits, since exp(-x**2) gets the rounding of x**2."""
    double = x.aval.dtype == dtypes.float64
    size = abs(x).apply("stablehlo.minimum", 28.0 if double else 11.0)  # there it has long been zero
    u, (first, second, *others) = quotient(size - ERFC_MIDDLE, size + ERFC_MIDDLE), ERFC if double else _ERFC_SINGLE
    series = (first + u * (second + u * estrin(u, others))) / (2 * size + 1)
    head = upper(size)
    rest = estrin((head - size) * (head + size), _EXP if double else _EXP_SINGLE)
    tail = series * (-(head * head)).exp() * rest
    return where(x < 0, 2 - tail, tail)


def erf_inv_single(x: Term) -> Term:
    """erf_inv in single precision. (1 - x)(1 + x) keeps the digits that 1 - x**2 loses near 1."""
    w = -((1 - x) * (1 + x)).log()
    low = polynomial(w - 2.5, _NEAR)
    high = polynomial(w.sqrt() - _MIDDLE, _FAR)
    return where(abs(x).equals(1), x * math.inf, where(w < 5, low, high) * x)


def erf_inv_refined(x: Term) -> Term:
    """Refine XLA's 12 digits in double precision by a step of Halley's method on erf or erfc."""
    start = x.apply("chlo.erf_inv")
    inside = abs(x) < 1
    size = abs(where(inside, start, 0))
    below = size.apply("chlo.erf") - abs(x)
    error = where(abs(x) < 0.5, below, (1 - abs(x)) - erfc(size))
    slope = (-size * size).exp() * (2 / math.sqrt(math.pi))
    better = size - error / (slope + size * error)
    return choose(start, (inside & (abs(x) > 0), where(x < 0, -better, better)))


def digamma(x: Term) -> Term:
    """Digamma, exact near its positive zero; at 0 it is the infinity of the side that 0 is reached from."""
    root, rest, coefficients = _ROOT[x.aval.dtype.name]
    off = x - root
    near = abs(off) <= 0.375
    # XLA would add the two parts of the zero, so the rest is multiplied by the slope there.
    series = off * polynomial(where(near, off, 0), coefficients) - rest * coefficients[0]
    return choose(x.apply("chlo.digamma"), (near, series), (x.equals(0), -1 / x))
