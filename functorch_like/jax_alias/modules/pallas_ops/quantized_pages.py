"""`jax.experimental.pallas.ops.tpu.paged_attention.quantization_utils`: int8 weights with a scale for each row."""

from __future__ import annotations

from typing import Any, NamedTuple

from functorch_like import dtypes
from functorch_like import numpy as fnp

#: Half a step beyond the largest int8, by which the largest value of a row is rounded down to 127.
MAX_INT8 = 127.5


class QuantizedTensor(NamedTuple):
    """An array in int8.

    Attributes:
        weight: int8 [..., H].
        scales: floats [..., 1], the largest absolute values of rows.
    """

    weight: Any
    scales: Any


def to_int8(x: Any, h: Any) -> Any:
    """Return x as int8, where h is the largest absolute value; beyond the range of int8, the nearest number of it."""
    return fnp.astype(fnp.clip(fnp.rint(x * (MAX_INT8 / h)), -128, 127), dtypes.int8)


def from_int8(x: Any, h: Any, dtype: Any = dtypes.bfloat16) -> Any:
    """Return the floats that int8 numbers stand for."""
    return fnp.astype(x, dtype) * h / MAX_INT8


def get_quantization_scales(x: Any) -> Any:
    """Return the largest absolute values of rows, [..., 1]."""
    return fnp.max(fnp.abs(x), axis=-1, keepdims=True)


def quantize_to_int8(x: Any) -> QuantizedTensor:
    """Return x as int8 with the scales of its rows."""
    scales = get_quantization_scales(x)
    return QuantizedTensor(to_int8(x, scales), scales)


def unquantize_from_int8(x: QuantizedTensor, dtype: Any = dtypes.bfloat16) -> Any:
    """Return the floats of an array in int8."""
    return from_int8(x.weight, x.scales, dtype)
