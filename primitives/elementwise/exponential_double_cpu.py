"""Exponentials, logarithms, remainders and the inverse of erf in double precision, as forms that CPUs run on vectors.

XLA:CPU calls scalar functions, or computes several functions of full precision where parts of them will do. Polynomials
are interpolated in Chebyshev nodes by mpmath.
"""

from __future__ import annotations

import math

from functorch_like.primitives.elementwise.vectorized_cpu import large_double
from functorch_like.primitives.formulas.logarithm import LAST_BITS, LOG2, LOG2_REST, log, log1p, log_of_normal
from functorch_like.primitives.formulas.real import bits, copysign, of_bits, upper, with_rest
from functorch_like.primitives.formulas.term import Term, choose, estrin, quotient, where

# -------------------------------------------------------------------------------------------------------- exponentials
#: (exp(x) - 1 - x) / x**2 for |x| <= log(2)/2.
_EXP = (
    0.5, 0.16666666666666666, 0.04166666666666668, 0.008333333333333333, 0.0013888888888879004,
    0.00019841269841263252, 2.480158733663095e-05, 2.7557319247344507e-06, 2.755726307730941e-07,
    2.5052070959803662e-08, 2.091821231913398e-09, 1.6086677666787362e-10,
)  # fmt: skip


def _reduced(x: Term) -> tuple[Term, Term]:
    """Return r and whole n with x = r + n log(2), |r| <= log(2)/2."""
    n = (x * (1 / math.log(2))).apply("stablehlo.round_nearest_even")
    return (x - n * LOG2) - n * LOG2_REST, n


def _scaled_exp(r: Term, n: Term) -> Term:
    """exp(r) * 2**n for |r| <= log(2)/2 and whole n, where the result is a normal number."""
    power, whole = bits(1 + (r + r * r * estrin(r, _EXP)))
    raw, _ = bits(n + LAST_BITS)
    shifted = r.e.op("stablehlo.shift_left", [raw, r.e.full(52, whole)], [whole])
    return of_bits(r.e.op("stablehlo.add", [power, shifted], [whole]), r)


def exp(x: Term) -> Term:
    """e to a power. Subnormal results are 0."""
    value = _scaled_exp(*_reduced(x))
    # Just below the limit the value of the exponent's bits may be that of infinity, and never more.
    return where(x <= 709.782712893384, where(x < -708.3964185322641, 0, value), x + math.inf)  # NaN stays


def exp2(x: Term) -> Term:
    """2 to a power. Subnormal results are 0."""
    n = x.apply("stablehlo.round_nearest_even")
    value = _scaled_exp((x - n) * math.log(2), n)
    return where(x < 1024, where(x < -1022, 0, value), x + math.inf)  # NaN stays


def _half_expm1(x: Term) -> Term:
    """(exp(x) - 1)/2 for -50 <= x <= 709.78: h (exp(r) - 1) + (h - 1/2) with h = 2**(n - 1)."""
    r, n = _reduced(x)
    raw, whole = bits(n + (LAST_BITS + 1022))
    h = of_bits(r.e.op("stablehlo.shift_left", [raw, r.e.full(52, whole)], [whole]), r)
    return h * (r + r * r * estrin(r, _EXP)) + (h - 0.5)


def expm1(x: Term) -> Term:
    """exp(x) - 1."""
    value = 2 * _half_expm1(x.apply("stablehlo.maximum", -50))
    return where(x.equals(0), x, where(x <= 709.782712893384, value, x + math.inf))


def tanh(x: Term) -> Term:
    """Hyperbolic tangent: m / (m + 2) with m = exp(2|x|) - 1."""
    half = _half_expm1(2 * abs(x).apply("stablehlo.minimum", 20))  # there it has long been 1
    return copysign(half / (half + 1), x)


# ------------------------------------------------------------------------------------------------- inverse hyperbolics
def atanh(x: Term) -> Term:
    """Inverse hyperbolic tangent: log1p(2x / (1 - x)) / 2 for x >= 0 (DLMF 4.37.24)."""
    size = abs(x)
    return copysign(0.5 * log1p(quotient(2 * size, 1 - size)), x)


def _log_of_twice(x: Term, more: Term) -> Term:
    """log(1 + more) for 0 <= x <= 1e9, else log(2x): 1 + more is 2x there."""
    large = x > 1e9
    y, lack = with_rest(where(large, 0, more), x.like(1))
    value = log_of_normal(where(large, x, y), lack) + where(large, math.log(2), x.like(0))
    return where(x < math.inf, value, x)  # NaN stays


def asinh(x: Term) -> Term:
    """Inverse hyperbolic sine: log1p(x + x**2 / (1 + sqrt(1 + x**2))) for x >= 0."""
    size = abs(x)
    square = size * size
    return copysign(_log_of_twice(size, size + square / (1 + (1 + square).sqrt())), x)


