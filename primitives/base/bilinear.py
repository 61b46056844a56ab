"""Shared part of products, which are linear in each operand separately, and are transposed in one operand at a time."""

from __future__ import annotations

from typing import Any

from functorch_like.core import UndefinedPrimal
from functorch_like.errors import DifferentiationError


def both_unknown(name: str, x: Any, y: Any) -> bool:
    """Return True if a transpose rule must give the cotangents of both operands, because one has no elements.

    The product is then zero and linear in both operands together, and both cotangents are zero.

    Args:
        name: of the primitive.
        x: the first operand, as the transpose rule gets it.
        y: the second operand.

    Raises:
        DifferentiationError: where both have elements.
    """
    if not (isinstance(x, UndefinedPrimal) and isinstance(y, UndefinedPrimal)):
        return False
    if x.aval.size and y.aval.size:
        raise DifferentiationError(
            f"{name} is linear in each operand alone, and is to be transposed in both: {x.aval!r} and {y.aval!r}",
            fix="transpose it in one operand, with the other as a constant; or use ft.vjp, which linearizes it first",
        )
    return True
