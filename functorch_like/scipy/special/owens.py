"""Owen's T function."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functorch_like import numpy as fnp
from functorch_like.primitives import elementwise
from functorch_like.scipy.normal import ndtr
from functorch_like.scipy.slopes import with_slopes
from functorch_like.scipy.special.makers import in_double, two

# Gauss's rule for the integral that defines it (D. B. Owen, Ann. Math. Statist. 27, 1956), on [0, 1].
_PLACES, _WEIGHTS = ((np.polynomial.legendre.leggauss(40)[0] + 1) / 2, np.polynomial.legendre.leggauss(40)[1] / 2)


def _within(h: Any, a: Any) -> Any:
    """Integrate exp(-h**2 (1 + x**2) / 2) / (1 + x**2) / 2 pi from 0 to a, for h >= 0 and 0 <= a <= 1."""
    end = fnp.minimum(a, 9.5 / fnp.maximum(h, 1))
    total: Any = 0
    for place, weight in zip(_PLACES.tolist(), _WEIGHTS.tolist(), strict=True):
        square = (place * end) ** 2
        total = total + weight * fnp.exp(-0.5 * h * h * square) / (1 + square)
    return fnp.exp(-0.5 * h * h) * total * end / (2 * math.pi)


def _body(h: Any, a: Any) -> Any:
    """Compute T, even in h and odd in a; above a = 1 from T(a h, 1 / a) and the normal distribution."""
    size, slope = fnp.abs(h), fnp.abs(a)
    steep = slope > 1
    reach = fnp.where(size == 0, 0, fnp.minimum(fnp.where(size == 0, 1, size) * slope, 1e3))
    part = _within(
        fnp.minimum(fnp.where(steep, reach, size), 1e3), fnp.where(steep, 1 / fnp.where(steep, slope, 1), slope)
    )
    tail, other = ndtr(-size), ndtr(-fnp.where(steep, reach, 0))
    whole = 0.5 * (tail + other) - tail * other - part
    return fnp.where((h != h) | (a != a), math.nan, fnp.sign(a) * fnp.where(steep, whole, part))


def _by_h(out: Any, h: Any, a: Any) -> Any:
    return -fnp.exp(-0.5 * h * h) * elementwise.erf(a * h * math.sqrt(0.5)) / math.sqrt(8 * math.pi)


def _by_a(out: Any, h: Any, a: Any) -> Any:
    return fnp.exp(-0.5 * h * h * (1 + a * a)) / (2 * math.pi * (1 + a * a))


owens_t = two(
    "owens_t", "h a", in_double(with_slopes(_body, _by_h, _by_a)),
    "Owen's T function: the probability that x > h and 0 < y < a x, for normal x and y.",
)  # fmt: skip
