"""Padding between the elements of an array, which XLA:CPU runs faster as a concatenation.

XLA divides the position of each element of the result, and branches; a concatenation copies. The gradient of a slice
with steps is such a padding. One element of padding in one dimension stays as it is: a division by two is cheap there,
and the sum of two such paddings, the gradient of x[::2] * x[1::2], takes a fifth longer as concatenations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from functorch_like.avals import ShapedArray
from functorch_like.core import SampleInput
from functorch_like.primitives.base.lowering import Alternative

#: Elements of the result from which the other form pays.
_LARGE = 4096
#: Most elements behind a dimension, between whose elements there is padding: whole rows are as fast in both forms.
_NARROW = 32
#: Most elements that are joined, for each one of the result: others are cut off, which the standard form never makes.
_MOST = 2


def _spread_dims(shape: Sequence[int], padding_config: Any) -> list[int]:
    """Return the dimensions with padding between their elements, and few elements behind them."""
    return [
        d
        for d, (_, _, inside) in enumerate(padding_config)
        if inside and shape[d] > 1 and math.prod(shape[d + 1 :]) <= _NARROW
    ]


def _takes(ins: Sequence[ShapedArray], outs: Sequence[ShapedArray], *, padding_config: Any) -> bool:
    x, _ = ins
    spread = [padding_config[d][2] for d in _spread_dims(x.shape, padding_config)]
    inside = sum(inside for (*_, inside), n in zip(padding_config, x.shape, strict=True) if n > 1)
    joined = x.size * math.prod(inside + 1 for inside in spread)
    return outs[0].size >= _LARGE and 0 < joined <= _MOST * outs[0].size and bool(spread) and inside > 1


def _joined(e: Any, x: Any, value: Any, *, padding_config: Any) -> Any:
    """Give each element a row of its own that padding fills, and pad what is left to pad."""
    aval, out = e.ins[0], e.outs[0]
    rest = [list(widths) for widths in padding_config]
    for d in reversed(_spread_dims(aval.shape, padding_config) if e.partitioning is None else []):
        low, _, inside = padding_config[d]
        before = min(max(low, 0), inside)
        rest[d] = [low - before, padding_config[d][1] - (inside - before), 0]
        head, n, tail = aval.shape[:d], aval.shape[d], aval.shape[d + 1 :]
        row = lambda width, aval=aval, at=(head, n, tail): aval.update(shape=(*at[0], at[1], width, *at[2]))
        part = e.op("stablehlo.reshape", [x], [row(1)])
        fill = lambda width, row=row: [e.broadcast_in_dim(value, row(width), ())] if width else []
        parts = [*fill(before), part, *fill(inside - before)]
        whole = e.op("stablehlo.concatenate", parts, [row(inside + 1)], {"dimension": e.i64(d + 1)})
        aval = aval.update(shape=(*head, n * (inside + 1), *tail))
        x = e.op("stablehlo.reshape", [whole], [aval])
    return emit_pad(e, x, value, out, rest) if any(map(any, rest)) else x


def emit_pad(e: Any, x: Any, value: Any, out: ShapedArray, padding_config: Any) -> Any:
    """Emit a padding as one operation."""
    lo, hi, interior = zip(*padding_config, strict=True) if padding_config else ((), (), ())
    attrs = {"edge_padding_low": e.i64s(lo), "edge_padding_high": e.i64s(hi), "interior_padding": e.i64s(interior)}
    return e.op("stablehlo.pad", [x, value], [out], attrs=attrs)


def _edges() -> list[tuple[SampleInput, bool]]:
    cases = [
        ((_LARGE // 4,), ((0, 3, 3),), "float32", True),
        ((_LARGE // 4,), ((2, 1, 3),), "float64", True),
        ((_LARGE // 4,), ((0, 2, 3),), "float32", False),
        ((_LARGE,), ((0, 1, 1),), "float32", False),
        ((1500,), ((-5, 7, 2),), "int32", True),
        ((1500,), ((9, -4, 3),), "bool", True),
        ((1500,), ((1, 1, 2),), "complex64", True),
        ((5000,), ((1, 1, 0),), "float32", False),
        ((70, _NARROW), ((0, 2, 2), (0, 0, 0)), "bfloat16", True),
        ((70, _NARROW + 1), ((0, 2, 2), (0, 0, 0)), "float32", False),
        ((40, 30), ((1, 0, 1), (-1, 3, 1)), "float32", True),
        ((40, _NARROW + 1), ((1, 0, 1), (1, 0, 1)), "float32", True),
        ((3, 40, 2, 5), ((1, 2, 1), (2, 1, 2), (1, 1, 3), (0, 1, 0)), "float16", True),
        ((0,), ((3000, 3000, 2),), "float32", False),
        ((1,), ((3000, 3000, 2),), "float32", False),
        ((_LARGE, 1), ((0, 0, 0), (0, 0, 1000)), "float32", False),
        ((100_000,), ((0, -999_000, 9),), "float32", False),
    ]
    return [
        (SampleInput((ShapedArray(s, dtype), ShapedArray((), dtype)), {"padding_config": config}), taken)
        for s, config, dtype, taken in cases
    ]


JOINED = Alternative(
    "rows of an element and padding",
    f"results of at least {_LARGE:,} elements, with two elements of padding inside or more, some of them in "
    f"a dimension with at most {_NARROW} elements behind it, unless more than half are cut off",
    _takes,
    _joined,
    _edges,
    optimised_only=True,
)
