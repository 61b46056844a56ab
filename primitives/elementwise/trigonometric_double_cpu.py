"""Trigonometric functions and their inverses in double precision, as forms that CPUs run on vectors.

XLA:CPU calls a scalar function for each element. Polynomials are interpolated in Chebyshev nodes by mpmath; roundings
of reduced arguments are carried along. Results are within 0.8 ulp, of asin and acos within 1.
"""

from __future__ import annotations

import math

from functorch_like import dtypes
from functorch_like.primitives.elementwise.vectorized_cpu import large_double
from functorch_like.primitives.formulas.logarithm import LAST_BITS
from functorch_like.primitives.formulas.real import bits, copysign, infinite, negative, of_bits, upper, with_rest
from functorch_like.primitives.formulas.term import Term, choose, estrin, quotient, where

# ------------------------------------------------------------------------------------------------------- trigonometric
#: In powers of x**2, for |x| <= pi/4: (sin(x)/x - 1) / x**2, and (cos(x) - 1 + x**2/2) / x**4.
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


def _turn_in_parts(x: Term) -> tuple[Term, Term, Term, Term, Term]:
    """sin and cos of the remainder of an angle after k quarter turns, each as a sum of two, and k + LAST_BITS."""
    first, second, third = _QUARTER
    k = (x * (2 / math.pi)).apply("stablehlo.round_nearest_even")
    most, rest = with_rest(x - k * first, -(k * second))
    less = rest - k * third
    r = most + less
    low = (most - r) + less
    square = r * r
    half = 0.5 * square
    head = 1 - half
    sine_rest = r * square * estrin(square, _SIN) + low * head
    cosine_rest = ((1 - head) - half) + (square * square * estrin(square, _COS) - r * low)
    return r, sine_rest, head, cosine_rest, k + LAST_BITS


def _turn(x: Term) -> tuple[Term, Term, Term]:
    """sin and cos of the remainder of an angle after k quarter turns, and k + LAST_BITS."""
    sine, sine_rest, cosine, cosine_rest, number = _turn_in_parts(x)
    return sine + sine_rest, cosine + cosine_rest, number


def _is_odd(number: Term) -> Term:
    """Return True where a whole number is odd, of which LAST_BITS was added."""
    raw, whole = bits(number)
    e, flags = number.e, number.aval.update(dtype=dtypes.bool_, weak_type=False)
    last = e.op("stablehlo.and", [raw, e.full(1, whole)], [whole])
    return Term(e, e.compare("NE", last, e.full(0, whole), flags, "SIGNED"), flags)


def _of_quarter(number: Term, even: Term, odd: Term) -> Term:
    """`even` or `odd`, by the last bit of a whole number, with the sign that its last bit but one says."""
    e, aval = number.e, number.aval
    raw, whole = bits(number)
    op = lambda name, a, b: e.op(f"stablehlo.{name}", [a, e.full(b, whole)], [whole])
    flags = aval.update(dtype=dtypes.bool_, weak_type=False)
    turned = Term(e, e.compare("EQ", op("and", raw, 1), e.full(0, whole), flags, "SIGNED"), flags)
    picked, _ = bits(where(turned, even, odd))
    signed = e.op("stablehlo.xor", [picked, op("shift_left", op("and", raw, 2), 62)], [whole])
    return of_bits(signed, number)


def sine(x: Term) -> Term:
    """Sine."""
    s, c, number = _turn(x)
    return where(x.equals(0), x, _of_quarter(number, s, c))


def cosine(x: Term) -> Term:
    """Cosine: the sine a quarter turn ahead."""
    s, c, number = _turn(x)
    return _of_quarter(number + 1, s, c)


def tangent(x: Term) -> Term:
    """Tangent: a quotient of sums, -cos / sin after an odd number of quarter turns. What it lacks is added."""
    sine, sine_rest, cosine, cosine_rest, number = _turn_in_parts(x)
    odd = _is_odd(number)
    up, up_rest = where(odd, -cosine, sine), where(odd, -cosine_rest, sine_rest)
    down, down_rest = where(odd, sine, cosine), where(odd, sine_rest, cosine_rest)
    top, bottom = up + up_rest, down + down_rest
    lost = ((up - top) + up_rest, (down - bottom) + down_rest)
    t = quotient(top, bottom)
    return where(x.equals(0), x, t + (_quotient_rest(top, bottom, t) + (lost[0] - t * lost[1])) / bottom)


