"""Elementwise maxima and minima that are NaN where an operand is, on CPUs.

XLA:CPU makes one YNNPACK fusion of a large sum and of what is summed. A maximum or minimum in there skips NaN, with
jaxlib 0.10 to 0.12 alike. Which operand loses it depends on the order and on what surrounds them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functorch_like import dtypes

#: Elements from which an array may be left to YNNPACK. (3,072 were not, 4,096 were.)
LARGE = 1024


def keeping_nan(kind: str) -> Callable[..., Any]:
    """Return the `lower` rule of `stablehlo.<kind>`: `maximum` or `minimum`."""
    op = f"stablehlo.{kind}"

    def lower(e: Any, x: Any, y: Any) -> Any:
        (out,) = e.outs
        extreme = e.op(op, [x, y], e.outs)
        if e.platform != "cpu" or not dtypes.is_float(out.dtype) or out.size < LARGE:
            return extreme
        flags = out.update(dtype=dtypes.bool_, weak_type=False)
        is_nan = lambda v: e.compare("NE", v, v, flags, "FLOAT")
        some = e.op("stablehlo.or", [is_nan(x), is_nan(y)], [flags])
        # YNNPACK takes no selection, and so nothing that goes into one.
        return e.op("stablehlo.select", [some, e.op("stablehlo.add", [x, y], e.outs), extreme], e.outs)

    return lower
