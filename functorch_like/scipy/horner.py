"""Polynomials of arrays; those of terms of lowerings are in primitives/formulas/term.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def horner(x: Any, coefficients: Sequence[float]) -> Any:
    """Return a polynomial, of coefficients from the lowest power on, by Horner's rule."""
    total: Any = coefficients[-1]
    for c in coefficients[-2::-1]:
        total = total * x + c
    return total
