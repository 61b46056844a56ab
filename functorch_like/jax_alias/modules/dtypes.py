"""`jax.dtypes`: functions of dtypes, those of keys included."""

from __future__ import annotations

from typing import Any

import numpy as np

from functorch_like import dtypes, numpy
from functorch_like.avals import ShapedArray
from functorch_like.core import argument_aval, is_value
from functorch_like.errors import DtypeError
from functorch_like.random.typed_keys import KeyDtype, extended, is_keys, prng_key

__all__ = ["canonicalize_dtype", "extended", "finfo", "issubdtype", "itemsize_bits", "prng_key", "result_type",
           "scalar_type_of"]  # fmt: skip

TypePromotionError = DtypeError


bfloat16 = dtypes.bfloat16.type


def result_type(*values: Any, return_weak_type_flag: bool = False) -> Any:
    """Return the dtype that values promote to; typed keys do not promote with other arrays.

    With `return_weak_type_flag`, it returns a pair of the dtype and whether it is weak, as that of a Python number is.
    """
    if return_weak_type_flag:
        found = result_type(*values)
        if isinstance(found, KeyDtype):
            return found, False
        return found, dtypes.promote(*(argument_aval(x) if is_value(x) else _of_dtype(x) for x in values))[1]
    types = {x if isinstance(x, KeyDtype) else x.dtype for x in values if is_keys(x) or isinstance(x, KeyDtype)}
    if not types:  # Python's types promote as its numbers do
        python = (int, float, complex)
        return numpy.result_type(*(x(0) if isinstance(x, type) and x in python else x for x in values))
    if len(types) > 1 or not all(is_keys(x) or isinstance(x, KeyDtype) for x in values):
        raise DtypeError(
            "typed keys have no dtype in common with other arrays", fix="random.key_data gives their words"
        )
    return types.pop()


class finfo(numpy.finfo):
    """Limits of a floating dtype. Numbers are NumPy's scalars of this dtype, which promote as its arrays do.

    Python's types and values of NumPy keep their 64 bits, as in JAX, also where arrays have 32.
    """

    def __init__(self, dtype: Any) -> None:
        exact = dtype.dtype if isinstance(dtype, (np.ndarray, np.generic)) else dtype
        super().__init__(np.dtype(exact) if dtypes.is_python_type(exact) else exact)

    def __getattr__(self, name: str) -> Any:
        value = super().__getattr__(name)
        return self.dtype.type(value) if isinstance(value, float) else value

    def __reduce__(self) -> tuple[Any, ...]:
        return finfo, (self.dtype,)


def _of_dtype(dtype: Any) -> ShapedArray:
    """Return the aval of a scalar of a dtype; Python's types are weak."""
    return ShapedArray((), dtypes.as_dtype(dtype), dtypes.is_python_type(dtype))


def issubdtype(dtype: Any, kind: Any) -> bool:
    """Return True if a dtype is of a kind; dtypes of keys are of the kinds `extended` and `prng_key`."""
    if kind in (extended, prng_key):
        return isinstance(dtype, KeyDtype) or dtype in (extended, prng_key)
    if isinstance(dtype, KeyDtype) or isinstance(kind, KeyDtype):
        return dtype == kind or kind is np.generic
    try:
        return bool(dtypes.issubdtype(dtype, kind))
    except DtypeError:
        return np.issubdtype(dtype, kind)


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> Any:
    """Return the dtype that arrays get: 64-bit dtypes become 32-bit ones, unless the default float is float64."""
    if isinstance(dtype, KeyDtype):
        return dtype
    result = dtypes.as_dtype(dtype)
    wide = dtypes.default_float() == dtypes.float64
    return result if wide else np.dtype(_NARROW.get(result.name, result))


def to_complex_dtype(dtype: Any) -> Any:
    """Return the complex dtype for the numbers of a dtype, which is complex64 for narrower floats than float64."""
    return dtypes.complex_of(dtypes.exact_dtype(dtype))


_NARROW = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}


def scalar_type_of(x: Any) -> type:
    """Return Python's bool, int, float or complex, whichever corresponds to the dtype of a value."""
    kind = np.dtype(getattr(x, "dtype", type(x)))
    for scalar, numpy_kind in (
        (bool, np.bool_),
        (int, np.integer),
        (float, np.floating),
        (complex, np.complexfloating),
    ):
        if issubdtype(kind, numpy_kind) or (scalar is float and dtypes.is_float(kind)):
            return scalar
    raise DtypeError(f"{x!r:.60} is not a number", fix="give a number or an array")


def itemsize_bits(dtype: Any) -> int:
    """Return the number of bits of an element."""
    result = np.dtype(dtype)
    return 4 if result in (dtypes.int4, dtypes.uint4, dtypes.float4_e2m1fn) else result.itemsize * 8
