"""Logarithms of powers inside of densities, which are right where a power is 0**0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functorch_like.primitives import elementwise
from functorch_like.primitives.base.shapes import full_like


def log_power(exponent: Any, x: Any, log: Callable[[Any], Any] = elementwise.log, zero: float = 0) -> Any:
    """Return `exponent * log(x)`, and 0 where the exponent and the power's base are 0.

    Only there is another number put into the logarithm, so derivatives elsewhere keep both factors.

    Args:
        exponent, x: floats of one shape and dtype.
        log: the logarithm, of x or of 1 + x.
        zero: the x whose logarithm is -infinity.
    """
    flat = elementwise.and_(elementwise.eq(exponent, full_like(exponent, 0)), elementwise.eq(x, full_like(x, zero)))
    return elementwise.mul(exponent, log(elementwise.select_n(flat, x, full_like(x, zero + 1))))
