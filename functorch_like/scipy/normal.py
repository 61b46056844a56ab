"""Functions of the normal distribution, in primitives."""

from __future__ import annotations

import math
from typing import Any

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.primitives import elementwise
from functorch_like.primitives.base.shapes import full_like


def ndtr(x: Any) -> Any:
    """Return erfc(-x / sqrt 2) / 2."""
    return elementwise.mul(elementwise.erfc(elementwise.mul(x, full_like(x, -math.sqrt(0.5)))), full_like(x, 0.5))


def log_ndtr(x: Any) -> Any:
    """Return log ndtr(x): by log1p right of 0, by log next, and far left by the asymptotic expansion, DLMF 7.12.1."""
    bound = -10.0 if aval_of(x).dtype == dtypes.float64 else -5.0
    edge, one = full_like(x, bound), full_like(x, 1)
    left, right = elementwise.lt(x, edge), elementwise.gt(x, full_like(x, 0))
    inside = elementwise.select_n(left, x, edge)
    below = elementwise.log(ndtr(elementwise.select_n(right, inside, full_like(x, 0))))
    above = elementwise.log1p(elementwise.neg(ndtr(elementwise.neg(elementwise.select_n(right, one, x)))))
    tail = elementwise.select_n(left, edge, x)
    inverse = elementwise.div(one, elementwise.square(tail))
    series = full_like(x, 1)
    for n in range(25 if bound == -10 else 9, 0, -2):
        series = elementwise.sub(one, elementwise.mul(elementwise.mul(series, inverse), full_like(x, n)))
    far = elementwise.sub(
        elementwise.mul(elementwise.square(tail), full_like(x, -0.5)), elementwise.log(elementwise.neg(tail))
    )
    far = elementwise.add(elementwise.sub(far, full_like(x, 0.5 * math.log(2 * math.pi))), elementwise.log(series))
    return elementwise.select_n(left, elementwise.select_n(right, below, above), far)


def ndtri(p: Any) -> Any:
    """Return sqrt 2 erfinv(2 p - 1); near 0 and 1, where 2 p - 1 loses digits, by Newton's method on log ndtr."""
    half = full_like(p, 0.5)
    upper = elementwise.gt(p, half)
    low = elementwise.select_n(upper, p, elementwise.sub(full_like(p, 1), p))
    middle = elementwise.mul(
        elementwise.erf_inv(elementwise.sub(elementwise.add(low, low), full_like(p, 1))), full_like(p, math.sqrt(2))
    )
    inside = elementwise.and_(elementwise.gt(low, full_like(p, 0)), elementwise.lt(low, full_like(p, 0.05)))
    safe = elementwise.select_n(inside, full_like(p, 0.01), low)
    target = elementwise.log(safe)
    # Start: x**2 = -2 log(p) - log(2 pi) - log x**2, iterated; then Newton on log ndtr, whose slope is about -x.
    square = elementwise.mul(target, full_like(p, -2.0))
    x = elementwise.sqrt(square)
    for _ in range(2):
        x = elementwise.sqrt(
            elementwise.sub(
                elementwise.sub(square, full_like(p, math.log(2 * math.pi))), elementwise.log(elementwise.square(x))
            )
        )
    x = elementwise.neg(x)
    for _ in range(4):
        value = log_ndtr(x)
        log_density = elementwise.sub(
            elementwise.mul(elementwise.square(x), full_like(p, -0.5)), full_like(p, 0.5 * math.log(2 * math.pi))
        )
        slope = elementwise.exp(elementwise.sub(log_density, value))
        x = elementwise.sub(x, elementwise.div(elementwise.sub(value, target), slope))
    low = elementwise.select_n(inside, middle, x)
    return elementwise.select_n(upper, low, elementwise.neg(low))