def acosh(x: Term) -> Term:
    """Inverse hyperbolic cosine: log1p(t + sqrt(t (t + 2))) with t = x - 1."""
    t = x - 1
    return where(x < 1, math.nan, _log_of_twice(x, t + (t * (x + 1)).sqrt()))


# ---------------------------------------------------------------------------------------------------------- remainders
def few(x: Term, y: Term) -> Term:
    """Return True where a quotient has at most 26 bits, and no product leaves the range."""
    size = abs(y)
    return (abs(x) <= 2.0**25 * size) & (size >= 2.0**-900) & (size <= 2.0**900)


def rem(x: Term, y: Term) -> Term:
    """x - y trunc(x / y), exactly: y has two parts of 26 and 27 bits. The quotient may be rounded up to a whole one."""
    ratio = quotient(x, y)
    q = where(ratio < 0, -((-ratio).floor()), ratio.floor())
    head = upper(y)
    r = (x - q * head) - q * (y - head)
    beyond = ((r < 0) & (x > 0)) | ((r > 0) & (x < 0))
    return copysign(where(beyond, abs(y) - abs(r), r), x)


# ------------------------------------------------------------------------------------------------------------- erf_inv
#: inverse_erf(x) / x with w = -log((1 - x)(1 + x)): in w - 3.125 for w <= 6.25, in sqrt(w) - 4.254 above (Giles, 2010).
_NEAR = (
    1.6536545626831027, 0.24015818242558834, -0.006033670871426851, -0.0007407025341546431, 0.00018673420801981186,
    -1.3882523393957483e-05, -1.3654691758785656e-06, 4.23478816822246e-07, -2.907039127564132e-08,
    -4.1126604371632185e-09, 1.051223377050429e-09, -5.414303283919504e-11, -1.2978805369932565e-11,
    2.6305268312595183e-12, -8.07192593899004e-14, -4.0020031087558496e-14, 6.521333511502239e-15,
    -3.94018812230432e-17, -1.2215637192404172e-16, 1.5510787009902526e-17, 6.075050702072414e-19,
    -3.4734793888538036e-19, 1.999259988861535e-20, 3.194015548136271e-21, -3.5932028927020693e-22,
)  # fmt: skip
_FAR = (
    4.096263348141923, 1.0099839500363585, 0.0007054755721485934, -0.0006045094791757582, 0.00021089357077243003,
    -6.389563326952124e-05, 2.1697177952986672e-05, -1.0013671262892094e-05, 5.692735225442609e-06,
    -3.151970726421555e-06, 1.4676027809417942e-06, -5.107571705663651e-07, 9.457807795691159e-08,
    2.3954480380888212e-08, -2.934066617304224e-08, 1.3233947343393289e-08, -3.0800271747037764e-09,
    -1.5278978953805038e-10, 4.4911830224934973e-10, -1.856120299767627e-10, 3.383913942185279e-11,
    2.4657005026653595e-12, -3.862941454067471e-12, 1.5959146557806124e-12, -3.2911227147077505e-13,
    -3.686435956882359e-14, 3.451597969231008e-14, -5.089822024504215e-15,
)  # fmt: skip


def series(x: Term, coefficients: tuple[float, ...]) -> Term:
    """A polynomial whose first terms are added last, one by one."""
    first, second, *others = coefficients
    return first + x * (second + x * estrin(x, others))


def inverse_erf(x: Term) -> Term:
    """The inverse of erf."""
    left = (1 - x) * (1 + x)
    w = -log_of_normal(where(left > 0, left, 1))
    high = series(w.sqrt() - 4.254, _FAR)
    value = x * where(w < 6.25, series(w - 3.125, _NEAR), high)
    return choose(value, (abs(x).equals(1), x * math.inf), (abs(x) > 1, math.nan))


ACOSH = large_double("acosh", acosh, domain=(1.1, 9.0))._replace(optimised_only=True)
ASINH = large_double("asinh", asinh, domain=(-9.0, 9.0))._replace(optimised_only=True)
ATANH = large_double("atanh", atanh, domain=(-0.9, 0.9))._replace(optimised_only=True)
EXP = large_double("exp", exp, domain=(-3.0, 3.0))._replace(optimised_only=True)
EXPM1 = large_double("expm1", expm1, domain=(-3.0, 3.0))
EXP2 = large_double("exp2", exp2, domain=(-9.0, 9.0))
TANH = large_double("tanh", tanh, domain=(-3.0, 3.0))
LOG = large_double("log", log, domain=(0.1, 9.0))._replace(optimised_only=True)
LOG1P = large_double("log1p", log1p, domain=(-0.9, 9.0))._replace(optimised_only=True)
