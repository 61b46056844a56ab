"""Sine and cosine of angles in quarter turns, in double precision, as polynomials that CPUs run on vectors."""

from __future__ import annotations

import math
from typing import Any

from functorch_like import numpy as fnp
from functorch_like.primitives.formulas.term import estrin

#: Taylor's series in the square of an angle up to pi / 4, without their first terms, DLMF 4.19.1 and 4.19.2.
SIN_SERIES = [(-1) ** k / math.factorial(2 * k + 1) for k in range(1, 9)]
COS_SERIES = [(-1) ** k / math.factorial(2 * k) for k in range(1, 10)]

#: 2 / pi in parts of 29 bits.
_TWO_OVER_PI = (
    0.636619770899415,
    1.4681663246252086e-09,
    2.2760100671971816e-18,
    5.8812147387730434e-27,
    1.0346868700836215e-35,
    3.783256351091319e-45,
)


def quarter_turns(angle: Any) -> Any:
    """Return angles over pi / 2 less multiples of 4, in double precision; they are float32 numbers.

    The products of 24 and 29 bits are exact, and so are their remainders (M. H. Payne, R. N. Hanek, "Radian reduction
    for trigonometric functions", ACM SIGNUM Newsletter 18, 1983).
    """
    total: Any = 0
    for part in _TWO_OVER_PI:
        product = angle * part
        total = total + (product - 4 * fnp.round(product / 4))
    return total


def sin_cos(turns: Any, terms: int = 9) -> tuple[Any, Any]:
    """Return sin and cos of pi / 2 times `turns`; nine terms are good to double precision, six to 2e-11."""
    k = fnp.round(turns)
    angle = (turns - k) * (math.pi / 2)
    square = angle * angle
    s, c = angle + angle * square * estrin(square, SIN_SERIES[:terms]), 1 + square * estrin(square, COS_SERIES[:terms])
    half = k * 0.5
    whole = fnp.floor(half)
    odd, back = half != whole, whole * 0.5 != fnp.floor(whole * 0.5)
    sin, cos = fnp.where(odd, c, s), fnp.where(odd, -s, c)
    return fnp.where(back, -sin, sin), fnp.where(back, -cos, cos)