# ------------------------------------------------------------------------------------------------------------ inverses
#: In powers of x**2: (asin(x)/x - 1) / x**2 for |x| <= 1/2, and (atan(x)/x - 1) / x**2 for |x| <= tan(pi/8).
_ASIN = (
    0.16666666666666666, 0.07500000000000118, 0.044642857142551895, 0.03038194447553234, 0.02237215744350722,
    0.017352816540325496, 0.01396378001220357, 0.011566459612121669, 0.009621842970100282, 0.009319560794767446,
    0.0030448799094556773, 0.019554513336123378, -0.01924167174674304, 0.02961201126495512,
)  # fmt: skip
_ATAN = (
    -0.3333333333333333, 0.1999999999999548, -0.14285714284657894, 0.11111111014561013, -0.09090904549884611,
    0.07692182535116648, -0.06664502215671447, 0.058580687568615106, -0.05085030492810941, 0.03921955253255129,
    -0.019162068915902573,
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


def _quotient_rest(x: Term, y: Term, quotient: Term) -> Term:
    """x - y * quotient, exactly: the factors have two parts each (Dekker)."""
    (a, b), (c, d) = ((head, v - head) for v in (y, quotient) for head in (upper(v),))
    return (((x - a * c) - a * d) - b * c) - b * d


def _angle(up: Term, down: Term, left: Term | None = None) -> Term:
    """atan(up / down) for 0 <= up, 0 <= down: pi/4 + atan((t - 1) / (t + 1)) or pi/2 - atan(1/t); or pi minus that."""
    low, high = up <= down * (math.sqrt(2) - 1), up > down * (math.sqrt(2) + 1)
    (less, less_rest), (more, more_rest) = with_rest(up, -down), with_rest(up, down)
    x, y = choose(less, (low, up), (high, -down)), choose(more, (low, down), (high, up))
    t = quotient(x, y)
    lack = (_quotient_rest(x, y, t) + where(low | high, 0, less_rest - t * more_rest)) / y
    exact = (abs(t) > 2.0**-100) & (y > 2.0**-800) & (y < 2.0**800)  # no part is subnormal, none overflows
    square = t * t
    rest = t * square * estrin(square, _ATAN) + where(exact, lack, 0)
    base = choose(t.like(math.pi / 4), (low, t.like(0)), (high, t.like(math.pi / 2)))
    if left is not None:
        other = choose(t.like(0.75 * math.pi), (low, t.like(math.pi)), (high, t.like(math.pi / 2)))
        base, t, rest = where(left, other, base), where(left, -t, t), where(left, -rest, rest)
    total = base + t
    return total + (((base - total) + t) + (rest + base * (_PI_REST / math.pi)))


def atan(x: Term) -> Term:
    """Inverse tangent."""
    return copysign(_angle(abs(x), x.like(1)), x)


def atan2(y: Term, x: Term) -> Term:
    """Angle of the point (x, y)."""
    both = infinite(x) & infinite(y)
    up, down = where(both, 1, abs(y)), where(both, 1, abs(x))
    most = up.apply("stablehlo.maximum", down)
    scale = choose(up.like(1), (most > 2.0**790, up.like(2.0**-300)), (most < 2.0**-600, up.like(2.0**400)))
    up, down = up * scale, down * scale
    none = up.equals(0) & down.equals(0)
    return copysign(_angle(up, where(none, 1, down), negative(x)), y)


ASIN = large_double("asin", asin, domain=(-1.0, 1.0))
ACOS = large_double("acos", acos, domain=(-1.0, 1.0))
ATAN = large_double("atan", atan, domain=(-9.0, 9.0))._replace(slow_compile=True, optimised_only=True)
ATAN2 = large_double("atan2", atan2, count=2)._replace(slow_compile=True, optimised_only=True)
