"""Trigonometric functions and their inverses in double precision, as forms that CPUs run on vectors.

XLA:CPU calls a scalar function for each element. Polynomials are interpolated in Chebyshev nodes by mpmath; roundings
of reduced arguments are carried along. Results are within 0.8 ulp, of asin and acos 1, of atan and atan2 1.3.
"""

from __future__ import annotations

import math

from functorch_like.primitives.elementwise.vectorized_cpu import large_double
from functorch_like.primitives.formulas.real import bits, copysign, infinite, negative, upper
from functorch_like.primitives.formulas.term import Term, estrin, where

# ------------------------------------------------------------------------------------------------------- trigonometric
#: sin(x) / x - 1 over x**2, and (cos(x) - 1) / x**2 + 1/2 over x**2, for |x| <= pi/4.
_SIN = (
    -0.16666666666666666, 0.008333333333333331, -0.0001984126984126504, 2.755731921932058e-06, -2.50521062259944e-08,
    1.6058530596645953e-10, -7.586636882825159e-13,
)  # fmt: skip
_COS = (
    0.041666666666666664, -0.0013888888888888887, 2.4801587301584632e-05, -2.755731922139249e-07,
    2.0876755787492604e-09, -1.1470460319209511e-11, 4.745838412531023e-14,
)  # fmt: skip
#: Half of pi in three parts: two of 33 bits, whose products with numbers of 20 bits are exact (Cody and Waite).
_QUARTER = 1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21
#: In a number plus this one the whole part is in the last bits.
_LAST_BITS = 1.5 * 2**52


def _turn(x: Term) -> tuple[Term, Term, Term]:
    """sin and cos of the remainder of an angle after k quarter turns, and k + _LAST_BITS."""
    first, second, third = _QUARTER
    k = (x * (2 / math.pi)).apply("stablehlo.round_nearest_even")
    near, rest = x - k * first, k * second
    most = near - rest
    back = most - near
    less = ((near - (most - back)) - (rest + back)) - k * third  # what it lacks
    r = most + less
    low = (most - r) + less
    square = r * r
    sin = r + (r * square * estrin(square, _SIN) + low * (1 - 0.5 * square))
    half = 0.5 * square
    head = 1 - half
    cos = head + (((1 - head) - half) + (square * square * estrin(square, _COS) - r * low))
    return sin, cos, k + _LAST_BITS


def _of_quarter(number: Term, even: Term, odd: Term) -> Term:
    """`even` or `odd`, by the last bit of a whole number, with the sign that its last bit but one says."""
    e, aval = number.e, number.aval
    raw, whole = bits(number)
    op = lambda name, a, b: e.op(f"stablehlo.{name}", [a, e.full(b, whole)], [whole])
    turned = Term(
        e, e.compare("EQ", op("and", raw, 1), e.full(0, whole), (number < 0).aval, "SIGNED"), (number < 0).aval
    )
    picked, _ = bits(where(turned, even, odd))
    signed = e.op("stablehlo.xor", [picked, op("shift_left", op("and", raw, 2), 62)], [whole])
    return Term(e, e.op("stablehlo.bitcast_convert", [signed], [aval]), aval)


def sin(x: Term) -> Term:
    """Sine."""
    s, c, number = _turn(x)
    return where(x.equals(0), x, _of_quarter(number, s, c))


def cos(x: Term) -> Term:
    """Cosine: the sine a quarter turn ahead."""
    s, c, number = _turn(x)
    return _of_quarter(number + 1, s, c)


# ------------------------------------------------------------------------------------------------------------ inverses
#: asin(x) / x - 1 over x**2, for |x| <= 1/2; atan(x) / x - 1 over x**2, for |x| <= 1.
_ASIN = (
    0.16666666666666666, 0.07500000000000118, 0.044642857142551895, 0.03038194447553234, 0.02237215744350722,
    0.017352816540325496, 0.01396378001220357, 0.011566459612121669, 0.009621842970100282, 0.009319560794767446,
    0.0030448799094556773, 0.019554513336123378, -0.01924167174674304, 0.02961201126495512,
)  # fmt: skip
_ATAN = (
    -0.3333333333333333, 0.1999999999999992, -0.14285714285701234, 0.11111111110268297, -0.0909090906193528,
    0.07692307078827029, -0.06666657934573768, 0.05882264416776449, -0.052624922290256754, 0.04758080083637821,
    -0.043306538430670664, 0.03938687540798632, -0.035271331066871296, 0.030330719265790507, -0.024191345810140718,
    0.01718398172211335, -0.010412153260359241, 0.005140912856746939, -0.0019612554271685326, 0.0005376839297396244,
    -9.371186345052626e-05, 7.767624330289919e-06,
)  # fmt: skip
#: pi is math.pi plus this.
_PI_REST = 1.2246467991473532e-16


def _asin_parts(x: Term) -> tuple[Term, Term, Term, Term]:
    """Return |x| > 1/2; t: |x|, or there sqrt((1 - |x|)/2); asin(t) - t; and what t lacks, where |x| > 1/2.

    asin(x) is pi/2 - 2 asin(sqrt((1 - x)/2)).
    """
    size = abs(x)
    far = size > 0.5
    square = where(far, (1 - size) * 0.5, x * x)
    t = where(far, square.sqrt(), size)
    head = upper(t)
    lack = (square - head * head) / (t + head).apply("stablehlo.maximum", 1e-300) - (t - head)
    return far, t, t * square * estrin(square, _ASIN), lack


def asin(x: Term) -> Term:
    """Inverse sine."""
    far, t, more, lack = _asin_parts(x)
    # pi/4 twice: the first difference is smaller than the result, and so is its rounding.
    beyond = math.pi / 4 + ((math.pi / 4 - 2 * t) - (2 * (more + lack) - 0.5 * _PI_REST))
    return copysign(where(far, beyond, t + more), x)


def acos(x: Term) -> Term:
    """Inverse cosine."""
    far, t, more, lack = _asin_parts(x)
    below = x < 0
    twice = 2 * (t + (more + lack))
    outside = where(below, math.pi - (twice - _PI_REST), twice)
    rest = 0.5 * _PI_REST - where(below, -more, more)
    return where(far, outside, math.pi / 2 - (where(below, -t, t) - rest))


def _atan_of(up: Term, down: Term) -> Term:
    """atan(up / down) for 0 <= up, 0 <= down: as pi/2 - atan(down / up) where this is the smaller quotient."""
    steep = up > down
    t = where(steep, down, up) / where(steep, up, down)
    square = t * t
    value = t + t * square * estrin(square, _ATAN)
    return where(steep, math.pi / 2 - (value - 0.5 * _PI_REST), value)


def atan(x: Term) -> Term:
    """Inverse tangent."""
    return copysign(_atan_of(abs(x), x.like(1)), x)


def atan2(y: Term, x: Term) -> Term:
    """Angle of the point (x, y)."""
    both = infinite(x) & infinite(y)
    up, down = where(both, 1, abs(y)), where(both, 1, abs(x))
    none = up.equals(0) & down.equals(0)
    angle = _atan_of(up, where(none, 1, down))
    return copysign(where(negative(x), math.pi - (angle - _PI_REST), angle), y)


ASIN = large_double("asin", asin, domain=(-1.0, 1.0))
ACOS = large_double("acos", acos, domain=(-1.0, 1.0))
ATAN = large_double("atan", atan, domain=(-9.0, 9.0))
ATAN2 = large_double("atan2", atan2, count=2)
