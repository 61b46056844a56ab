"""Keys that numbers are ordered by: floats with one NaN and one zero, and integers of the same order as floats."""

from __future__ import annotations

from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray


def one_nan(e: Any, x: Any, aval: ShapedArray) -> Any:
    """Every NaN made the same one, without a sign."""
    nan = e.compare("NE", x, x, aval.update(dtype=dtypes.bool_), "FLOAT")
    return e.op("stablehlo.select", [nan, e.full(np.array(np.nan).astype(aval.dtype), aval), x], [aval])


def one_zero(e: Any, x: Any, aval: ShapedArray) -> Any:
    """Every zero made positive."""
    zero = e.full(np.zeros((), aval.dtype), aval)
    return e.op(
        "stablehlo.select", [e.compare("EQ", x, zero, aval.update(dtype=dtypes.bool_), "FLOAT"), zero, x], [aval]
    )


def one_zero_and_nan(e: Any, x: Any, aval: ShapedArray) -> Any:
    """Every zero made positive, and every NaN the same one: in the form by which XLA:GPU knows NumPy's order."""
    nan = e.compare("NE", x, x, aval.update(dtype=dtypes.bool_), "FLOAT")
    known = one_zero(e, x, aval)
    return e.op("stablehlo.select", [nan, e.full(np.array(np.nan).astype(aval.dtype), aval), known], [aval])


def flip(e: Any, i: Any, aval: ShapedArray) -> Any:
    """Convert the bits of a float to the integer of the same order, or back: the order of negative ones is reversed."""
    negative = e.compare("LT", i, e.full(0, aval), aval.update(dtype=dtypes.bool_), "SIGNED")
    flipped = e.op("stablehlo.xor", [i, e.full(dtypes.iinfo(aval.dtype).max, aval)], [aval])
    return e.op("stablehlo.select", [negative, flipped, i], [aval])


def as_integer(e: Any, x: Any, aval: ShapedArray) -> tuple[Any, ShapedArray]:
    """Floats of 16, 32 or 64 bits as integers of the same order."""
    bits = aval.update(dtype=np.dtype(f"i{aval.dtype.itemsize}"))
    return flip(e, e.op("stablehlo.bitcast_convert", [x], [bits]), bits), bits
