"""Powers inside of densities, with derivatives that are right where the base is 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functorch_like.primitives import elementwise
from functorch_like.primitives.base.shapes import full_like


def power_factors(exponent: Any, x: Any, log: Callable[[Any], Any] = elementwise.log, zero: float = 0) -> Any:
    """Return a logarithm and a factor, whose product `exp(logarithm) * factor` is the power, for a density.

    The factor is the power where its base is 0, with the derivatives of a power, and 1 elsewhere, where the logarithm
    keeps large exponents from overflow.

    Args:
        exponent, x: floats of one shape and dtype.
        log: the logarithm, of x or of 1 + x.
        zero: the x whose logarithm is -infinity.
    """
    is_zero, one = elementwise.eq(x, full_like(x, zero)), full_like(x, 1)
    base = elementwise.sub(x, full_like(x, zero)) if zero else x
    logarithm = elementwise.mul(exponent, log(elementwise.select_n(is_zero, x, full_like(x, zero + 1))))
    return logarithm, elementwise.pow(elementwise.select_n(is_zero, one, base), exponent)


def log_beside_power(exponent: Any, x: Any, log: Callable[[Any], Any] = elementwise.log, zero: float = 0) -> Any:
    """Return `log(x)` as a factor of the power with that exponent, and 0 where the power is 0, as the limit of both is.

    Args:
        exponent, x, log, zero: as those of `power_factors`.
    """
    is_zero = elementwise.and_(elementwise.gt(exponent, full_like(exponent, 0)), elementwise.eq(x, full_like(x, zero)))
    return log(elementwise.select_n(is_zero, x, full_like(x, zero + 1)))
