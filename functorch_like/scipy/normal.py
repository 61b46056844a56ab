"""The normal distribution's functions, of rows."""

from __future__ import annotations

import math
from typing import Any

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.primitives.base.shapes import full_like
from functorch_like.primitives.elementwise import names as E


def ndtr(x: Any) -> Any:
    """erfc(-x / sqrt 2) / 2."""
    return E.mul(E.erfc(E.mul(x, full_like(x, -math.sqrt(0.5)))), full_like(x, 0.5))


def log_ndtr(x: Any) -> Any:
    """log1p right of 0, log to -5 and further left the asymptotic expansion, DLMF 7.12.1."""
    bound = -10.0 if aval_of(x).dtype == dtypes.float64 else -5.0
    edge, one = full_like(x, bound), full_like(x, 1)
    left, right = E.lt(x, edge), E.gt(x, full_like(x, 0))
    inside = E.select_n(left, x, edge)
    below = E.log(ndtr(E.select_n(right, inside, full_like(x, 0))))
    above = E.log1p(E.neg(ndtr(E.neg(E.select_n(right, one, x)))))
    tail = E.select_n(left, edge, x)
    inverse = E.div(one, E.square(tail))
    series = full_like(x, 1)
    for n in range(25 if bound == -10 else 9, 0, -2):
        series = E.sub(one, E.mul(E.mul(series, inverse), full_like(x, n)))
    far = E.sub(E.mul(E.square(tail), full_like(x, -0.5)), E.log(E.neg(tail)))
    far = E.add(E.sub(far, full_like(x, 0.5 * math.log(2 * math.pi))), E.log(series))
    return E.select_n(left, E.select_n(right, below, above), far)


def ndtri(p: Any) -> Any:
    """sqrt 2 erfinv(2 p - 1); near 0 and 1, where 2 p - 1 loses digits, Newton's method on log ndtr."""
    half = full_like(p, 0.5)
    upper = E.gt(p, half)
    low = E.select_n(upper, p, E.sub(full_like(p, 1), p))
    middle = E.mul(E.erf_inv(E.sub(E.add(low, low), full_like(p, 1))), full_like(p, math.sqrt(2)))
    inside = E.and_(E.gt(low, full_like(p, 0)), E.lt(low, full_like(p, 0.05)))
    safe = E.select_n(inside, full_like(p, 0.01), low)
    target = E.log(safe)
    # Start: x**2 = -2 log(p) - log(2 pi) - log x**2, iterated; then Newton on log ndtr, whose slope is about -x.
    square = E.mul(target, full_like(p, -2.0))
    x = E.sqrt(square)
    for _ in range(2):
        x = E.sqrt(E.sub(E.sub(square, full_like(p, math.log(2 * math.pi))), E.log(E.square(x))))
    x = E.neg(x)
    for _ in range(4):
        value = log_ndtr(x)
        log_density = E.sub(E.mul(E.square(x), full_like(p, -0.5)), full_like(p, 0.5 * math.log(2 * math.pi)))
        slope = E.exp(E.sub(log_density, value))
        x = E.sub(x, E.div(E.sub(value, target), slope))
    low = E.select_n(inside, middle, x)
    return E.select_n(upper, low, E.neg(low))
