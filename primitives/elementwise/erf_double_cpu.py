"""The error function in double precision, as a form that CPUs run on vectors, where XLA:CPU calls a scalar function.

Polynomials are interpolated in Chebyshev nodes by mpmath. Results are within 0.85 ulp.
"""

from __future__ import annotations

from functorch_like.primitives.elementwise.exponential_double_cpu import exp, series
from functorch_like.primitives.elementwise.vectorized_cpu import large_double
from functorch_like.primitives.formulas.real import copysign
from functorch_like.primitives.formulas.term import Term, choose, estrin

#: In powers of x**2, for |x| <= 3/4: erf(x)/x - 1.
_NEAR = (
    0.1283791670955126, -0.37612638903183715, 0.11283791670952596, -0.026866170644428485, 0.005223977615420539,
    -0.0008548326188759752, 0.00012055289567541706, -1.4924196305569617e-05, 1.643068417974155e-06,
    -1.5940066854661717e-07, 1.1472499701094691e-08,
)  # fmt: skip
#: In powers of d = x - 11/8, for 3/4 <= x <= 2: (erf(x) - erf(11/8)) / d; and erf(11/8) in two parts.
_MIDDLE = (
    0.1703597736875156, -0.23424468882033395, 0.15793770685613395, -0.030500610523481044, -0.030605976268900683,
    0.022161235262857678, -0.0014190623614847512, -0.004261033441444315, 0.0015779112464733905, 0.00032359147001694027,
    -0.00033910165495471017, 2.8681728796426053e-05, 4.175548817444391e-05, -1.1983872922017204e-05,
    -2.9753749902773813e-06, 1.9084838007166412e-06, 2.5288106300947182e-08, -2.0132197892216607e-07,
    1.959046924455139e-08, 1.393295496894946e-08,
)  # fmt: skip
_AT_MIDDLE, _AT_MIDDLE_REST = 0.9481700727820903, 1.071691533519912e-17
#: In powers of x - 3: log(erfc(x)) for 2 <= x <= 4. Up to 6 the error of 1 - erfc(x) stays below 1e-18.
_FAR = (
    -10.720363041981113, -6.303753689003234, -0.9573942188012455, -0.0074118917955658, 0.0013533104381338924,
    -0.00024569213382519864, 4.3081790261932936e-05, -7.115465172255726e-06, 1.0693924461286522e-06,
    -1.3617724616146135e-07, 1.1452646831596569e-08, 6.346477677357405e-10, -6.014073579396739e-10,
    1.880583743347194e-10, -4.9545379131479674e-11, 9.15323489583395e-12,
)  # fmt: skip


def erf(x: Term) -> Term:
    """The error function."""
    size = abs(x).apply("stablehlo.minimum", 6)  # there it has long been 1
    d = size - 1.375
    middle = _AT_MIDDLE + (d * series(d, _MIDDLE) + _AT_MIDDLE_REST)
    far = 1 - exp(estrin(size - 3, _FAR))
    near = size + size * series(size * size, _NEAR)
    return copysign(choose(far, (size < 0.75, near), (size < 2, middle)), x)


ERF = large_double("erf", erf, domain=(-3.0, 3.0))._replace(slow_compile=True, optimised_only=True)
