"""The error function of complex arguments and its relatives: wofz, erfcx, dawsn, fresnel.

wofz by the trapezoidal or midpoint rule on twelve nodes, or seven for results in single precision, with the residues of
the poles that the step misses (M. Al Azah, S. N. Chandler-Wilde, "Computation of the complex error function using
modified trapezoidal rules", SIAM J. Numer. Anal. 59, 2021); its error is below 3e-15 of the value. erfcx by the
polynomial of erfc, dawsn by one of its own, and Fresnel's integrals by expansions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.primitives import elementwise
from functorch_like.primitives.formulas.special import ERFC, ERFC_MIDDLE
from functorch_like.primitives.formulas.term import estrin
from functorch_like.scipy.angles import sin_cos
from functorch_like.scipy.slopes import with_slopes
from functorch_like.scipy.special import fresnel_expansions as expansions
from functorch_like.scipy.special.dawson import dawson
from functorch_like.scipy.special.makers import in_double, make, one
from functorch_like.transforms.jvp_vjp import jvp

_FAR = 1e8
_ENDLESS = 8e307


def _near_a_half(x: Any) -> Any:
    """Return True where x is nearer to a half than to a whole number."""
    part = x - fnp.floor(x)
    return (part >= 0.25) & (part <= 0.75)


class _Rule(NamedTuple):
    """The two rules on some number of nodes."""

    nodes: int

    def sums(self, x: Any, y: Any, trapezoidal: Any) -> tuple[Any, Any]:
        """Return real and imaginary part of 2 i h z / pi times the sum of exp(-t**2) / (z**2 - t**2) over the nodes t.

        The denominators |z**2 - t**2|**2 are (|z|**2 - t**2)**2 + (2 y t)**2, and no sum of the real part cancels.
        """
        step = math.sqrt(math.pi / self.nodes)
        length, height = x * x + y * y, 4 * y * y
        real = imag = zero = fnp.zeros_like(x)
        either = lambda whole, half: fnp.where(trapezoidal, whole + zero, half)
        for k in range(self.nodes):
            whole, half = (k * step) ** 2, ((k + 0.5) * step) ** 2
            weight, square = either(math.exp(-whole) / (1 if k else 2), math.exp(-half)), either(whole, half)
            gap = length - square
            part = weight / (gap * gap + height * square)
            real, imag = real + part * (length + square), imag + part * gap
        return 2 * step / math.pi * y * real, 2 * step / math.pi * x * imag

    def quadrant(self, x: Any, y: Any, below: Any) -> tuple[Any, Any, Any, Any]:
        """Return w(x + iy) and 2 exp(-(x + iy)**2) for x, y >= 0, which the part below the real axis needs."""
        step = math.sqrt(math.pi / self.nodes)
        endless = fnp.isinf(x) | fnp.isinf(y)
        far = ((x > _FAR) | (y > _FAR)) & ~endless
        a, b = fnp.where(far | endless, 1, x), fnp.where(far | endless, 1, y)
        close = b < math.pi / step  # farther from the real axis there are no residues
        trapezoidal = close & (b < a) & _near_a_half(a / step)
        real, imag = self.sums(a, b, trapezoidal)
        needed = (below | (close & ~far)) & ~endless
        c, d = fnp.where(needed, x, 1), fnp.where(needed, y, 0)
        gauss = _exp((d - c) * (d + c), -2 * c * d)
        # The residues: 2 exp(-z**2) / (1 +- exp(-2 pi i z / h)).
        turn = _exp(2 * math.pi / step * fnp.where(close, b, 0), -2 * math.pi / step * a)
        sign = fnp.where(trapezoidal, -1.0, 1.0)
        u, v = 1 + sign * turn[0], sign * turn[1]
        size = fnp.where(close, 2 / (u * u + v * v), 0)
        p, q = (fnp.where(close, part, 0) for part in gauss)
        real, imag = real + size * (p * u + q * v), imag + size * (q * u - p * v)
        # i / (sqrt(pi) z), with the square of |z| kept from overflowing.
        scale = fnp.maximum(fnp.where(far, x, 1), fnp.where(far, y, 1))
        u, v = fnp.where(far, x / scale, 1), fnp.where(far, y / scale, 1)
        less = scale * (u * u + v * v) * math.sqrt(math.pi)
        real, imag = fnp.where(far, v / less, real), fnp.where(far, u / less, imag)
        # w is 0 at infinity; exp(-z**2) is infinite on the imaginary axis, and counts as 0 elsewhere.
        grown = fnp.where(fnp.isinf(x), 0, math.inf)
        ends = lambda value, end: fnp.where(endless, end, value)
        return ends(real, 0), ends(imag, 0), ends(2 * gauss[0], grown), ends(2 * gauss[1], 0)

    def __call__(self, z: Any) -> Any:
        real = not dtypes.is_complex(aval_of(z).dtype)
        x, y = (z, fnp.zeros_like(z)) if real else (fnp.real(z), fnp.imag(z))
        below, left = y < 0, x < 0
        u, v, p, q = self.quadrant(_size(x), _size(y), below)
        # w(-conj(z)) = conj(w(z)), and w(conj(z)) = conj(2 exp(-z**2) - w(z)).
        u, v = fnp.where(below, p - u, u), fnp.where(below, v - q, v)
        return elementwise.complex(u, fnp.where(left, -v, v))


def _exp(size: Any, angle: Any) -> tuple[Any, Any]:
    """Return real and imaginary part of exp(size + i angle)."""
    length = fnp.exp(size)
    return length * fnp.cos(angle), length * fnp.sin(angle)


#: The error falls as exp(-pi nodes).
_wofz, _wofz_single = _Rule(12), _Rule(7)


def _size(x: Any) -> Any:
    """Return |x|, whose derivative at 0 is that from the right: formulas for x >= 0 hold on both sides there."""
    return fnp.where(x < 0, -x, x)


def _less_one(coefficients: Sequence[float]) -> list[float]:
    """Return the coefficients of (p(u) - 1)/(u + 1), for a polynomial p with p(-1) = 1."""
    quotient = [coefficients[-1]]
    for c in coefficients[-2:0:-1]:
        quotient.append(c - quotient[-1])
    return quotient[::-1]


_ERFCX = _less_one(ERFC)


def _right_erfcx(size: Any) -> Any:
    """Return erfcx of numbers that are not negative, by the polynomial of erfc in (x - K)/(x + K)."""
    y = fnp.minimum(size, _ENDLESS)
    u = (y - ERFC_MIDDLE) / (y + ERFC_MIDDLE)
    right = (1 + 2 * y / (y + ERFC_MIDDLE) * estrin(u, _ERFCX)) / (2 * y + 1)
    return fnp.where(size == math.inf, 0, right)


def _real_erfcx(x: Any) -> Any:
    right = _right_erfcx(_size(x))
    # exp(x**2), whose exponent is split into two parts to keep its digits.
    negative = fnp.where(x < 0, fnp.maximum(x, -30), 0)
    top = fnp.round(negative * 1024) / 1024
    grown = fnp.exp(top * top) * fnp.exp((negative - top) * (negative + top))
    return fnp.where(x < 0, 2 * grown - right, right)


def _erfcx_slope(out: Any, x: Any) -> Any:
    """Return 2 x erfcx(x) - 2 / sqrt(pi), whose parts cancel far to the right: the formula's derivative there."""
    left = x < 0.5
    y = fnp.where(left, 1, x)
    right = jvp(_right_erfcx, (y,), (fnp.ones_like(y),))[1]
    return fnp.where(left, 2 * fnp.where(left, x, 0) * fnp.where(left, out, 0) - 2 / math.sqrt(math.pi), right)


