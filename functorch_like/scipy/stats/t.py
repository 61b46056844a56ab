"""Student's distribution."""

from __future__ import annotations

import math
from typing import Any

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.scipy.gamma_terms import digits
from functorch_like.scipy.horner import horner
from functorch_like.scipy.logarithms import log1p_less
from functorch_like.scipy.slopes import with_slopes
from functorch_like.scipy.stats import norm
from functorch_like.scipy.stats.families import Family

_family = Family("Student's distribution", "0.5, 2.0", lambda df: df > 0)

# In s = 1 - 3 / t with t = z + 3/2, for z >= 0: gamma(z + 3/2) / gamma(z + 1) / sqrt(t), and
# t**2 (digamma(z + 3/2) - digamma(z + 1)) - t / 2. Chebyshev interpolants of 40 nodes, computed with mpmath.
_RATIO = (
    0.8686266878274133, 0.1380100864505185, -0.006863541666233983, 0.00018844613923925206, 3.847981317774329e-05,
    1.0921212802993834e-06, -9.918686126914578e-07, -2.689766076938453e-07, -1.3706196000746099e-08,
    1.592091412404172e-08, 7.2037254755134295e-09, 1.3747086470458645e-09, -1.9366892331742815e-10,
    -2.9216385664827065e-10, -1.5070777532503142e-10, -2.650425160444318e-11, 2.0236762782058893e-11,
    9.48115224770643e-12,
)  # fmt: skip
_SLOPE = (
    0.4766492500790156, -0.12314110964619633, 0.02528385638717607, -0.0045620015501479224, 0.0009490670210337162,
    -0.00020802110951272115, 3.461611764637171e-05, -7.551038566248368e-06, 1.9752914784281486e-06,
    -1.3180234816563808e-07, 8.728868211938046e-08, -2.4305819721266463e-08, -8.053637808858776e-09,
    -4.742209655490547e-09, -1.0212154020013624e-09, 1.9110356579484685e-10, 6.972445065358951e-10,
    3.232896751073752e-10, -6.73005204139555e-11, -5.971553205722297e-11,
)  # fmt: skip


def _square(x: Any, df: Any) -> tuple[Any, Any, Any]:
    """x**2 / df, or 1 where it is so large that it might overflow; where that is; the logarithm of 1 + x**2 / df."""
    root = x / fnp.sqrt(df)
    far = fnp.abs(root) > (1e9 if aval_of(x).dtype == dtypes.float64 else 1e5)
    square = fnp.where(far, 1, x * x / df)
    return square, far, fnp.where(far, 2 * fnp.log(fnp.where(far, fnp.abs(root), 1)), fnp.log1p(square))


def _value(x: Any, df: Any) -> Any:
    z = 0.5 * df
    t, rest = z + 1.5, z + 0.5
    factor = horner(1 - 3 / t, digits(t, _RATIO, 9)) * fnp.sqrt((t / rest) * (z / rest))
    return fnp.log(factor) - 0.5 * math.log(2 * math.pi) - 0.5 * (df + 1) * _square(x, df)[2]


def _by_x(out: Any, x: Any, df: Any) -> Any:
    """-(df + 1) x / (df + x**2)."""
    big = fnp.abs(x) > fnp.sqrt(df)
    other = fnp.where(big, x, 1)
    return -(df + 1) * fnp.where(big, 1 / (other + df / other), x / (df + fnp.where(big, 1, x) ** 2))


def _by_df(out: Any, x: Any, df: Any) -> Any:
    """Half of digamma(z + 1/2) - digamma(z) - 1/(2z), for z = df/2, and of the derivative of what depends on x."""
    z = 0.5 * df
    t = z + 1.5
    constant = horner(1 - 3 / t, digits(t, _SLOPE, 13)) / (t * t) + (0.75 - 0.5 * z) / (2 * t * z) / (z + 0.5)
    square, far, log = _square(x, df)
    share = square / (1 + square)
    near = share < 0.5
    less = fnp.where(near, log1p_less(fnp.where(near, -share, 0)), fnp.where(far, 1, share) - log)
    return 0.5 * (constant + less + fnp.where(far, 1, share) / df)


_logpdf = with_slopes(_value, _by_x, _by_df)


@_family
def logpdf(x: Any, df: Any) -> Any:
    endless = df == math.inf
    return fnp.where(endless, norm.logpdf.standard(x), _logpdf(x, fnp.where(endless, 1, df)))


pdf = _family.exp(logpdf)
