"""Elementwise maxima and minima that are NaN where an operand is, on CPUs.

XLA:CPU makes one YNNPACK fusion of a large sum and of what is summed. A maximum or minimum in there skips NaN, with
jaxlib 0.10 to 0.12 alike. Which operand loses it depends on the order and on what surrounds them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functorch_like import dtypes
from functorch_like.avals import ShapedArray

#: Elements from which an array may be left to YNNPACK. (3,072 were not, 4,096 were.)
LARGE = 1024


def may_skip_nan(e: Any, aval: ShapedArray) -> bool:
    """Return True for an array that XLA may leave to YNNPACK, whose extremes are wrong where it has NaN."""
    return e.platform == "cpu" and dtypes.is_float(aval.dtype) and aval.size >= LARGE


def is_nan(e: Any, x: Any, aval: ShapedArray) -> Any:
    """Emit where the elements of an array of floats are NaN."""
    return e.compare("NE", x, x, aval.update(dtype=dtypes.bool_, weak_type=False), "FLOAT")


def keeping_nan(kind: str) -> Callable[..., Any]:
    """Return the `lower` rule of `stablehlo.<kind>`: `maximum` or `minimum`."""
    op = f"stablehlo.{kind}"

    def lower(e: Any, x: Any, y: Any) -> Any:
        (out,) = e.outs
        extreme = e.op(op, [x, y], e.outs)
        if not may_skip_nan(e, out):
            return extreme
        flags = out.update(dtype=dtypes.bool_, weak_type=False)
        some = e.op("stablehlo.or", [is_nan(e, x, out), is_nan(e, y, out)], [flags])
        # YNNPACK takes no selection, and so nothing that goes into one.
        return e.op("stablehlo.select", [some, e.op("stablehlo.add", [x, y], e.outs), extreme], e.outs)

    return lower
