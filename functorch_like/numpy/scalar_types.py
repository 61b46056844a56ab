"""The names of dtypes: usable wherever a dtype is, and callable, as NumPy's scalar types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes
from functorch_like.numpy.creation import asarray

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import NestedArrayLike


class ScalarType(type):
    """Class of the names of dtypes. Called, a name makes an array of its dtype; compared and hashed, it is the dtype.

    A name is a class, as NumPy's scalar types are: it can be subclassed, and stand in `float32 | None`. NumPy's scalars
    of the dtype count as its instances.

    >>> fnp.float32(2)
    Array(2., dtype=float32)
    >>> fnp.zeros(2, fnp.int8).dtype == fnp.int8
    True
    """

    dtype: np.dtype[Any]  # NumPy reads this attribute of an object that is passed as a dtype

    def __call__(cls, value: NestedArrayLike = 0) -> Array:
        return asarray(value, cls.dtype)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.dtype.type)

    def __eq__(cls, other: object) -> bool:
        if isinstance(other, ScalarType):
            return cls.dtype == other.dtype
        if isinstance(other, (np.dtype, type, str)):
            return bool(cls.dtype == other)  # unequal to any string that is not the name of a dtype, as in NumPy
        # An array, or anything else that compares by elements, is not a dtype.
        return False if hasattr(type(other), "__array__") else NotImplemented

    def __hash__(cls) -> int:
        return hash(cls.dtype)

    def __repr__(cls) -> str:
        return f"{cls.__module__}.{cls.__qualname__}"


def hash_of_type(cls: ScalarType) -> int:
    """Return the hash under JAX's names: `x.dtype.type` is found among such types, and here `x.dtype` is."""
    return hash(cls.dtype.type)


def _named(dtype: np.dtype[Any]) -> ScalarType:
    """Return the name of a dtype; pickle and copy find it by its module and qualified name."""
    name = "bool_" if dtype == dtypes.bool_ else dtype.name
    place = {"__module__": "functorch_like.numpy", "__qualname__": name}
    return ScalarType(dtype.type.__name__, (), {"dtype": dtype, **place})


bool_ = _named(dtypes.bool_)
int4, int8, int16 = _named(dtypes.int4), _named(dtypes.int8), _named(dtypes.int16)
int32, int64 = _named(dtypes.int32), _named(dtypes.int64)
uint4, uint8, uint16 = _named(dtypes.uint4), _named(dtypes.uint8), _named(dtypes.uint16)
uint32, uint64 = _named(dtypes.uint32), _named(dtypes.uint64)
float16, bfloat16 = _named(dtypes.float16), _named(dtypes.bfloat16)
float32, float64 = _named(dtypes.float32), _named(dtypes.float64)
complex64, complex128 = _named(dtypes.complex64), _named(dtypes.complex128)
float8_e3m4, float8_e4m3 = _named(dtypes.float8_e3m4), _named(dtypes.float8_e4m3)
float8_e8m0fnu, float4_e2m1fn = _named(dtypes.float8_e8m0fnu), _named(dtypes.float4_e2m1fn)
float8_e4m3fn, float8_e5m2 = _named(dtypes.float8_e4m3fn), _named(dtypes.float8_e5m2)
float8_e4m3b11fnuz = _named(dtypes.float8_e4m3b11fnuz)
float8_e4m3fnuz, float8_e5m2fnuz = _named(dtypes.float8_e4m3fnuz), _named(dtypes.float8_e5m2fnuz)
