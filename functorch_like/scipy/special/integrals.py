"""Exponential, sine and cosine integrals, and the dilogarithm: exp1, expi, expn, sici, spence."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.polynomial.chebyshev import cheb2poly

from functorch_like import lax
from functorch_like import numpy as fnp
from functorch_like.primitives import elementwise
from functorch_like.primitives.formulas.term import estrin
from functorch_like.scipy.angles import quarter_turns, sin_cos
from functorch_like.scipy.horner import horner
from functorch_like.scipy.slopes import with_slopes
from functorch_like.scipy.special import expansions
from functorch_like.scipy.special.makers import in_double, make, one, two


def _chebyshev(t: Any, coefficients: Sequence[float]) -> Any:
    """Return the sum of c[k] T_k(t) by Clenshaw's recurrence (DLMF 3.11.30)."""
    above, here = 0 * t, 0 * t
    for c in coefficients[:0:-1]:
        above, here = here, 2 * t * here - above + c
    return t * here - above + coefficients[0]


_SERIES = [1 / (k * math.factorial(k)) for k in range(1, 42)]


def _exp1_body(x: Any) -> Any:
    """Use the power series up to 1, DLMF 6.6.2, then an expansion."""
    near = x <= 1
    y = fnp.where(near & (x > 0), x, 1)
    low = y * horner(-y, _SERIES[:20]) - np.euler_gamma - fnp.log(y)
    y = fnp.where(near, 1, x)
    endless = y == math.inf
    t = fnp.where(endless, 1, (y - 5) / (y + 3))
    out = fnp.where(near, low, fnp.exp(-y) / y * _chebyshev(t, expansions.FALLING))
    return fnp.where(x < 0, math.nan, fnp.where(x == 0, math.inf, out))


_exp1 = with_slopes(_exp1_body, lambda out, x: -fnp.exp(-x) / x)


def _expi_body(x: Any) -> Any:
    """Return -E1(-x) left of 0; right of it the power series, DLMF 6.6.1, then expansions of x exp(-x) Ei(x)."""
    left = _exp1_body(fnp.where(x < 0, -x, 1))
    near = (x > 0) & (x <= 6)
    y = fnp.where(near, x, 1)
    series = y * horner(y, _SERIES) + np.euler_gamma + fnp.log(y)
    far = x > 48
    inside = lambda low, high: fnp.clip(x, low, high)
    parts = [(12, _chebyshev((inside(6, 12) - 9) / 3, expansions.GROWING_6_12)),
             (24, _chebyshev((inside(12, 24) - 18) / 6, expansions.GROWING_12_24)),
             (48, _chebyshev((inside(24, 48) - 36) / 12, expansions.GROWING_24_48))]  # fmt: skip
    scaled = _chebyshev(96 / fnp.where(far, x, 48) - 1, expansions.GROWING_FAR)
    for bound, part in reversed(parts):
        scaled = fnp.where(x <= bound, part, scaled)
    y = fnp.where(x > 6, x, 6)
    half = fnp.exp(0.5 * fnp.where(far, y, 6))  # exp(x) / x stays finite longer than exp(x)
    grown = fnp.where(far, half / y * half, fnp.exp(fnp.where(far, 6, y)) / y)
    right = fnp.where(near, series, fnp.where(y == math.inf, y, grown * scaled))
    out = fnp.where(x < 0, -left, fnp.where(x == 0, -math.inf, right))
    return fnp.where(x != x, x, out)


_expi = with_slopes(_expi_body, lambda out, x: fnp.exp(x) / x)

_FRACTIONS = 100


def _expn_body(n: Any, x: Any) -> Any:
    """Use a power series up to 1, DLMF 8.19.8, then a continued fraction, DLMF 8.19.17, from its end."""
    near = x <= 1
    y = fnp.where(near & (x > 0), x, 1)
    last = n - 1
    log_first = last * fnp.log(y) - elementwise.lgamma(fnp.maximum(n, 1))
    sign = 1 - 2 * (fnp.maximum(last, 0) % 2)
    series = sign * fnp.exp(log_first) * (elementwise.digamma(fnp.maximum(n, 1)) - fnp.log(y))
    term = fnp.ones_like(y)
    for k in range(22):
        there = last == k
        series = series - fnp.where(there, 0, term / fnp.where(there, 1, k - last))
        term = term * -y / (k + 1)
    y = fnp.where(near, 1, x)

    def step(i: Any, below: Any) -> Any:
        k = _FRACTIONS - i
        return y + n + 2 * (k - 1) - k * (n + k - 1) / below

    below = lax.fori_loop(0, _FRACTIONS, step, y + n + 2 * _FRACTIONS)
    fraction = fnp.where(y == math.inf, 0, fnp.exp(-y) / below)
    out = fnp.where(near, series, fraction)
    out = fnp.where(n == 0, fnp.where(x == 0, math.inf, fnp.exp(-x) / fnp.where(x == 0, 1, x)), out)
    out = fnp.where((x == 0) & (n >= 1), fnp.where(n > 1, 1 / fnp.where(n > 1, last, 1), math.inf), out)
    return fnp.where((x < 0) | (n < 0) | (fnp.floor(n) != n), math.nan, fnp.where(x != x, x, out))


