"""Convolutions of numbers that cuDNN does not take: complex ones and integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from functorch_like.avals import ShapedArray
from functorch_like.primitives.contractions.convolution_lowering import convolution, plain

_DIGIT = 16  # bits
_FLOAT, _WIDE = np.dtype(np.float64), np.dtype(np.int64)


def lower(e: Any, lhs: Any, rhs: Any, **params: Any) -> Any:
    """Write a convolution for GPUs."""
    (left, right), (out,) = e.ins, e.outs
    if not out.size or not left.size or not right.size:
        return e.full(0, out)
    if left.dtype.kind == "c":
        return _complex(e, lhs, rhs, params)
    if left.dtype.kind in "iu":
        return _integer(e, lhs, rhs, params)
    return plain(e, lhs, rhs, **params)


def _complex(e: Any, lhs: Any, rhs: Any, params: dict[str, Any]) -> Any:
    """Four convolutions of real and imaginary parts."""
    (left, right), (out,) = e.ins, e.outs
    real = np.dtype(f"float{4 * out.dtype.itemsize}")
    part = lambda which, x, aval: e.op(f"stablehlo.{which}", [x], [aval.update(dtype=real)])
    a, b = (part(which, lhs, left) for which in ("real", "imag"))
    c, d = (part(which, rhs, right) for which in ("real", "imag"))
    made = out.update(dtype=real)
    product = lambda x, y: convolution(e, x, y, e.ins, made, params)
    first = e.op("stablehlo.subtract", [product(a, c), product(b, d)], [made])
    second = e.op("stablehlo.add", [product(a, d), product(b, c)], [made])
    return e.op("stablehlo.complex", [first, second], [out])


def _integer(e: Any, lhs: Any, rhs: Any, params: dict[str, Any]) -> Any:
    """Convolutions of 16-bit digits in float64, where sums of fewer than 2**21 products are exact.

    Digits that only the result's higher bits depend on, which overflow drops, are left out.
    """
    (left, right), (out,) = e.ins, e.outs
    count = max(1, 8 * out.dtype.itemsize // _DIGIT)
    wide, made = out.update(dtype=_WIDE), out.update(dtype=_FLOAT)
    total = e.full(0, wide)
    rights = _digits(e, rhs, right, count)
    for i, x in enumerate(_digits(e, lhs, left, count)):
        for j, y in enumerate(rights[: count - i]):
            term = e.convert(convolution(e, x, y, e.ins, made, params), wide)
            if i + j:
                term = e.op("stablehlo.shift_left", [term, e.full(_DIGIT * (i + j), wide)], [wide])
            total = e.op("stablehlo.add", [total, term], [wide])
    return e.convert(total, out)


def _digits(e: Any, x: Any, aval: ShapedArray, count: int) -> list[Any]:
    """The lowest digits of integers in two's complement, as float64; numbers of at most 16 bits as they are."""
    floats = aval.update(dtype=_FLOAT)
    if aval.dtype.itemsize * 8 <= _DIGIT and count == 1:
        return [e.convert(x, floats)]
    wide = aval.update(dtype=_WIDE)
    x, digits = e.convert(x, wide), []
    for k in range(count):
        y = x if not k else e.op("stablehlo.shift_right_logical", [x, e.full(_DIGIT * k, wide)], [wide])
        digits.append(e.convert(e.op("stablehlo.and", [y, e.full(2**_DIGIT - 1, wide)], [wide]), floats))
    return digits
