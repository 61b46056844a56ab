"""Shared parts of primitives over sliding windows: parameters, NumPy's view of windows, and attributes.

Every parameter gives one number (padding: a pair) for each dimension. base_dilation puts holes between elements,
window_dilation puts holes into the window.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from functorch_like.avals import ShapedArray
from functorch_like.errors import ArgumentError


def dilated(n: int, dilation: int) -> int:
    """The length of n elements with dilation - 1 holes between neighbours."""
    return (n - 1) * dilation + 1 if n else 0


def window_count(n: int, lo: int, hi: int, window: int, stride: int) -> int:
    """Return the number of windows in n elements padded by lo and hi."""
    return max((lo + n + hi - window) // stride + 1, 0)


NAMES = ("window_dimensions", "window_strides", "padding", "base_dilation", "window_dilation")

#: The greatest number of elements in a window for which it is taken apart into slices.
FEW = 32


def windowed_shape(x: ShapedArray, params: dict[str, Any]) -> tuple[int, ...]:
    """The number of windows along each dimension; raises if the parameters do not fit."""
    window, strides, padding, base, holes = (params[name] for name in NAMES)
    for name in NAMES:
        if len(params[name]) != x.ndim or (name != "padding" and any(n < 1 for n in params[name])):
            raise ArgumentError(
                f"{name}={params[name]} must be {x.ndim} positive numbers for {x!r}", fix="give one for each dimension"
            )
    if any(lo < 0 or hi < 0 for lo, hi in padding):
        raise ArgumentError(f"padding={padding} is negative", fix="slice the operand first")
    return tuple(
        window_count(dilated(n, b), lo, hi, dilated(w, h), s)
        for n, w, s, (lo, hi), b, h in zip(x.shape, window, strides, padding, base, holes, strict=True)
    )


def taps(counts: Sequence[int], params: dict[str, Any]) -> Iterator[tuple[slice, ...]]:
    """For each element of the window, in order: the elements of the padded operand that stand there."""
    window, strides, _, _, holes = (params[name] for name in NAMES)
    for at in np.ndindex(tuple(window)):
        starts = [i * h for i, h in zip(at, holes, strict=True)]
        yield tuple(slice(i, i + dilated(c, s), s) for i, c, s in zip(starts, counts, strides, strict=True))


def disjoint(params: dict[str, Any]) -> bool:
    """Return True if windows cover the operand from its start without overlap, padding or holes."""
    holes = (*params.get("base_dilation", ()), *params.get("window_dilation", ()))
    return (
        params["window_dimensions"] == params["window_strides"]
        and not any(map(any, params["padding"]))
        and set(holes) <= {1}
    )


def few(params: dict[str, Any]) -> bool:
    """Return True if a window has so few elements that it may be taken apart."""
    return math.prod(params["window_dimensions"]) <= FEW


def emit_tap(e: Any, x: Any, tap: Sequence[slice], out: ShapedArray) -> Any:
    """A strided slice."""
    attrs = {
        "start_indices": e.i64s([s.start for s in tap]),
        "limit_indices": e.i64s([s.stop for s in tap]),
        "strides": e.i64s([s.step for s in tap]),
    }
    return e.op("stablehlo.slice", [x], [out], attrs=attrs)


def emit_pad(
    e: Any, x: Any, aval: ShapedArray, fill: Any, low: Sequence[int], high: Sequence[int], holes: Sequence[int] = ()
) -> tuple[Any, ShapedArray]:
    """Elements put before, after and in between along each dimension, or cut off where negative; and the aval."""
    holes = holes or [0] * aval.ndim
    if not any((*low, *high, *holes)):
        return x, aval
    sizes = zip(aval.shape, low, high, holes, strict=True)
    out = aval.update(shape=tuple(before + dilated(n, inner + 1) + after for n, before, after, inner in sizes))
    attrs = {
        "edge_padding_low": e.i64s(low),
        "edge_padding_high": e.i64s(high),
        "interior_padding": e.i64s(holes),
    }
    return e.op("stablehlo.pad", [x, e.constant(np.asarray(fill, aval.dtype))], [out], attrs=attrs), out


def padded(x: Any, fill: Any, params: dict[str, Any]) -> Any:
    """A NumPy array with padding and holes filled in."""
    sizes = [dilated(n, b) for n, b in zip(x.shape, params["base_dilation"], strict=True)]
    out = np.full([lo + n + hi for n, (lo, hi) in zip(sizes, params["padding"], strict=True)], fill, x.dtype)
    inside = zip(sizes, params["padding"], params["base_dilation"], strict=True)
    out[tuple(slice(lo, lo + n, b) for n, (lo, _), b in inside)] = x
    return out


def window_attrs(e: Any, params: dict[str, Any]) -> dict[str, Any]:
    """The attributes of `stablehlo.reduce_window`."""
    names = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    values = [params[name] for name in NAMES if name != "padding"]
    attrs = {name: e.i64s(value) for name, value in zip(names, values, strict=True)}
    return attrs | {"padding": e.dense_i64(np.reshape(np.array(params["padding"], np.int64), (-1, 2)))}


def batched_params(params: dict[str, Any], at: int) -> dict[str, Any]:
    """The parameters with a dimension put in that windows do not reach along."""
    one = lambda name: (0, 0) if name == "padding" else 1
    return {k: (*v[:at], one(k), *v[at:]) if k in NAMES else v for k, v in params.items()}


def window_params(
    window: Any, strides: Any, padding: Any = None, base: Any = None, holes: Any = None
) -> dict[str, Any]:
    """Parameters of a window primitive; what is not given does nothing."""
    ones = (1,) * len(window)
    return dict(
        zip(NAMES, (window, strides, padding or ((0, 0),) * len(window), base or ones, holes or ones), strict=True)
    )


def window_samples() -> list[tuple[Any, dict[str, Any]]]:
    """Shapes and parameters: overlapping windows, gaps, padding, dilations, nothing at all."""
    return [
        ((5,), window_params((2,), (1,))),
        ((), window_params((), ())),
        ((7,), window_params((2,), (3,), ((1, 2),))),
        ((4, 6), window_params((2, 3), (2, 3))),
        ((2, 5, 4), window_params((1, 3, 2), (1, 2, 1), ((0, 0), (1, 1), (0, 1)))),
        ((5,), window_params((2,), (1,), ((1, 0),), (2,), (3,))),
        ((4, 5), window_params((2, 2), (1, 2), None, None, (1, 2))),
        ((0, 3), window_params((1, 2), (1, 1))),
        ((2,), window_params((3,), (1,))),
    ]


def window_edges() -> list[tuple[Any, dict[str, Any], bool]]:
    """Shapes and parameters of windows that are just disjoint and few enough to be taken apart, or just not."""
    return [
        ((2 * FEW + 1,), window_params((FEW,), (FEW,)), True),
        ((2 * FEW + 3,), window_params((FEW + 1,), (FEW + 1,)), False),
        ((7, 8), window_params((2, 4), (2, 4)), True),
        ((7, 8), window_params((2, 4), (2, 3)), False),
        ((7, 8), window_params((2, 4), (2, 4), ((0, 1), (0, 0))), False),
        ((1, 8), window_params((2, 4), (2, 4)), False),
    ]
