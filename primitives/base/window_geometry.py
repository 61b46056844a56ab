"""Shared parts of primitives over sliding windows: parameters, NumPy's view of windows, and attributes.

Every parameter gives one number (padding: a pair) for each dimension. base_dilation puts holes between elements,
window_dilation puts holes into the window.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

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

#: The greatest number of elements of a window, or of one dimension of it, for which it is taken apart into slices.
FEW = 32

#: The greatest stride for that: XLA's own form is faster for windows side by side of more elements.
CLOSE = 8


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
    """Yield, for each element of the window in order, slices of the elements of the padded operand that stand there."""
    window, strides, _, _, holes = (params[name] for name in NAMES)
    for at in np.ndindex(tuple(window)):
        starts = [i * h for i, h in zip(at, holes, strict=True)]
        yield tuple(slice(i, i + dilated(c, s), s) for i, c, s in zip(starts, counts, strides, strict=True))


def disjoint(params: dict[str, Any]) -> bool:
    """Return True if windows cover the operand from its start without overlap, padding or holes."""
    return params["window_dimensions"] == params["window_strides"] and _gapless(params)


def side_by_side(params: dict[str, Any], out: ShapedArray) -> bool:
    """Return True if windows are disjoint, or the only ones along their dimensions: XLA folds them by a reduction."""
    steps = zip(out.shape, params["window_dimensions"], params["window_strides"], strict=True)
    return all(count == 1 or size == step for count, size, step in steps) and _gapless(params)


def _gapless(params: dict[str, Any]) -> bool:
    holes = (*params.get("base_dilation", ()), *params.get("window_dilation", ()))
    return not any(map(any, params["padding"])) and set(holes) <= {1}


def split_windows(
    e: Any, x: Any, aval: ShapedArray, params: dict[str, Any], out: ShapedArray
) -> tuple[Any, ShapedArray]:
    """Emit windows that are side by side with dimensions of their own: (count, size, count, size, ...)."""
    sizes = params["window_dimensions"]
    covered = aval.update(shape=tuple(n * w for n, w in zip(out.shape, sizes, strict=True)))
    split = aval.update(shape=tuple(m for pair in zip(out.shape, sizes, strict=True) for m in pair))
    if covered.shape != aval.shape:
        x = emit_tap(e, x, [slice(0, n, 1) for n in covered.shape], covered)
    return e.reshape(x, covered, split), split


def few(params: dict[str, Any]) -> bool:
    """Return True if a window has so few elements that it may be taken apart."""
    return math.prod(params["window_dimensions"]) <= FEW


class Along(NamedTuple):
    """The windows along one dimension of an array: `aval` before, `out` one element for each window."""

    d: int
    window: int
    stride: int
    low: int
    high: int
    holes: int
    aval: ShapedArray
    out: ShapedArray

    def line(self, e: Any, x: Any, fill: Any) -> list[Any]:
        """For each element of the window, in order: those elements of the padded operand."""
        at = lambda n: [n if i == self.d else 0 for i in range(self.aval.ndim)]
        x, _ = emit_pad(e, x, self.aval, fill, at(self.low), at(self.high))
        counts, reach = self.out.shape, dilated(self.out.shape[self.d], self.stride)
        starts = [k * self.holes for k in range(self.window)]
        cuts = [
            [slice(k, k + reach, self.stride) if i == self.d else slice(0, n, 1) for i, n in enumerate(counts)]
            for k in starts
        ]
        return [emit_tap(e, x, cut, self.out) for cut in cuts]


def along_dimensions(x: ShapedArray, params: dict[str, Any]) -> Iterator[Along]:
    """The dimensions that windows reach along, from the last to the first: each takes the result of the one before."""
    for d in reversed(range(x.ndim)):
        window, stride, (low, high), _, holes = (params[name][d] for name in NAMES)
        if window > 1 or stride > 1 or low or high:
            count = window_count(x.shape[d], low, high, dilated(window, holes), stride)
            out = x.update(shape=(*x.shape[:d], count, *x.shape[d + 1 :]))
            yield Along(d, window, stride, low, high, holes, x, out)
            x = out


def separable(x: ShapedArray, params: dict[str, Any]) -> bool:
    """Return True if windows are short along each dimension and near each other, and the operand has no holes."""
    short = all(w <= FEW for w in params["window_dimensions"]) and all(s <= CLOSE for s in params["window_strides"])
    return short and x.size > 0 and set(params["base_dilation"]) <= {1}


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


def emit_reduce_window(
    e: Any, operand: Any, init: Any, params: dict[str, Any], region: Any, aval: ShapedArray, out: ShapedArray
) -> Any:
    """`stablehlo.reduce_window` of one operand, in a form that XLA computes rightly."""
    whole = out
    misread = misread_if_padded(aval, params)
    if misread:
        # A last dimension of one element, whose windows of one element have holes: XLA then leaves the padding alone.
        params = batched_params(params, aval.ndim)
        params |= {"window_dilation": (*params["window_dilation"][:-1], 2)}
        operand = e.op("stablehlo.reshape", [operand], [aval.update(shape=(*aval.shape, 1))])
        whole = out.update(shape=(*out.shape, 1))
    attrs = window_attrs(e, params)
    y = e.op("stablehlo.reduce_window", [operand, init], [whole], attrs=attrs, regions=(region,))
    return e.op("stablehlo.reshape", [y], [out]) if misread else y


def misread_if_padded(aval: ShapedArray, params: dict[str, Any]) -> bool:
    """Return True if XLA computes these windows wrongly when the operand is one element with padding around it.

    XLA replaces each result by that element (`is_effective_broadcast` in its algebraic simplifier). It considers the
    padding of the operand, strides and dilations, but not the padding of the windows themselves. Example: windows of 3
    over an element with one zero before and one after it, and a window padding of two more after these.
    """
    if any(set(params[name]) - {1} for name in ("window_strides", "base_dilation", "window_dilation")):
        return False
    may_be_padded, element_is_missed = False, False
    for n, window, (low, high) in zip(aval.shape, params["window_dimensions"], params["padding"], strict=True):
        middle = n // 2
        if n % 2 and window > middle:  # one element, in the middle
            may_be_padded |= n > 1
            last = n + low + high - window
            element_is_missed |= window - low <= middle or last - low > middle
        elif window > 1:
            return False
        else:
            element_is_missed |= bool(low or high)
    return may_be_padded and element_is_missed


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
    """Parameters of a window primitive; by default each has no effect."""
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
    """Shapes and parameters of windows that are just short enough to be folded dimension by dimension, or just not."""
    return [
        ((FEW + 9,), window_params((FEW,), (CLOSE,)), True),
        ((FEW + 9,), window_params((FEW,), (CLOSE + 1,)), False),
        ((FEW + 9,), window_params((FEW + 1,), (CLOSE,)), False),
        ((7, 8), window_params((2, 4), (2, 4)), True),
        ((7, 8), window_params((2, 4), (2, 3), ((1, 2), (0, 5))), True),
        ((2, 9, 8), window_params((1, 3, 4), (1, 2, 1), ((0, 0), (4, 3), (1, 1)), None, (1, 2, 2)), True),
        ((7, 8), window_params((1, 4), (3, 1), ((1, 0), (0, 0))), True),
        ((7, 8), window_params((2, 4), (2, 3), None, (1, 2)), False),
        ((1, 8), window_params((2, 4), (2, 4)), False),
    ]
