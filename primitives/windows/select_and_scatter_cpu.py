"""Selection of the extreme element of a window: the backward pass of max pooling as XLA:CPU runs it fast."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import SampleInput
from functorch_like.primitives.base.accumulating import accumulated
from functorch_like.primitives.base.lowering import Alternative
from functorch_like.primitives.base.window_geometry import (
    CLOSE,
    FEW,
    Along,
    along_dimensions,
    disjoint,
    emit_pad,
    emit_tap,
    separable,
    taps,
    window_edges,
    window_params,
    windowed_shape,
)
from functorch_like.primitives.reductions.makers import highest, lowest

#: For each `select`, the comparison with a later element under which an earlier one stays the extreme; the identity.
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
    flag = e.compare(direction, a, b, flags, kind)
    return e.op("stablehlo.or", [flag, e.compare("NE", a, a, flags, "FLOAT")], [flags]) if floats else flag


# -------------------------------------------------------------------------------------- select_and_scatter_add on CPUs
#: The greatest number of elements of a window for the first form, which reads the whole window for each result.
MOST = 4


def _woven(e: Any, source: Any, operand: Any, *, select: str, **params: Any) -> Any:
    """Lower windows side by side: mask each element's share out of the source, and interleave the shares."""
    (out,), small = e.outs, e.ins[0]
    (direction, _), params = ORDER[select], undilated(e.ins[1], params)
    flags, window = small.update(dtype=dtypes.bool_), params["window_dimensions"]
    numbers = small.update(dtype=dtypes.int32)
    parts = [emit_tap(e, operand, tap, small) for tap in taps(small.shape, params)]
    number, best = e.full(0, numbers), parts[0]
    for k, part in enumerate(parts[1:], 1):
        kept = keeps(e, best, part, small, direction)
        best = e.op("stablehlo.select", [kept, best, part], [small])
        number = e.op("stablehlo.select", [kept, number, e.full(k, numbers)], [numbers])
    shape = tuple(m for n in small.shape for m in (n, 1))
    woven = []
    for k in range(len(parts)):
        chosen = e.compare("EQ", number, e.full(k, numbers), flags, "SIGNED")
        share = e.op("stablehlo.select", [chosen, source, e.full(0, small)], [small])
        woven.append(e.op("stablehlo.reshape", [share], [small.update(shape=shape)]))
    for d in reversed(range(small.ndim)):
        w = window[d]
        shape = (*shape[: 2 * d + 1], w, *shape[2 * d + 2 :])
        aval, attrs = small.update(shape=shape), {"dimension": e.i64(2 * d + 1)}
        if w > 1:
            woven = [
                e.op("stablehlo.concatenate", woven[i : i + w], [aval], attrs=attrs) for i in range(0, len(woven), w)
            ]
    covered = small.update(shape=tuple(n * w for n, w in zip(small.shape, window, strict=True)))
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
    return _with_ties(made)


def _with_ties(made: list[tuple[Any, dict[str, Any], bool]]) -> list[tuple[SampleInput, bool]]:
    """Operands with ties, NaN and -inf for shapes and parameters."""
    samples = []
    for shape, params, taken in made:
        operand = ShapedArray(shape, "float32")
        values = (np.arange(operand.size) * 5 % 7).reshape(shape).astype(np.float32)  # with ties
        values[values == 3] = np.nan
        values[values == 4] = -np.inf
        counts = operand.update(shape=windowed_shape(operand, params))
        for select in ("ge", "le"):
            window = {k: v for k, v in params.items() if "dilation" not in k} | {"select": select}
            samples.append((SampleInput((counts, values), window), taken))
    return samples


WOVEN = Alternative(
    "masked shares, woven together", f"windows side by side, of at most {MOST} elements", _fits, _woven, _edges
)