_erfcx_with_slope = in_double(with_slopes(_real_erfcx, _erfcx_slope))


def _erfcx(x: Any) -> Any:
    return wofz(1j * x) if dtypes.is_complex(aval_of(x).dtype) else _erfcx_with_slope(x)


def _turns(x: Any) -> Any:
    """x**2 less multiples of 4, for x >= 0: the quarter turns of pi x**2 / 2."""
    top = fnp.round(x * 1024) / 1024  # its square is exact, and so is the remainder by 4
    return _less_fours(top * top) + _less_fours(top * (x - top) * 2) + (x - top) ** 2


def _fresnel_of(single: bool) -> Callable[[Any], tuple[Any, Any]]:
    """Return a function in double precision; one for results in single precision sums fewer terms."""
    terms, angle_terms = (11, 6) if single else (15, 9)
    table_f, table_g = (expansions.F_SINGLE, expansions.G_SINGLE) if single else (expansions.F, expansions.G)
    sines = [(-1) ** k * (math.pi / 2) / (math.factorial(2 * k + 1) * (4 * k + 3)) for k in range(terms)]
    cosines = [(-1) ** k / (math.factorial(2 * k) * (4 * k + 1)) for k in range(terms)]

    def body(x: Any) -> tuple[Any, Any]:
        """Use power series near 0, DLMF 7.6.4 and 7.6.6; else the auxiliary functions, DLMF 7.5.3 and 7.5.4."""
        size = fnp.abs(x)
        close, endless = size < 1.5, size == math.inf
        near = fnp.where(close, size, 0)
        u = (math.pi / 2 * near * near) ** 2
        y = fnp.where(close | endless, 2, size)
        t = (4.5 + 2 * expansions.K) / (y * y + expansions.K) - 1
        inverse = 1 / y
        f, g = estrin(t, table_f) * inverse, estrin(t, table_g) * (inverse * inverse * inverse)
        sin, cos = sin_cos(_turns(y), angle_terms)
        s = fnp.where(close, near**3 * estrin(u, sines), 0.5 - f * cos - g * sin)
        c = fnp.where(close, near * estrin(u, cosines), 0.5 + f * sin - g * cos)
        s, c = fnp.where(endless, 0.5, s), fnp.where(endless, 0.5, c)
        sign = fnp.copysign(1, x)
        return fnp.where(x != x, x, sign * s), fnp.where(x != x, x, sign * c)

    def slope(out: Any, x: Any) -> tuple[Any, Any]:
        endless = fnp.abs(x) == math.inf
        pair = sin_cos(_turns(fnp.where(endless, 0, fnp.abs(x))), angle_terms)
        return fnp.where(endless, 0, pair[0]), fnp.where(endless, 0, pair[1])

    return with_slopes(body, slope)


_fresnel = in_double(_fresnel_of(single=False), _fresnel_of(single=True))


def _less_fours(x: Any) -> Any:
    return x - 4 * fnp.round(x / 4)


wofz = make(
    "wofz", "z", in_double(_wofz, _wofz_single),
    "The Faddeeva function exp(-z**2) erfc(-iz), a complex number.", "0.5 + 1j", complex=True,
)  # fmt: skip
erfcx = one("erfcx", _erfcx, "exp(x**2) erfc(x).", complex=True)
dawsn = one(
    "dawsn", in_double(dawson(single=False), dawson(single=True)),
    "Dawson's integral: exp(-x**2) times the integral of exp(t**2) from 0 to x.",
)  # fmt: skip
fresnel = make(
    "fresnel", "x", _fresnel,
    "Fresnel's integrals from 0 to x: that of sin(pi t**2 / 2), and that of cos(pi t**2 / 2).", "0.5", pair=True,
)  # fmt: skip
