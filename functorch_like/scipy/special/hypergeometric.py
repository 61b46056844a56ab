"""Hypergeometric functions of real arguments, by their power series: hyp1f1, hyp2f1."""

from __future__ import annotations

import math
from typing import Any

from functorch_like import numpy as fnp
from functorch_like.lax.unbounded import run_while
from functorch_like.primitives import elementwise
from functorch_like.scipy.special.gamma_functions import _sign
from functorch_like.scipy.special.makers import elementwise_function, in_double, make

_MOST = 20000


def _series(ratio: Any, like: Any) -> Any:
    """Sum 1 + t1 + t2 + ..., where ratio(k) = t(k+1) / t(k), until no element changes."""

    def going(state: Any) -> Any:
        k, term, total = state
        return (k < _MOST) & fnp.any(fnp.abs(term) > 1e-19 * fnp.abs(total))

    def step(state: Any) -> Any:
        k, term, total = state
        term = term * ratio(k)
        return k + 1, term, total + term

    one = fnp.ones_like(like)
    start = fnp.zeros((), one.dtype), one, one
    return run_while(going, step, start, "power series", expected_steps=100)[2]


def _pole(b: Any) -> Any:
    return (b <= 0) & (fnp.floor(b) == b)


_FAR = -600.0
_LEAST = -708.0  # the exponential function of less is subnormal


def _far_left(a: Any, b: Any, x: Any, far: Any) -> Any:
    """Return 1F1 by the asymptotic series, DLMF 13.7.2, where `far` is true."""
    a, b, x = fnp.where(far, a, 1), fnp.where(far, b, 2), fnp.where(far, x, _FAR)
    series = _series(lambda k: (a + k) * (a - b + 1 + k) / ((k + 1) * -x), x)
    return _quotient(b, 1.0, b - a, 1.0) * fnp.exp(-a * fnp.log(-x)) * series


def _hyp1f1(a: Any, b: Any, x: Any) -> Any:
    """Use Kummer's transformation left of 0, DLMF 13.2.39, so that terms have one sign; except for polynomials.

    Far to the left its factors overflow; NaN is returned there if the asymptotic series does not converge either.
    """
    flipped = (x < 0) & ~_pole(a)
    usable = ~_pole(b) & fnp.isfinite(x)
    endless = flipped & usable & ~_pole(b - a)
    far = endless & (x < _FAR) & (fnp.abs(a * (a - b + 1)) < -x / 4)
    lost = endless & (x < _LEAST) & ~far
    direct = _near(a, b, fnp.where(far | lost, -1, x), flipped, usable)
    return fnp.where(lost, math.nan, fnp.where(far, _far_left(a, b, x, far), direct))


def _near(a: Any, b: Any, x: Any, flipped: Any, usable: Any) -> Any:
    """Return 1F1 by its power series, of the transformed function where `flipped` is true."""
    p, c = fnp.where(usable, fnp.where(flipped, b - a, a), 0), fnp.where(usable, b, 1)
    y = fnp.where(usable, fnp.abs(x) * fnp.where(flipped, 1, fnp.sign(x)), 0)
    out = _series(lambda k: (p + k) / (c + k) * y / (k + 1), y)
    half = fnp.where(flipped, fnp.exp(fnp.where(flipped, x, 0) / 2), 1)  # its square may underflow
    return fnp.where(usable, half * (half * out), fnp.where(x == x, math.inf, x))


def _hyp2f1(a: Any, b: Any, c: Any, x: Any) -> Any:
    """Use Pfaff's transformation left of 0, DLMF 15.8.1; from 0.9 on by that to 1 - x, DLMF 15.8.4, unless c - a - b is
    nearly whole; at 1 Gauss's sum, DLMF 15.4.20."""
    left = x < 0
    ends = _pole(a) | _pole(b)  # a polynomial
    b_, y = fnp.where(left & ~ends, c - b, b), fnp.where(left & ~ends, x / (x - 1), x)
    usable = ~_pole(c) & ((y < 1) | ends)
    gap = c - a - b_
    near = usable & (y > 0.9) & (fnp.abs(gap - fnp.round(gap)) > 1e-3) & ~ends
    y = fnp.where(usable, y, 0)
    p, q, r = a, b_, fnp.where(usable, c, 1)
    s = fnp.where(near, 1 - gap, r)
    direct = _series(lambda k: (p + k) * (q + k) / ((s + k) * (k + 1)) * fnp.where(near, 1 - y, y), y)
    d = fnp.where(near, gap, 0.5)
    other = _series(lambda k: (r - p + k) * (r - q + k) / ((1 + d + k) * (k + 1)) * fnp.where(near, 1 - y, 0), y)
    first = _quotient(r, d, r - p, r - q)
    second = _quotient(r, -d, p, q) * fnp.exp(d * fnp.log(fnp.where(near, 1 - y, 1)))
    out = fnp.where(near, first * direct + second * other, direct)
    out = fnp.where(left & ~ends, fnp.exp(-a * fnp.log1p(-fnp.where(left, x, 0))), 1) * out
    summed = (x == 1) & (c - a - b > 0) & ~ends & ~_pole(c)
    out = fnp.where(
        summed, _quotient(c, c - a - b, c - a, c - b), fnp.where(usable, out, fnp.where(x > 1, math.nan, math.inf))
    )
    return fnp.where((x != x) | (x == -math.inf), math.nan, out)


def _quotient(a: Any, b: Any, c: Any, d: Any) -> Any:
    """Return gamma(a) gamma(b) / gamma(c) gamma(d), with 0 at poles of the denominator."""
    zero = _pole(c) | _pole(d)
    c, d = fnp.where(_pole(c), 1, c), fnp.where(_pole(d), 1, d)
    a, b = fnp.where(_pole(a), 1, a), fnp.where(_pole(b), 1, b)
    size = fnp.exp(elementwise.lgamma(a) + elementwise.lgamma(b) - elementwise.lgamma(c) - elementwise.lgamma(d))
    return fnp.where(zero, 0, size * _sign(a) * _sign(b) * _sign(c) * _sign(d))


hyp1f1 = make(
    "hyp1f1",
    "a b x",
    in_double(elementwise_function(_hyp1f1)),
    "The confluent hypergeometric function 1F1.",
    "1.5, 2.5, 0.5",
)
hyp2f1 = make(
    "hyp2f1", "a b c x", in_double(elementwise_function(_hyp2f1)), "Gauss's hypergeometric function 2F1, for x <= 1.",
    "1.5, 0.5, 2.5, 0.5",
)  # fmt: skip
