"""The gamma function and its quotients in float64, by a few polynomials and without tables.

The quotients are used in every precision, for positive arguments; the gamma and digamma functions, whose roundings grow
with the argument, for results in lower precision and in derivatives. The parts are those of
`primitives/formulas/gamma_single.py`.
"""

from __future__ import annotations

import math
from typing import Any

from functorch_like import numpy as fnp
from functorch_like.primitives import elementwise
from functorch_like.primitives.formulas.gamma_single import COSINE, DIGAMMA, RECIPROCAL, SINE
from functorch_like.scipy.horner import horner
from functorch_like.transforms.custom.custom_jvp import custom_jvp

#: Beyond, results are infinite or 0 in lower precision.
_MOST = 160


def _variable(t: Any) -> Any:
    return 1 - 3 / t


@custom_jvp
def digamma(x: Any) -> Any:
    """Digamma: of |x| + 1 less 1 / x, or by reflection (DLMF 5.5.4) left of 0."""
    left = x < 0
    t = fnp.abs(x) + 1.5
    r = fnp.where(left, x - fnp.round(x), 0.5)
    square = r * r
    top = fnp.where(left, math.pi * horner(square, COSINE), 1)
    bottom = fnp.where(left, r * horner(square, SINE), x)
    out = fnp.log(t) + horner(_variable(t), DIGAMMA) - top / bottom
    return fnp.where(left & (r == 0), math.nan, out)


digamma.defjvps(lambda g, out, x: g * elementwise.polygamma(x, m=1))


def _parts(z: Any) -> tuple[Any, Any]:
    """t and R of gamma(z + 1), for z >= 0."""
    t = z + 1.5
    return t, horner(_variable(t), RECIPROCAL)


@custom_jvp
def gamma(x: Any) -> Any:
    """The gamma function: that of |x| + 1 divided by x, or by reflection (DLMF 5.5.3) left of 0."""
    left = x < 0
    size = fnp.minimum(fnp.abs(x), _MOST)
    t, reciprocal = _parts(size)
    power = math.sqrt(2 * math.pi) * fnp.exp((size + 0.5) * fnp.log(t) - t)
    nearest = fnp.round(x)
    r = fnp.where(left, x - nearest, 0.5)
    sign = 1 - 2 * (nearest - 2 * fnp.floor(nearest / 2))
    top = fnp.where(left, math.pi * reciprocal, power)
    bottom = fnp.where(left, sign * r * horner(r * r, SINE) * power, fnp.minimum(x, _MOST) * reciprocal)
    return fnp.where(left & (r == 0), math.nan, top / bottom)


gamma.defjvps(lambda g, out, x: g * out * digamma(x))


def _beta_parts(a: Any, b: Any) -> tuple[Any, Any]:
    """Return x and y of the beta function exp(x) y. Exponents are logarithms of ratios, so that nothing cancels."""
    (t, r), (u, s), (v, q) = _parts(a), _parts(b), _parts(a + b)
    power = -(a + 0.5) * fnp.log1p(b / t) - (b + 0.5) * fnp.log1p(a / u) - 1.5
    return power, fnp.sqrt(2 * math.pi * v) * (q / (r * s)) * (1 / a + 1 / b)


@custom_jvp
def beta(a: Any, b: Any) -> Any:
    """The beta function of positive numbers."""
    power, factor = _beta_parts(a, b)
    return fnp.exp(power) * factor


@custom_jvp
def betaln(a: Any, b: Any) -> Any:
    """The logarithm of the beta function of positive numbers; 0 where this is 1 up to roundings."""
    power, factor = _beta_parts(a, b)
    value = power + fnp.log(factor)
    return fnp.where(fnp.abs(value) < 4e-15, 0, value)


betaln.defjvps(
    lambda g, out, a, b: g * (digamma(a) - digamma(a + b)),
    lambda g, out, a, b: g * (digamma(b) - digamma(a + b)),
)
beta.defjvps(
    lambda g, out, a, b: g * out * (digamma(a) - digamma(a + b)),
    lambda g, out, a, b: g * out * (digamma(b) - digamma(a + b)),
)


@custom_jvp
def poch(z: Any, m: Any) -> Any:
    """gamma(z + m) / gamma(z) for positive z and z + m."""
    top = z + m
    (t, r), (u, s) = _parts(z), _parts(top)
    power = (z + 0.5) * fnp.log1p(m / t) + m * (fnp.log(u) - 1)
    return fnp.exp(power) * (r * z / (s * top))


poch.defjvps(
    lambda g, out, z, m: g * out * (digamma(z + m) - digamma(z)),
    lambda g, out, z, m: g * out * digamma(z + m),
)
