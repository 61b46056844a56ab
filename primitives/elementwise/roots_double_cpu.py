"""Cube root in double precision, as a form that CPUs run on vectors, where XLA:CPU calls a scalar function."""

from __future__ import annotations

import math

import numpy as np

from functorch_like.primitives.elementwise.vectorized_cpu import large_double
from functorch_like.primitives.formulas.logarithm import LAST_BITS
from functorch_like.primitives.formulas.real import bits, copysign, of_bits
from functorch_like.primitives.formulas.term import Term, choose, polynomial, where

#: Upper half of the bits of x**(-1/3), plus a third of that of x: the number for which the guess is the closest.
_GUESS = (4 / 3 * 1023 - 0.066) * 2**20
_TINY = float(np.finfo(np.float64).smallest_normal)


def _guess(x: Term) -> Term:
    """x**(-1/3) to 4 percent, by the upper half of the bits."""
    e, (raw, whole) = x.e, bits(x)
    half = whole.update(dtype=np.dtype("int32"))
    upper = e.convert(e.op("stablehlo.shift_right_logical", [raw, e.full(32, whole)], [whole]), half)
    third = Term(e, e.convert(upper, x.aval), x.aval) * (1 / 3)
    number, _ = bits((_GUESS - third) + LAST_BITS)
    return of_bits(e.op("stablehlo.shift_left", [number, e.full(32, whole)], [whole]), x)


def cbrt(x: Term) -> Term:
    """Cube root: that of a number y of 17 bits, whose cube is exact, times (1 - d)**(-1/3) with d = 1 - y**3 / x."""
    size = abs(x)
    small = size < 2.0**-900
    scaled = size * where(small, 2.0**300, size.like(1))
    r = _guess(scaled)
    for terms in ((1 / 3, 2 / 9), (1 / 3, 2 / 9), (1 / 3,)):
        h = 1 - (scaled * r) * (r * r)
        r = r + r * (h * polynomial(h, terms))
    raw, whole = bits(scaled * r * r)
    y = of_bits(x.e.op("stablehlo.and", [raw, x.e.full(-(1 << 36), whole)], [whole]), x)
    d = ((scaled - y * y * y) * r) * (r * r)
    root = (y + y * (d * polynomial(d, (1 / 3, 2 / 9, 14 / 81, 35 / 243)))) * where(small, 2.0**-100, size.like(1))
    return copysign(choose(root, (size < _TINY, 0), (size.equals(math.inf), math.inf)), x)


CBRT = large_double("cbrt", cbrt, domain=(-9.0, 9.0))._replace(optimised_only=True)