# ------------------------------------------------------------------------------------ one dimension after the other
def _first_of_each(e: Any, x: Any, along: Along, select: str, last: bool) -> list[Any]:
    """The extreme of each window along a dimension (unless it is the last dimension), and its number in the window."""
    (direction, identity), out, d = ORDER[select], along.out, along.d
    numbers, flags = out.update(dtype=dtypes.int32), out.update(dtype=dtypes.bool_)

    def body(e: Any, x: Any) -> list[Any]:
        best, *parts = along.line(e, x, identity(along.aval.dtype))
        number = e.full(0, numbers)
        for k, part in enumerate(parts, 1):
            kept = keeps(e, best, part, out, direction)
            begun = -(-(along.low - k + 1) // along.stride)  # before this window nothing but padding came
            if begun > 0:
                window = e.op("stablehlo.iota", [], [numbers], attrs={"iota_dimension": e.i64(d)})
                real = e.compare("GE", window, e.full(begun, numbers), flags, "SIGNED")
                kept = e.op("stablehlo.and", [kept, real], [flags])
            best = e.op("stablehlo.select", [kept, best, part], [out])
            number = e.op("stablehlo.select", [kept, number, e.full(k, numbers)], [numbers])
        return [number] if last else [best, number]

    outs = [numbers] if last else [out, numbers]
    symbol = e.function(("first of windows", along, select, last), "first_of_windows", [along.aval], outs, body)
    return e.call(symbol, [x], outs, inline=False)


def _shares(e: Any, source: Any, number: Any, along: Along) -> Any:
    """Return, for each element along a dimension, the sum of `source` over the windows that select it.

    `number` is the position of the selected element in each window. Every `stride`th element can be selected by the
    same positions: these elements are summed together, then interleaved with the others.
    """
    d, s, small, wide = along.d, along.stride, along.out, along.aval
    more = -(-along.window // s) - 1
    numbers, flags = small.update(dtype=dtypes.int32), small.update(dtype=dtypes.bool_)
    shaped = lambda *middle: small.update(shape=(*small.shape[:d], *middle, *small.shape[d + 1 :]))
    count = small.shape[d] + more
    part, apart, woven, line = shaped(count), shaped(count, 1), shaped(count, s), shaped(count * s)
    at = lambda n: [n if i == d else 0 for i in range(small.ndim)]

    def body(e: Any, source: Any, number: Any) -> list[Any]:
        parts = []
        for r in range(s):
            total = None
            for k in reversed(range(r, along.window, s)):  # from the first window on
                chosen = e.compare("EQ", number, e.full(k, numbers), flags, "SIGNED")
                share = e.op("stablehlo.select", [chosen, source, e.full(0, small)], [small])
                share, _ = emit_pad(e, share, small, 0, at(k // s), at(more - k // s))
                total = share if total is None else e.op("stablehlo.add", [total, share], [part])
            parts.append(e.op("stablehlo.reshape", [e.full(0, part) if total is None else total], [apart]))
        y = e.op("stablehlo.concatenate", parts, [woven], attrs={"dimension": e.i64(d + 1)}) if s > 1 else parts[0]
        y = e.op("stablehlo.reshape", [y], [line])
        return [emit_pad(e, y, line, 0, at(-along.low), at(wide.shape[d] + along.low - line.shape[d]))[0]]

    symbol = e.function(("shares of windows", along), "shares_of_windows", [small, numbers], [wide], body)
    return e.call(symbol, [source, number], [wide], inline=False)[0]


def swept(standard: Callable[..., Any]) -> Alternative:
    """Return the alternative that selects, and then distributes, along one dimension after the other.

    The extreme of a window is the extreme, along one dimension, of the extremes along the others. The functions are not
    inlined: XLA would find the extremes again for each element that reads their numbers.
    """

    def lower(e: Any, source: Any, operand: Any, *, select: str, **params: Any) -> Any:
        if e.partitioning is not None:
            return standard(e, source, operand, select=select, **params)
        steps = list(along_dimensions(e.ins[1], undilated(e.ins[1], params)))
        numbered = []
        for along in steps:
            *best, number = _first_of_each(e, operand, along, select, along is steps[-1])
            operand = best[0] if best else operand
            numbered.append((number, along))
        for number, along in reversed(numbered):
            source = _shares(e, source, number, along)
        return source

    def fits(ins: Sequence[ShapedArray], outs: Sequence[ShapedArray], **params: Any) -> bool:
        several = sum(w > 1 for w in params["window_dimensions"]) > 1
        short = separable(ins[1], undilated(ins[1], params)) and ins[0].size > 0
        return short and (several or not disjoint(params))

    def edges() -> list[tuple[SampleInput, bool]]:
        made = [
            (s, p, taken) for s, p, taken in window_edges() if set(p["base_dilation"] + p["window_dilation"]) <= {1}
        ]
        made += [
            ((9, 9), window_params((2, 2), (2, 2)), False),
            ((9, 9), window_params((3, 3), (2, 2), ((1, 1), (2, 3))), True),
            ((6, 5), window_params((3, 2), (1, 1), ((5, 4), (3, 3))), True),
            ((3, 5), window_params((1, 1), (2, 1)), True),
            ((2, 13), window_params((1, 6), (1, 6)), False),
            ((2, 13), window_params((1, 6), (1, 5)), True),
        ]
        return _with_ties(made)

    limits = (
        f"windows of at most {FEW} elements, at most {CLOSE} apart, along each dimension; not side by side along one"
    )
    name = "the first extreme, one dimension after the other"
    return Alternative(name, limits, fits, accumulated(lower), edges, slow_compile=True, optimised_only=True)
