"""Selection of the extreme element of a window: the backward pass of max pooling as XLA:CPU runs it fast."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import SampleInput
from functorch_like.primitives.base.lowering import Alternative
from functorch_like.primitives.base.window_geometry import (
    disjoint,
    emit_pad,
    emit_tap,
    taps,
    window_params,
    windowed_shape,
)
from functorch_like.primitives.reductions.makers import highest, lowest

#: For each `select` the comparison under which an element that came first stays, and what no element is beyond.
ORDER = {"ge": ("GE", lowest), "le": ("LE", highest)}


def undilated(x: ShapedArray, params: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a window primitive: these have no dilations."""
    ones = (1,) * x.ndim
    return {k: v for k, v in params.items() if k != "select"} | {"base_dilation": ones, "window_dilation": ones}


def keeps(e: Any, a: Any, b: Any, aval: ShapedArray, direction: str) -> Any:
    """Return True if a, which came first, stays the extreme beside b."""
    flags = aval.update(dtype=dtypes.bool_)
    floats = dtypes.is_inexact(aval.dtype)
    kind = "FLOAT" if floats else "SIGNED" if dtypes.is_signed(aval.dtype) else "UNSIGNED"
    kept = e.compare(direction, a, b, flags, kind)
    return e.op("stablehlo.or", [kept, e.compare("NE", a, a, flags, "FLOAT")], [flags]) if floats else kept


# -------------------------------------------------------------------------------------- select_and_scatter_add on CPUs
#: The greatest number of elements of a window for this form. Each result looks at its whole window again, so with 9
#: elements it is already slower than the standard form, with 4 twenty times faster (docs/lowerings.md).
MOST = 4


def _woven(e: Any, source: Any, operand: Any, *, select: str, **params: Any) -> Any:
    """Windows side by side: each element's share is masked out of the source, and the shares are woven together."""
    (out,), given = e.outs, e.ins[0]
    (direction, _), params = ORDER[select], undilated(e.ins[1], params)
    flags, window = given.update(dtype=dtypes.bool_), params["window_dimensions"]
    numbers = given.update(dtype=dtypes.int32)
    parts = [emit_tap(e, operand, tap, given) for tap in taps(given.shape, params)]
    number, best = e.full(0, numbers), parts[0]
    for k, part in enumerate(parts[1:], 1):
        kept = keeps(e, best, part, given, direction)
        best = e.op("stablehlo.select", [kept, best, part], [given])
        number = e.op("stablehlo.select", [kept, number, e.full(k, numbers)], [numbers])
    shape = tuple(m for n in given.shape for m in (n, 1))
    woven = []
    for k in range(len(parts)):
        mine = e.compare("EQ", number, e.full(k, numbers), flags, "SIGNED")
        share = e.op("stablehlo.select", [mine, source, e.full(0, given)], [given])
        woven.append(e.op("stablehlo.reshape", [share], [given.update(shape=shape)]))
    for d in reversed(range(given.ndim)):
        w = window[d]
        shape = (*shape[: 2 * d + 1], w, *shape[2 * d + 2 :])
        aval, attrs = given.update(shape=shape), {"dimension": e.i64(2 * d + 1)}
        if w > 1:
            woven = [
                e.op("stablehlo.concatenate", woven[i : i + w], [aval], attrs=attrs) for i in range(0, len(woven), w)
            ]
    covered = given.update(shape=tuple(n * w for n, w in zip(given.shape, window, strict=True)))
    y = e.op("stablehlo.reshape", woven, [covered])
    rest = [n - m for n, m in zip(out.shape, covered.shape, strict=True)]
    return emit_pad(e, y, covered, 0, [0] * out.ndim, rest)[0]


def _fits(ins: Sequence[ShapedArray], outs: Sequence[ShapedArray], **params: Any) -> bool:
    small = math.prod(params["window_dimensions"]) <= MOST
    return small and disjoint(params) and ins[0].size > 0 and outs[0].size > 0


def _edges() -> list[tuple[SampleInput, bool]]:
    shapes = [((9, 9), (2, 2), True), ((8, 7), (1, 3), True), ((2 * MOST + 3,), (MOST + 1,), False)]
    made = [(s, window_params(w, w), taken) for s, w, taken in shapes]
    made += [((4, 9), window_params((1, 2), (2, 2)), False), ((5,), window_params((2,), (2,), ((1, 0),)), False)]
    found = []
    for shape, params, taken in made:
        operand = ShapedArray(shape, "float32")
        values = (np.arange(operand.size) * 5 % 7).reshape(shape).astype(np.float32)  # with ties
        values[values == 3] = np.nan
        values[values == 4] = -np.inf
        counts = operand.update(shape=windowed_shape(operand, params))
        for select in ("ge", "le"):
            kept = {k: v for k, v in params.items() if "dilation" not in k} | {"select": select}
            found.append((SampleInput((counts, values), kept), taken))
    return found


WOVEN = Alternative(
    "masked shares, woven together", f"windows side by side, of at most {MOST} elements", _fits, _woven, _edges
)
