"""Lowerings that keep sums and products of narrow floats in float32, and round them once at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functorch_like.avals import ShapedArray
from functorch_like.dtypes import accumulator


def widened(aval: ShapedArray) -> ShapedArray:
    """The aval in the dtype that its sums are kept in."""
    wide = accumulator(aval.dtype)
    return aval if wide == aval.dtype else aval.update(dtype=wide)


def accumulated(lower: Callable[..., Any]) -> Callable[..., Any]:
    """A lowering of one result that runs `lower` on operands and result of the dtype that sums are kept in."""

    def wide(e: Any, *operands: Any, **params: Any) -> Any:
        ins, outs = e.ins, e.outs
        (out,) = outs
        if widened(out) is out:
            return lower(e, *operands, **params)
        e.ins, e.outs = [widened(a) for a in ins], [widened(out)]
        try:
            y = lower(e, *(e.convert(x, a) for x, a in zip(operands, e.ins, strict=True)), **params)
        finally:
            e.ins, e.outs = ins, outs
        return e.convert(y, out)

    return wide
