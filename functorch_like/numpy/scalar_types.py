"""The names of dtypes: usable wherever a dtype is, and callable, as NumPy's scalar types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes
from functorch_like.numpy.creation import asarray

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import NestedArrayLike


class ScalarType:
    """A dtype by name. Called, it makes an array of that dtype; compared and hashed, it is the dtype.

    >>> fnp.float32(2)
    Array(2., dtype=float32)
    >>> fnp.zeros(2, fnp.int8).dtype == fnp.int8
    True
    """

    __slots__ = ("dtype",)

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype  # NumPy reads this attribute of an object that is passed as a dtype

    @property
    def __name__(self) -> str:
        """Name of the dtype, as of NumPy's scalar types."""
        return self.dtype.type.__name__

    def __call__(self, value: NestedArrayLike = 0) -> Array:
        return asarray(value, self.dtype)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ScalarType):
            return self.dtype == other.dtype
        if isinstance(other, (np.dtype, type, str)):
            return bool(self.dtype == other)  # unequal to any string that is not the name of a dtype, as in NumPy
        # An array, or anything else that compares by elements, is not a dtype.
        return False if hasattr(type(other), "__array__") else NotImplemented

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"functorch_like.numpy.{self.dtype.name}{'_' if self.dtype == dtypes.bool_ else ''}"

    def __reduce__(self) -> str:
        return repr(self).rpartition(".")[2]  # the name in this module, for pickle and copy


bool_ = ScalarType(dtypes.bool_)
int4, int8, int16 = ScalarType(dtypes.int4), ScalarType(dtypes.int8), ScalarType(dtypes.int16)
int32, int64 = ScalarType(dtypes.int32), ScalarType(dtypes.int64)
uint4, uint8, uint16 = ScalarType(dtypes.uint4), ScalarType(dtypes.uint8), ScalarType(dtypes.uint16)
uint32, uint64 = ScalarType(dtypes.uint32), ScalarType(dtypes.uint64)
float16, bfloat16 = ScalarType(dtypes.float16), ScalarType(dtypes.bfloat16)
float32, float64 = ScalarType(dtypes.float32), ScalarType(dtypes.float64)
complex64, complex128 = ScalarType(dtypes.complex64), ScalarType(dtypes.complex128)
float8_e3m4, float8_e4m3 = ScalarType(dtypes.float8_e3m4), ScalarType(dtypes.float8_e4m3)
float8_e8m0fnu, float4_e2m1fn = ScalarType(dtypes.float8_e8m0fnu), ScalarType(dtypes.float4_e2m1fn)
float8_e4m3fn, float8_e5m2 = ScalarType(dtypes.float8_e4m3fn), ScalarType(dtypes.float8_e5m2)
float8_e4m3b11fnuz = ScalarType(dtypes.float8_e4m3b11fnuz)
float8_e4m3fnuz, float8_e5m2fnuz = ScalarType(dtypes.float8_e4m3fnuz), ScalarType(dtypes.float8_e5m2fnuz)
