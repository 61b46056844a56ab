"""The gamma function and its quotients in float64, for results in lower precision: a few polynomials, without tables.

The parts are those of `primitives/formulas/fast_gamma.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from functorch_like import numpy as fnp
from functorch_like.primitives import elementwise
from functorch_like.primitives.formulas.fast_gamma import COSINE, DIGAMMA, RECIPROCAL, SINE
from functorch_like.transforms.custom.custom_jvp import custom_jvp

#: Beyond, results are infinite or 0 in lower precision.
_MOST = 160


def _polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    total = coefficients[-1]
    for c in coefficients[-2::-1]:
        total = total * x + c
    return total


def _variable(t: Any) -> Any:
    return 1 - 3 / t


@custom_jvp
def digamma(x: Any) -> Any:
    """Digamma: of |x| + 1 less 1 / x, or by reflection (DLMF 5.5.4) left of 0."""
    left = x < 0
    t = fnp.abs(x) + 1.5
    r = fnp.where(left, x - fnp.round(x), 0.5)
    square = r * r
    top = fnp.where(left, math.pi * _polynomial(square, COSINE), 1)
    bottom = fnp.where(left, r * _polynomial(square, SINE), x)
    out = fnp.log(t) + _polynomial(_variable(t), DIGAMMA) - top / bottom
    return fnp.where(left & (r == 0), math.nan, out)


digamma.defjvps(lambda g, out, x: g * elementwise.polygamma(x, m=1))


@custom_jvp
def gamma(x: Any) -> Any:
    """The gamma function: that of |x| + 1 divided by x, or by reflection (DLMF 5.5.3) left of 0."""
    left = x < 0
    size = fnp.minimum(fnp.abs(x), _MOST)
    t = size + 1.5
    power = math.sqrt(2 * math.pi) * fnp.exp((size + 0.5) * fnp.log(t) - t)
    reciprocal = _polynomial(_variable(t), RECIPROCAL)
    nearest = fnp.round(x)
    r = fnp.where(left, x - nearest, 0.5)
    sign = 1 - 2 * (nearest - 2 * fnp.floor(nearest / 2))
    top = fnp.where(left, math.pi * reciprocal, power)
    bottom = fnp.where(left, sign * r * _polynomial(r * r, SINE) * power, fnp.minimum(x, _MOST) * reciprocal)
    return fnp.where(left & (r == 0), math.nan, top / bottom)


gamma.defjvps(lambda g, out, x: g * out * digamma(x))
