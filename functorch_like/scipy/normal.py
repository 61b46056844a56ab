"""Functions of the normal distribution."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.numpy import promotion
from functorch_like.primitives import elementwise
from functorch_like.primitives.base.shapes import full_like
from functorch_like.primitives.formulas.special import ERFC, ERFC_MIDDLE
from functorch_like.primitives.formulas.term import estrin
from functorch_like.scipy.slopes import with_slopes


def ndtr(x: Any) -> Any:
    """Return erfc(-x / sqrt 2) / 2."""
    return elementwise.mul(elementwise.erfc(elementwise.mul(x, full_like(x, -math.sqrt(0.5)))), full_like(x, 0.5))


def _in_single(body: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make a body that computes half precision in single precision."""

    def wide(x: Any) -> Any:
        aval = aval_of(x)
        if aval.dtype.itemsize >= 4:
            return body(x)
        return promotion.convert(body(promotion.convert(x, dtypes.float32)), aval.dtype, aval.weak_type)

    return wide


# ------------------------------------------------------------------------------------------------------- its logarithm
_EXP = [1 / math.factorial(k) for k in range(9)]


def _gauss(x: Any) -> Any:
    """exp(-x**2 / 2) for x >= 0, without the rounding of the square."""
    x = fnp.minimum(x, 40)  # there it has long been zero
    grid = 2.0**20 if aval_of(x).dtype == dtypes.float64 else 2.0**6
    top = fnp.round(x * grid) / grid  # its square is exact
    return fnp.exp(-0.5 * top * top) * estrin(0.5 * (top - x) * (top + x), _EXP)


def _tails(x: Any) -> tuple[Any, Any, Any, Any]:
    """x <= 0; R = ndtr(-|x|) exp(x**2 / 2), by the table of erfc; exp(-x**2 / 2) and ndtr(-x) for x > 0."""
    left = x <= 0
    s = fnp.where(left, -x, x) * math.sqrt(0.5)  # not |x|, which has no slope at 0
    m = fnp.minimum(s, 1e18)
    ratio = estrin((m - ERFC_MIDDLE) / (m + ERFC_MIDDLE), ERFC) * 0.25 / (s + 0.5)
    gauss = _gauss(fnp.where(left, 0, x))
    return left, ratio, gauss, ratio * gauss


def _log_ndtr_body(x: Any) -> Any:
    """Left of 0 use log R - x**2 / 2. Right of it log(1 - T), less the rounding of 1 - T (W. Kahan's log1p)."""
    left, ratio, _, tail = _tails(x)
    rest = 1 - tail
    log = fnp.log(fnp.where(left, ratio, rest))
    right = fnp.where(rest == 1, -tail, log * (tail / (1 - rest)))
    return fnp.where(left, log - 0.5 * x * x, right)


def _log_ndtr_slope(out: Any, x: Any) -> Any:
    left, ratio, gauss, tail = _tails(x)
    return fnp.where(left, 1, gauss) / (math.sqrt(2 * math.pi) * fnp.where(left, ratio, 1 - tail))


#: log ndtr(x).
log_ndtr = _in_single(with_slopes(_log_ndtr_body, _log_ndtr_slope))

# --------------------------------------------------------------------------------------------------------- its inverse
# Numerators and denominators of M. J. Wichura, "Algorithm AS 241", Applied Statistics 37, 1988 (PPND16): in
# 0.180625 - (p - 1/2)**2 in the middle; in sqrt(-log p) less 1.6 up to 5, less 5 above.
_MIDDLE = (
    (3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
     4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3),
    (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
     2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3),
)  # fmt: skip
_NEAR = (
    (1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
     1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4),
    (1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
     1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9),
)  # fmt: skip
_FAR = (
    (6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
     2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7),
    (1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
     7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15),
)  # fmt: skip


def _root(x: Any) -> Any:
    """The square root in double precision, from one in single precision and a step of Newton's method."""
    if aval_of(x).dtype == dtypes.float64:
        return fnp.sqrt(x)
    start = fnp.sqrt(x)
    half, wide, root = (promotion.convert(v, dtypes.float64) for v in (0.5 / start, x, start))
    return root + (wide - root * root) * half


def _ndtri_body(p: Any) -> Any:
    """Evaluate the rational functions in double precision. The argument's logarithm is in the dtype's own."""
    upper = p > 0.5
    low = fnp.where(upper, 1 - p, p)
    q = promotion.convert(p, dtypes.float64) - 0.5
    middle = fnp.abs(q) <= 0.425
    r = _root(-fnp.log(low))
    far = r > 5
    v = fnp.where(middle, 0.180625 - q * q, fnp.where(far, r - 5, r - 1.6))
    up, down = (
        fnp.where(middle, estrin(v, m), fnp.where(far, estrin(v, f), estrin(v, n)))
        for m, f, n in zip(_MIDDLE, _FAR, _NEAR, strict=True)
    )
    value = up / down * fnp.where(middle, q, fnp.where(upper, 1, -1))
    value = promotion.convert(value, aval_of(p).dtype)
    return fnp.where(low == 0, fnp.where(upper, math.inf, -math.inf), value)


#: The inverse of ndtr. Its slope is 1 over the density.
ndtri = _in_single(with_slopes(_ndtri_body, lambda out, p: math.sqrt(2 * math.pi) * fnp.exp(0.5 * out * out)))
