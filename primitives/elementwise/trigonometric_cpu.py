"""Trigonometric functions and their inverses in single precision, as forms that CPUs run on vectors.

All take and give terms in double precision.
"""

from __future__ import annotations

import math

from functorch_like.primitives.elementwise.vectorized_cpu import always
from functorch_like.primitives.formulas.real import copysign, infinite, nan, negative
from functorch_like.primitives.formulas.term import Term, choose, polynomial, quotient, where

# ------------------------------------------------------------------------------------------------------- trigonometric
_SIN = (-0.16666666663855825, 0.00833333187464824, -0.00019840086614277843, 2.724990252595841e-06)
_COS = (0.04166666666432132, -0.001388888767186812, 2.4800600234177177e-05, -2.7300935248418956e-07)
#: Half of pi in two parts: a number of 33 bits, whose product with one of 20 is exact, and the rest (Cody and Waite).
_QUARTER, _REST = 1.5707963267341256, 6.077100506506192e-11
_FARTHEST = 2.0**20


def moderate(x: Term) -> Term:
    """Return True where the reduction of an angle is exact."""
    return abs(x) <= _FARTHEST


def _turn(x: Term) -> tuple[Term, Term, Term, Term]:
    """sin and cos of the remainder of an angle after k quarter turns, and whether k and floor(k / 2) are odd."""
    k = (x * (2 / math.pi)).apply("stablehlo.round_nearest_even")
    r = (x - k * _QUARTER) - k * _REST
    square = r * r
    sin = r + r * square * polynomial(square, _SIN)
    cos = (1 - 0.5 * square) + square * square * polynomial(square, _COS)
    half = (k * 0.5).floor()
    return sin, cos, (k * 0.5).differs(half), (half * 0.5).differs((half * 0.5).floor())


def sin(x: Term) -> Term:
    """Sine."""
    s, c, odd, back = _turn(x)
    value = where(odd, c, s)
    return where(x.equals(0), x, where(back, -value, value))


def cos(x: Term) -> Term:
    """Cosine."""
    s, c, odd, back = _turn(x)
    value = where(odd, -s, c)
    return where(back, -value, value)


def tan(x: Term) -> Term:
    """Tangent."""
    s, c, odd, _ = _turn(x)
    return where(x.equals(0), x, where(odd, -c, s) / where(odd, s, c))


# ------------------------------------------------------------------------------------------------------------ inverses
_ASIN = (
    0.16666666665413768, 0.07500000631433115, 0.044642337220427694, 0.03039815288215791, 0.022126428482471126,
    0.019342015733500275, 0.005337908382026606, 0.029426915423583423,
)  # fmt: skip
_ATAN = (
    -0.3333333333149365, 0.19999998938359861, -0.14285613873344877, 0.11107527338996592, -0.09029327466871641,
    0.0713701637002059, -0.04046337832060579,
)  # fmt: skip


def _asin_parts(x: Term) -> tuple[Term, Term]:
    """Return |x| > 1/2 and asin of |x|, or there of sqrt((1 - |x|)/2): asin(x) = pi/2 - 2 asin(sqrt((1 - x)/2))."""
    size = abs(x)
    far = size > 0.5
    square = where(far, (1 - size) * 0.5, x * x)
    s = where(far, square.sqrt(), size)
    return far, s + s * square * polynomial(square, _ASIN)


def asin(x: Term) -> Term:
    """Inverse sine."""
    far, part = _asin_parts(x)
    return copysign(where(far, math.pi / 2 - 2 * part, part), x)


def acos(x: Term) -> Term:
    """Inverse cosine."""
    far, part = _asin_parts(x)
    below = x < 0
    near = math.pi / 2 - where(below, -part, part)
    return where(far, where(below, math.pi - 2 * part, 2 * part), near)


def _atan_of(up: Term, down: Term) -> Term:
    """atan(up / down) for 0 <= up, 0 <= down: as pi/4 + atan((t - 1) / (t + 1)) or pi/2 - atan(1/t)."""
    low, high = up <= down * (math.sqrt(2) - 1), up > down * (math.sqrt(2) + 1)
    t = quotient(choose(up - down, (low, up), (high, -down)), choose(up + down, (low, down), (high, up)))
    square = t * t
    return (t + t * square * polynomial(square, _ATAN)) + choose(
        t.like(math.pi / 4), (low, t.like(0)), (high, t.like(math.pi / 2))
    )


def atan(x: Term) -> Term:
    """Inverse tangent."""
    size = abs(x)
    value = _atan_of(where(infinite(x), 1, size), where(infinite(x), 0, x.like(1)))
    return copysign(value, x)


def atan2(y: Term, x: Term) -> Term:
    """Angle of the point (x, y)."""
    both = infinite(x) & infinite(y)
    up = where(both, 1, where(infinite(x), 0, abs(y)))
    down = where(both, 1, where(infinite(y), 0, abs(x)))
    up, down = where(infinite(y) & ~both, 1, up), where(infinite(x) & ~both, 1, down)
    none = up.equals(0) & down.equals(0)
    angle = _atan_of(up, where(none, 1, down))
    return where(nan(x) | nan(y), math.nan, copysign(where(negative(x), math.pi - angle, angle), y))


ASIN = always("asin", asin, domain=(-1.0, 1.0))
ACOS = always("acos", acos, domain=(-1.0, 1.0))
ATAN = always("atan", atan, domain=(-9.0, 9.0))._replace(slow_compile=True)
ATAN2 = always("atan2", atan2, count=2)._replace(slow_compile=True)
