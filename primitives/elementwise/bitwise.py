"""Primitives about bits: and or xor not, shifts, mulhi, population_count, clz, bitcasts, reduce_precision."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import BatchAxis, NotDefined, Primitive, SampleInput
from functorch_like.errors import ArgumentError, DtypeError, ShapeError
from functorch_like.primitives.base.elementwise_makers import KIND, nondifferentiable, unary
from functorch_like.primitives.base.shapes import move

BITS = {d: 1 if d == dtypes.bool_ else dtypes.itemsize_bits(d) for d in dtypes.ALL}


def unsigned(x: np.ndarray) -> np.ndarray:
    """Reinterpret the bits as unsigned integers."""
    return x.view(f"uint{x.dtype.itemsize * 8}")


def signed(x: np.ndarray) -> np.ndarray:
    """Reinterpret the bits as signed integers."""
    return x.view(f"int{x.dtype.itemsize * 8}")


# Counts are read as unsigned; shifts by the width or more give what shifting one by one would give, as NumPy's do.
def _left(x: np.ndarray, by: np.ndarray) -> Any:
    return np.left_shift(unsigned(x), unsigned(by)).view(x.dtype)


def _right_logical(x: np.ndarray, by: np.ndarray) -> Any:
    return np.right_shift(unsigned(x), unsigned(by)).view(x.dtype)


def _right_arithmetic(x: np.ndarray, by: np.ndarray) -> Any:
    count = np.minimum(unsigned(by), x.dtype.itemsize * 8 - 1)
    return np.right_shift(signed(x), signed(count.astype(by.dtype))).view(x.dtype)


def _leading_zeros(x: np.ndarray) -> Any:
    bits = x.dtype.itemsize * 8
    lengths = [int(n).bit_length() for n in unsigned(x).ravel()]
    return (bits - np.array(lengths, int).reshape(x.shape)).astype(x.dtype)


and_ = nondifferentiable("and", np.bitwise_and, "and", count=2, takes="iub", fusible=True, exact=True)
or_ = nondifferentiable("or", np.bitwise_or, "or", count=2, takes="iub", fusible=True, exact=True)
xor = nondifferentiable("xor", np.bitwise_xor, "xor", count=2, takes="iub", fusible=True, exact=True)
not_ = nondifferentiable("not", np.bitwise_not, "not", takes="iub", fusible=True, exact=True)
shift_left = nondifferentiable("shift_left", _left, "shift_left", count=2, takes="iu", domain=(-3, 40), fusible=True)
shift_right_logical = nondifferentiable(
    "shift_right_logical", _right_logical, "shift_right_logical", count=2, takes="iu", domain=(-3, 40), fusible=True
)
shift_right_arithmetic = nondifferentiable(
    "shift_right_arithmetic",
    _right_arithmetic,
    "shift_right_arithmetic",
    count=2,
    takes="iu",
    domain=(-3, 40),
    fusible=True,
)
population_count = nondifferentiable(
    "population_count", lambda x: np.bitwise_count(unsigned(x)).astype(x.dtype), "popcnt", takes="iu", domain=(-99, 99)
)
clz = nondifferentiable("clz", _leading_zeros, "count_leading_zeros", takes="iu", domain=(-9, 99))


# ---------------------------------------------------------------------------------------------------------------- mulhi
def _mulhi_ref(x: np.ndarray, y: np.ndarray) -> Any:
    high = [int(a) * int(b) >> BITS[x.dtype] for a, b in zip(x.ravel(), y.ravel(), strict=True)]
    return np.array(high, object).reshape(x.shape).astype(x.dtype)


def _mulhi_lower(e: Any, x: Any, y: Any) -> Any:
    """Multiply in twice the width; 64 bits by the four products of halves (Warren, Hacker's Delight, 8-2)."""
    (out,) = e.outs
    bits, is_signed = BITS[out.dtype], KIND[out.dtype] == "i"
    op = lambda name, a, b: e.op(f"stablehlo.{name}", [a, b], [aval])
    right = "shift_right_arithmetic" if is_signed else "shift_right_logical"
    if bits < 64:
        aval = out.update(dtype=np.dtype(f"{'int' if is_signed else 'uint'}{max(8, 2 * bits)}"), weak_type=False)
        product = op("multiply", e.convert(x, aval), e.convert(y, aval))
        return e.convert(op(right, product, e.full(bits, aval)), out)
    aval, half = out, e.full(32, out)
    low = lambda v: op("and", v, e.full(0xFFFFFFFF, aval))
    x0, x1, y0, y1 = low(x), op(right, x, half), low(y), op(right, y, half)
    carried = op("add", op("multiply", x1, y0), op("shift_right_logical", op("multiply", x0, y0), half))
    middle = op("add", op("multiply", x0, y1), low(carried))
    return op("add", op("add", op("multiply", x1, y1), op(right, carried, half)), op(right, middle, half))


#: The upper half of the product of two whole numbers, which is twice as wide as they are.
mulhi = nondifferentiable("mulhi", _mulhi_ref, _mulhi_lower, count=2, takes="iu", domain=(-(2**62), 2**62))


# ------------------------------------------------------------------------------------------------ bitcast_convert_type
def _bitcast_shape(x: ShapedArray, *, new_dtype: np.dtype[Any]) -> ShapedArray:
    if (x.dtype == dtypes.bool_) != (new_dtype == dtypes.bool_) or KIND[x.dtype] == "c" or KIND[new_dtype] == "c":
        raise DtypeError(
            f"the bits of {x!r} cannot be read as {new_dtype}", fix="convert it with astype, or use real and imag"
        )
    old, new = BITS[x.dtype], BITS[new_dtype]
    if old >= new:  # a wider number falls into several, along a new last dimension
        return ShapedArray(x.shape if old == new else (*x.shape, old // new), new_dtype)
    if not x.shape or x.shape[-1] != new // old:
        raise ShapeError(
            f"the last dimension of {x!r} must be {new // old} to be read as {new_dtype}", fix="reshape it so"
        )
    return ShapedArray(x.shape[:-1], new_dtype)


def _bitcast_ref(x: np.ndarray, *, new_dtype: np.dtype[Any]) -> Any:
    x = x.copy(order="C")
    old, new = BITS[x.dtype], BITS[new_dtype]
    if old == new:
        return x.view(new_dtype)
    return x[..., None].view(new_dtype) if old > new else x.view(new_dtype)[..., 0]


def _bitcast_batch(axis: BatchAxis, args: Any, dims: Any, *, new_dtype: np.dtype[Any]) -> tuple[Any, int]:
    x = move(args[0], dims[0], 0)
    return bitcast_convert_type(x, new_dtype=new_dtype), 0


bitcast_convert_type = Primitive(
    "bitcast_convert_type",
    shape=_bitcast_shape,
    ref=_bitcast_ref,
    lower=lambda e, x, *, new_dtype: e.op("stablehlo.bitcast_convert", [x], e.outs),
    jvp=lambda primals, tangents, **params: (bitcast_convert_type(*primals, **params), None),
    transpose=NotDefined("the bits of a number are not linear in it; none is needed, as the derivative is zero"),
    batch=_bitcast_batch,
    samples=lambda: [
        SampleInput((ShapedArray(shape, old),), {"new_dtype": np.dtype(new)}, smooth=False)
        for shape, old, new in [
            ((), "float32", "int32"), ((2, 3, 4), "int32", "float32"), ((0, 2), "float32", "uint32"),
            ((3,), "float64", "int64"),
            ((3,), "int8", "uint8"), ((3,), "float32", "uint8"), ((3, 2), "uint16", "uint32"),
            ((3,), "uint64", "uint32"),
            ((3,), dtypes.bfloat16, "uint16"), ((2,), "float16", "int16"),
        ]
    ],
    kind="elementwise", fusible=True,
)  # fmt: skip


# ---------------------------------------------------------------------------------------------------- reduce_precision
def _precision_shape(x: ShapedArray, *, exponent_bits: int, mantissa_bits: int) -> ShapedArray:
    if KIND[x.dtype] != "f":
        raise DtypeError(f"reduce_precision takes floating point operands, got {x!r}", fix="convert it with astype")
    if operator.index(exponent_bits) < 1 or operator.index(mantissa_bits) < 0:
        raise ArgumentError(
            f"{exponent_bits} exponent bits and {mantissa_bits} mantissa bits make no number",
            fix="give at least 1 and 0",
        )
    return x


def _precision_ref(x: np.ndarray, *, exponent_bits: int, mantissa_bits: int) -> Any:
    wide = x.astype(np.float64)
    fraction, exponent = np.frexp(wide)  # |fraction| in [1/2, 1)
    scale = 2.0 ** (mantissa_bits + 1)
    kept = np.ldexp(np.round(fraction * scale) / scale, exponent)
    bias = 2 ** (exponent_bits - 1) - 1
    largest = (2 - 2.0**-mantissa_bits) * 2.0**bias if bias < 1024 else np.inf
    kept = np.where(np.abs(kept) > largest, np.copysign(np.inf, wide), kept)
    kept = np.where(np.abs(kept) < 2.0 ** (1 - bias), np.copysign(0.0, wide), kept)  # denormal numbers become zero
    return np.where(np.isfinite(wide), kept, wide).astype(x.dtype)


def _precision_lower(e: Any, x: Any, *, exponent_bits: int, mantissa_bits: int) -> Any:
    attrs = {"exponent_bits": e.i32(exponent_bits), "mantissa_bits": e.i32(mantissa_bits)}
    return e.op("stablehlo.reduce_precision", [x], e.outs, attrs=attrs)


reduce_precision = unary(
    "reduce_precision", _precision_ref, _precision_lower, lambda g, x, y, **params: reduce_precision(g, **params),
    transpose=lambda ct, **params: reduce_precision(ct, **params), takes="f", shape=_precision_shape, smooth=False,
    params=({"exponent_bits": 8, "mantissa_bits": 7}, {"exponent_bits": 5, "mantissa_bits": 10}),
    linear="jointly",
)  # fmt: skip
