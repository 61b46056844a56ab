"""Division of integers as StableHLO operations, with XLA's results for divisors that are 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from functorch_like import dtypes


def divided(e: Any, op: str, x: Any, y: Any, by_zero: Any) -> Any:
    """Divide integers, with 1 in place of divisors that are 0: jaxlib ends the process where it folds such a constant.

    XLA makes the same test itself, and the code of a loop has it once.

    Args:
        e: the emitter.
        op: the StableHLO operation, a division or a remainder.
        x: dividends.
        y: divisors.
        by_zero: results where the divisor is 0.
    """
    (out,) = e.outs
    if e.is_constant_without_zeros(y):
        return e.op(op, [x, y], e.outs)
    kind = "SIGNED" if dtypes.is_signed(out.dtype) else "UNSIGNED"
    zero = e.compare("EQ", y, e.full(0, out), out.update(dtype=dtypes.bool_), kind)
    safe = e.op("stablehlo.select", [zero, e.full(1, out), y], e.outs)
    return e.op("stablehlo.select", [zero, by_zero, e.op(op, [x, safe], e.outs)], e.outs)


def quotient(e: Any, x: Any, y: Any) -> Any:
    """Emit a division, rounded toward 0; all bits of quotients by 0 are set."""
    (out,) = e.outs
    ones = -1 if dtypes.is_signed(out.dtype) else dtypes.iinfo(out.dtype).max
    return divided(e, "stablehlo.divide", x, y, e.full(np.asarray(ones, out.dtype), out))


def remainder(e: Any, x: Any, y: Any) -> Any:
    """Emit a remainder of the dividend's sign; that of a division by 0 is the dividend."""
    return divided(e, "stablehlo.remainder", x, y, x)
