"""The backward pass of max pooling with a fixed order of sums, for GPUs under settings of determinism.

XLA:GPU's own operation adds what overlapping windows give to one element in whatever order they come, and is refused
for determinism (https://openxla.org/xla/determinism). Here each position in a window is one array, zero
where another position is the extreme; these arrays are spread over the operand and added one after the other.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.backends import determinism
from functorch_like.primitives.base.window_geometry import FEW, emit_pad, emit_tap, few, taps
from functorch_like.primitives.windows.select_and_scatter_cpu import ORDER, keeps, undilated


def scatter_in_order(e: Any, source: Any, operand: Any, *, select: str, **params: Any) -> Any:
    """Lower select_and_scatter_add with a fixed order of sums."""
    (aval, x), (out,) = e.ins, e.outs
    (direction, identity), params = ORDER[select], undilated(x, params)
    window, strides = params["window_dimensions"], params["window_strides"]
    if not few(params):
        determinism.refuse(
            f"select_and_scatter_add, the gradient of max pooling, has no deterministic implementation on GPUs for "
            f"windows {tuple(window)} of more than {FEW} elements, as XLA's adds in any order",
            "use smaller windows, or average pooling",
        )
    low, high = zip(*params["padding"], strict=True)
    flags, numbers = aval.update(dtype=dtypes.bool_), aval.update(dtype=dtypes.int32)
    padded, line = emit_pad(e, operand, x, identity(x.dtype), low, high)
    everywhere = x.update(dtype=dtypes.bool_)
    real, _ = emit_pad(e, e.full(True, everywhere), everywhere, False, low, high)
    cuts = list(taps(aval.shape, params))
    number, best = e.full(-1, numbers), emit_tap(e, padded, cuts[0], aval)
    for k, tap in enumerate(cuts):  # padding is never chosen
        part = emit_tap(e, padded, tap, aval)
        none = e.compare("LT", number, e.full(0, numbers), flags, "SIGNED")
        worse = e.op("stablehlo.not", [keeps(e, best, part, aval, direction)], [flags])
        better = e.op("stablehlo.or", [none, worse], [flags])
        take = e.op("stablehlo.and", [emit_tap(e, real, tap, flags), better], [flags])
        best = e.op("stablehlo.select", [take, part, best], [aval])
        number = e.op("stablehlo.select", [take, e.full(k, numbers), number], [numbers])
    wide = dtypes.accumulator(out.dtype)
    shares, sums = aval.update(dtype=wide), line.update(dtype=wide)
    source, spread = e.convert(source, shares), []
    for k, at in enumerate(np.ndindex(*window)):
        chosen = e.compare("EQ", number, e.full(k, numbers), flags, "SIGNED")
        share = e.op("stablehlo.select", [chosen, source, e.full(0, shares)], [shares])
        rest = [n - i - (m - 1) * s - 1 for n, i, m, s in zip(line.shape, at, aval.shape, strides, strict=True)]
        spread.append(emit_pad(e, share, shares, 0, at, rest, [s - 1 for s in strides])[0])
    total = functools.reduce(lambda a, b: e.op("stablehlo.add", [a, b], [sums]), spread)
    whole, _ = emit_pad(e, total, sums, 0, [-n for n in low], [-n for n in high])
    return e.convert(whole, out)
