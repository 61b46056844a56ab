"""Distances between coordinates: whole numbers are subtracted before they are rounded, and never wrap around."""

from __future__ import annotations

from typing import Any

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.numpy import promotion
from functorch_like.primitives import elementwise, structural


def distance(x: Any, y: Any) -> Any:
    """Return x - y, of two arrays of one dtype and shape; as float64 for integers and booleans.

    A float32 has no room for the digits of a time in nanoseconds, and the difference of two uint8 may be negative.
    """
    if dtypes.is_inexact(aval_of(x).dtype):
        return elementwise.sub(x, y)
    rounded = elementwise.sub(*(promotion.convert(v, dtypes.float64) for v in (x, y)))
    # Modulo 2^64, so right unless the difference itself is out of the range of int64.
    exact = promotion.convert(elementwise.sub(*(promotion.convert(v, dtypes.int64) for v in (x, y))), dtypes.float64)
    small = elementwise.lt(elementwise.abs(rounded), structural.full_like(rounded, 2.0**62))
    return elementwise.select_n(small, rounded, exact)