def _expn_slope(out: Any, n: Any, x: Any) -> Any:
    """Return minus E of one order less; for order 0 minus E times 1 + 1 / x."""
    return fnp.where(n == 0, -out * (1 + 1 / x), -_expn(fnp.maximum(n - 1, 0), x))


_expn = with_slopes(_expn_body, None, _expn_slope)


def _sici_of(single: bool) -> Callable[[Any], tuple[Any, Any]]:
    """Return a function in double precision; one for results in single precision sums fewer terms."""
    tables = (expansions.SINE_NEAR, expansions.COSINE_NEAR, expansions.AUXILIARY_F, expansions.AUXILIARY_G)
    counts = (9, 10, 13, 15) if single else tuple(map(len, tables))
    sines, cosines, table_f, table_g = (cheb2poly(t[:n]).tolist() for t, n in zip(tables, counts, strict=True))

    def angle(x: Any) -> tuple[Any, Any]:
        return sin_cos(quarter_turns(x), 6) if single else (fnp.sin(x), fnp.cos(x))

    def body(x: Any) -> tuple[Any, Any]:
        """Use expansions up to 4, then the auxiliary functions, DLMF 6.2.19 and 6.2.20."""
        size = fnp.abs(x)
        near = size <= 4
        y = fnp.where(near, size, 4)
        t = y * y / 8 - 1
        zero = y == 0
        sine = y * estrin(t, sines)
        cosine = np.euler_gamma + fnp.log(fnp.where(zero, 1, y)) + y * y * estrin(t, cosines)
        cosine = fnp.where(zero, -math.inf, cosine)
        endless = size == math.inf
        y = fnp.where(near | endless, 4, size)
        t, inverse = (y - 12) / (y + 4), 1 / y
        f, g = estrin(t, table_f) * inverse, estrin(t, table_g) * inverse * inverse
        sin, cos = angle(y)
        sine = fnp.where(near, sine, fnp.where(endless, math.pi / 2, math.pi / 2 - f * cos - g * sin))
        far_cosine = fnp.where(endless, fnp.where(x > 0, 0.0, math.nan), f * sin - g * cos)
        cosine = fnp.where(near, cosine, far_cosine)
        return fnp.copysign(sine, x) * fnp.where(x != x, x, 1), cosine * fnp.where(x != x, x, 1)

    def slope(out: Any, x: Any) -> tuple[Any, Any]:
        if not single:
            return fnp.sinc(x / math.pi), fnp.cos(x) / x
        zero = x == 0
        y = fnp.where(zero, 1, x)
        sin, cos = angle(y)
        return fnp.where(zero, 1 - x * x / 6, sin / y), cos / x

    return with_slopes(body, slope)


_sici = in_double(_sici_of(single=False), _sici_of(single=True))


# B_2k / (2k + 1)! for k = 1 ...: the expansion of the dilogarithm in -log(1 - u).
_BERNOULLI = [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330]
_DILOGARITHM = [b / math.factorial(2 * k + 1) for k, b in enumerate(_BERNOULLI, 1)]


def _spence_of(single: bool) -> Callable[[Any], Any]:
    """Return a function in double precision; one for results in single precision sums fewer terms."""
    logarithm = [2 / (2 * k + 3) for k in range(8 if single else 16)]
    dilogarithm = _DILOGARITHM[: 5 if single else 10]

    def body(z: Any) -> Any:
        """Map z above 3/2 below 1 by DLMF 25.12.4, and z below 1/2 above it by 25.12.6; then sum a series in log z, by
        DLMF 24.2.1; that logarithm by DLMF 4.6.4."""
        usable = (z > 0) & (z < math.inf)
        y = fnp.where(usable, z, 1)
        high = y > 1.5
        w = fnp.where(high, 1 / y, y)
        low = w < 0.5
        v = fnp.where(low, w, 1 - w)
        ratio = v / (2 - v)
        a = 2 * ratio + ratio * (ratio * ratio) * estrin(ratio * ratio, logarithm)
        square = a * a
        li = a - square / 4 + a * square * estrin(square, dilogarithm)
        log = fnp.log(y)
        out = fnp.where(low, math.pi**2 / 6 + fnp.where(high, -log, log) * a - li, li)
        out = fnp.where(high, -0.5 * log * log - out, out)
        ends = fnp.where(z == 0, math.pi**2 / 6 + 0 * y, fnp.where(z == math.inf, -math.inf, math.nan))
        return fnp.where(usable, out, ends)

    return with_slopes(body, _spence_slope)


def _spence_slope(out: Any, z: Any) -> Any:
    """Return log(z) / (1 - z), and -1 at 1."""
    here = z == 1
    y = fnp.where(here, 2, z)
    return fnp.where(here, -1, fnp.log(y) / (1 - y))


_spence = in_double(_spence_of(single=False), _spence_of(single=True))


exp1 = one("exp1", in_double(_exp1), "The exponential integral E1: that of exp(-t) / t from x to infinity.")
expi = one("expi", in_double(_expi), "The exponential integral Ei: the principal value of that of exp(t) / t up to x.")
expn = two(
    "expn", "n x", in_double(_expn), "The exponential integral of order n: that of exp(-x t) / t**n from 1.", "2, 0.5"
)
sici = make(
    "sici",
    "x",
    _sici,
    "The sine integral (that of sin(t) / t from 0 to x), and the cosine integral.",
    "0.5",
    pair=True,
)
spence = one("spence", _spence, "Spence's function, the dilogarithm of 1 - x.")
