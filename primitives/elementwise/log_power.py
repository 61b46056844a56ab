"""Logarithms of powers inside of densities, which are right where a power is 0**0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functorch_like.primitives import elementwise
from functorch_like.primitives.base.shapes import full_like


def log_power(exponent: Any, x: Any, log: Callable[[Any], Any] = elementwise.log, zero: float = 0) -> Any:
    """Return `exponent * log(x)`, and 0 where the exponent and the power's base are 0.

    The operand of the logarithm is replaced there only, so derivatives elsewhere keep both factors. The slope by the
    exponent at 0**0 is 0. `xlogy` is 0 wherever the exponent is 0, and its slope by the exponent is log(x) there, too.

    Args:
        exponent, x: floats of one shape and dtype.
        log: the logarithm, of x or of 1 + x.
        zero: the x whose logarithm is -infinity.
    """
    is_exponent_zero = elementwise.eq(exponent, full_like(exponent, 0))
    is_zero_power = elementwise.and_(is_exponent_zero, elementwise.eq(x, full_like(x, zero)))
    return elementwise.mul(exponent, log(elementwise.select_n(is_zero_power, x, full_like(x, zero + 1))))


def log_beside_power(exponent: Any, x: Any, log: Callable[[Any], Any] = elementwise.log, zero: float = 0) -> Any:
    """Return `log(x)` as a factor of the power with that exponent, and 0 where the power is 0, as the limit of both is.

    Args:
        exponent, x, log, zero: as those of `log_power`.
    """
    is_zero = elementwise.and_(elementwise.gt(exponent, full_like(exponent, 0)), elementwise.eq(x, full_like(x, zero)))
    return log(elementwise.select_n(is_zero, x, full_like(x, zero + 1)))
