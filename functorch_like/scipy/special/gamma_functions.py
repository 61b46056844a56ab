"""Relatives of the gamma function: beta, gammasgn, loggamma, multigammaln, poch."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.lax import cond
from functorch_like.numpy import promotion
from functorch_like.numpy.operands import given
from functorch_like.primitives import elementwise
from functorch_like.scipy import gamma_ratios, gamma_single
from functorch_like.scipy.gamma_ratios import stirling
from functorch_like.scipy.special.makers import in_double, make, one, two
from functorch_like.transforms.custom.custom_vmap import custom_vmap
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


def _sign(x: Any) -> Any:
    """Return the sign of gamma; NaN at its poles, except at 0, where it is that of the zero."""
    floor, one = fnp.floor(x), fnp.ones_like(x)
    odd = (floor - 2 * fnp.floor(floor / 2)) != 0
    left = fnp.where((floor == x) | (x != x), math.nan, fnp.where(odd, -one, one))
    return fnp.where(x == 0, fnp.copysign(one, x), fnp.where(x > 0, one, left))


def _beta(a: Any, b: Any) -> Any:
    """Return the beta function: a quotient of gamma functions where these do not overflow."""
    small = (fnp.abs(a) < 80) & (fnp.abs(b) < 80)
    far = (
        fnp.exp(gamma_ratios.betaln(fnp.where(small, 1, a), fnp.where(small, 1, b)))
        * _sign(a)
        * _sign(b)
        * _sign(a + b)
    )
    u, v = fnp.where(small, a, 1), fnp.where(small, b, 1)
    big, less, total = fnp.maximum(u, v), fnp.minimum(u, v), u + v
    pole = small & (total <= 0) & (fnp.floor(total) == total)
    near = fnp.where(
        pole, 0, gamma_ratios.gamma(big) / gamma_ratios.gamma(fnp.where(pole, 1, total)) * gamma_ratios.gamma(less)
    )
    return fnp.where(small, near, far)


def _poch(z: Any, m: Any) -> Any:
    """Return gamma(z + m) / gamma(z); where z and z + m are below 0 and m is whole, (-1)**m times that of 1 - z - m."""
    flipped = (z <= 0) & (z + m < 1) & (fnp.floor(m) == m)
    sign = fnp.where(flipped & (m - 2 * fnp.floor(m / 2) != 0), -1, 1)
    z = fnp.where(flipped, 1 - z - m, z)
    top = z + m
    large = (z >= 10) & (top >= 10)
    a, b = fnp.where(large, z, 10), fnp.where(large, top, 10)
    step = fnp.where(large, m, 0)
    far = (a - 0.5) * fnp.log1p(step / a) + step * (fnp.log(b) - 1) + stirling(b) - stirling(a)
    u, v = fnp.where(large, 1, z), fnp.where(large, 1, top)
    zero = (u <= 0) & (fnp.floor(u) == u)
    u = fnp.where(zero, 0.5, u)
    short = (fnp.abs(u) < 100) & (fnp.abs(v) < 170)
    near = gamma_ratios.gamma(fnp.where(short, v, 1)) / gamma_ratios.gamma(fnp.where(short, u, 1))
    wide = (
        fnp.exp(elementwise.lgamma(fnp.where(short, 1, v)) - elementwise.lgamma(fnp.where(short, 1, u)))
        * _sign(u)
        * _sign(v)
    )
    near = fnp.where(short, near, wide)
    near = fnp.where(zero, fnp.where((v <= 0) & (fnp.floor(v) == v), math.nan, 0), near)
    return fnp.where(m == 0, 1, sign * fnp.where(large, fnp.exp(far), near))


def _where_all(usual: Callable[..., Any], quick: Callable[..., Any], body: Callable[..., Any]) -> Callable[..., Any]:
    """Return a body that is the quick one where all elements are usual.

    `vmap` leaves it one decision for all elements: a branch for each of them would compute both bodies.
    """

    @custom_vmap
    def function(x: Any, y: Any) -> Any:
        return cond(fnp.all(usual(x, y)), quick, body, x, y)

    @function.def_vmap
    def rule(size: int, batched: Any, x: Any, y: Any) -> Any:
        full = (v if b else fnp.broadcast_to(v, (size, *fnp.shape(v))) for v, b in zip((x, y), batched, strict=True))
        return function(*full), True

    return function


def _finite(x: Any) -> Any:
    return (x > 1e-30) & (x < 1e30)


_beta_of_all = _where_all(lambda a, b: _finite(a) & _finite(b), gamma_single.beta, _beta)
_poch_of_all = _where_all(
    lambda z, m: _finite(z) & _finite(z + m) & (z + m > 1e-6 * z), gamma_single.poch, _poch
)  # fmt: skip

betaln = two(
    "betaln",
    "a b",
    in_double(
        gamma_ratios.betaln, _where_all(lambda a, b: _finite(a) & _finite(b), gamma_single.betaln, gamma_ratios.betaln)
    ),
    "log of the absolute value of the beta function.",
)

_SHIFT = 8


def _loggamma(z: Any) -> Any:
    """Use Stirling's series eight steps to the right; left of 0 the reflection formula (D. E. G. Hare, J. Algorithms
    25, 1997). For real numbers return lgamma, and NaN left of 0."""
    if not dtypes.is_complex(aval_of(z).dtype):
        return fnp.where(z < 0, math.nan, elementwise.lgamma(fnp.where(z < 0, 1, z)))
    x, y = fnp.real(z), fnp.imag(z)
    left = x < 0.5
    a, b = fnp.where(left, 1 - x, x), fnp.where(left, -y, y)
    w = elementwise.complex(a, b)
    logs: Any = 0
    for k in range(_SHIFT):
        logs = logs + fnp.log(w + k)
    u = w + _SHIFT
    right = (u - 0.5) * fnp.log(u) - u + 0.5 * math.log(2 * math.pi) + stirling(u) - logs
    # log sin(pi z) on its branch: above the real axis -i pi (z - 1/2) + log(1 - exp(2 pi i z)) - log 2.
    up, height = fnp.where(fnp.signbit(y), -1, 1), fnp.abs(y)  # the cut has two sides, named by the sign of zero
    turn, fall = x - fnp.round(x), fnp.exp(-2 * math.pi * height)
    real = 2 * fnp.sin(math.pi * turn) ** 2 - fnp.expm1(-2 * math.pi * height) * fnp.cos(2 * math.pi * turn)
    less = elementwise.complex(real, -fall * fnp.sin(2 * math.pi * turn))  # 1 - exp(2 pi i z)
    sine = -1j * math.pi * (elementwise.complex(x, height) - 0.5) + fnp.log(less) - math.log(2)
    sine = elementwise.complex(fnp.real(sine), up * fnp.imag(sine))
    return fnp.where(left, math.log(math.pi) - sine - right, right)


def _multi_check(a: Any, d: int) -> Any:
    return fnp.where(a > 0.5 * (d - 1), a, math.nan)


def multigammaln(a: ArrayLike, d: int) -> Array:
    """log of the multivariate gamma function.

    Args:
        a: array or number, above (d - 1) / 2.
        d: dimension, a Python int.

    Returns:
        d (d - 1) / 4 log pi plus the sum of gammaln(a - j / 2) for j = 0 ... d - 1; NaN for smaller a.

    >>> round(float(ft.scipy.special.multigammaln(3.0, 2)), 4)
    1.5502
    """
    return _multigammaln(*given(a), d=operator.index(d))


@eager_jit(static=("d",), ints=True)
def _multigammaln(a: Any, d: int) -> Any:
    a = _multi_check(promotion.to_inexact(a), d)
    total = 0 * a + 0.25 * d * (d - 1) * math.log(math.pi)
    for j in range(d):
        total = total + elementwise.lgamma(a - 0.5 * j)
    return total


_REAL_GAMMA = in_double(gamma_ratios.gamma, gamma_single.gamma)


def _of_complex(z: Any) -> Any:
    pole = (fnp.imag(z) == 0) & (fnp.real(z) <= 0) & (fnp.floor(fnp.real(z)) == fnp.real(z))
    return fnp.where(pole, math.nan, fnp.exp(_loggamma(fnp.where(pole, 1, z))))


_COMPLEX_GAMMA = in_double(_of_complex)


def _gamma(z: Any) -> Any:
    return (_COMPLEX_GAMMA if dtypes.is_complex(aval_of(z).dtype) else _REAL_GAMMA)(z)


gamma = make(
    "gamma", "z", _gamma, "The gamma function; infinite at 0, NaN at negative whole numbers.", "0.5 + 1j", complex=True
)
beta = two("beta", "a b", in_double(_beta_of_all), "The beta function gamma(a) gamma(b) / gamma(a + b).")
gammasgn = one("gammasgn", _sign, "The sign of the gamma function, NaN at its poles.", "-0.5")
loggamma = make(
    "loggamma", "z", in_double(_loggamma), "The logarithm of the gamma function, whose branch cut is left of 0.",
    "0.5 + 1j", complex=True,
)  # fmt: skip
poch = two("poch", "z m", in_double(_poch_of_all), "Pochhammer's symbol gamma(z + m) / gamma(z).")
