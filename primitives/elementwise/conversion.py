"""Conversion to another dtype: convert_element_type."""

from __future__ import annotations

from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import BatchAxis, Primitive, SampleInput, aval_of
from functorch_like.primitives.base.elementwise_makers import KIND, quiet


def _convert_shape(x: ShapedArray, *, new_dtype: np.dtype[Any], weak_type: bool = False) -> ShapedArray:
    return ShapedArray(x.shape, new_dtype, weak_type)


def _convert_ref(x: np.ndarray, *, new_dtype: np.dtype[Any], weak_type: bool = False) -> Any:
    old, new = KIND[x.dtype], KIND[new_dtype]
    if new == "b":
        return x != 0
    if old == "c" and new != "c":
        x, old = np.real(x), "f"
    if old == "f" and new in "iu":  # out of range takes the end of the range, NaN is 0
        info = dtypes.iinfo(new_dtype)
        wide = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0))
        inside = np.clip(wide, float(info.min), float(info.max))
        exact = np.where((wide > info.min) & (wide < info.max), inside, 0).astype(new_dtype)
        return np.where(wide >= info.max, info.max, np.where(wide <= info.min, info.min, exact)).astype(new_dtype)
    return x.astype(new_dtype)


def _convert_lower(e: Any, x: Any, *, new_dtype: np.dtype[Any], weak_type: bool = False) -> Any:
    (aval,), (out,) = e.ins, e.outs
    if KIND[aval.dtype] == "c" and KIND[new_dtype] == "b":  # TRAP: XLA's conversion leaves out the imaginary part
        return e.compare("NE", x, e.full(0, aval), out, "FLOAT")
    if KIND[aval.dtype] == "c" and KIND[new_dtype] != "c":
        aval = aval.update(dtype=dtypes.real_part(aval.dtype))
        x = e.op("stablehlo.real", [x], [aval])
    if aval.dtype == dtypes.float4_e2m1fn and KIND[new_dtype] in "iu":
        # TRAP: XLA:CPU compares with the integer's limits in float4, whose greatest number is 6: it became 127.
        aval = aval.update(dtype=dtypes.float32)
        x = e.convert(x, aval)
    return x if aval.dtype == new_dtype else e.convert(x, out)


def _convert_jvp(primals: Any, tangents: Any, *, new_dtype: np.dtype[Any], weak_type: bool = False) -> tuple[Any, Any]:
    out = convert_element_type(*primals, new_dtype=new_dtype, weak_type=weak_type)
    if KIND[new_dtype] not in "fc":
        return out, None
    (t,) = tangents
    return out, t if aval_of(t).dtype == new_dtype else convert_element_type(t, new_dtype=new_dtype)


def _convert_transpose(ct: Any, args: Any, *, new_dtype: np.dtype[Any], weak_type: bool = False) -> list[Any]:
    return [convert_element_type(ct, new_dtype=args[0].aval.dtype)]


def _convert_batch(axis: BatchAxis, args: Any, dims: Any, **params: Any) -> tuple[Any, int]:
    return convert_element_type(*args, **params), dims[0]


#: Another dtype; from complex to real takes the real part, to bool compares with zero.
convert_element_type = Primitive(
    "convert_element_type",
    shape=_convert_shape,
    ref=quiet(_convert_ref),
    lower=_convert_lower,
    jvp=_convert_jvp,
    transpose=_convert_transpose,
    batch=_convert_batch,
    samples=lambda: [
        SampleInput((ShapedArray(shape, old),), {"new_dtype": np.dtype(new), "weak_type": weak}, (-9.0, 9.0), smooth)
        for shape, old, new, weak, smooth in [
            ((), "float32", "float64", False, True), ((2, 3, 4), "float64", "complex128", False, True),
            ((0, 2), "float32", "int32", False, True),
            ((5,), "float32", "int32", False, False), ((5,), "float32", "uint8", False, False),
            ((5,), "float64", "float32", False, False),
            ((5,), "float32", dtypes.bfloat16, False, False), ((5,), dtypes.bfloat16, "float32", True, False),
            ((5,), "complex128", "float64", False, True),
            ((5,), "complex64", "complex128", False, True), ((5,), "int32", "float32", True, True),
            ((5,), "int32", "int8", False, True),
            ((5,), "float32", "bool", False, True), ((5,), "bool", "float32", False, True),
            ((5,), "int8", "uint32", False, True),
            ((5,), "float32", "float32", True, True), ((5,), "complex64", "bool", False, True),
        ]
    ],
    kind="elementwise", linear="jointly", fusible=True, exact=True,
)  # fmt: skip
