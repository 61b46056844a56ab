"""Questions about dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import aval_of, is_value
from functorch_like.errors import ArgumentError

dtype = np.dtype
issubdtype = dtypes.issubdtype


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype of combining arrays, numbers and dtypes.

    >>> fnp.result_type(fnp.float16, 2.0).name, fnp.result_type(fnp.int32, fnp.float16).name
    ('float16', 'float16')
    """
    kinds = [aval_of(a) if is_value(a) else a for a in arrays_and_dtypes]
    return dtypes.result_type(*kinds)


def promote_types(a: Any, b: Any) -> Any:
    """The dtype of combining two dtypes.

    >>> fnp.promote_types("int32", "float32").name
    'float32'
    """
    return dtypes.result_type(dtypes.as_dtype(a), dtypes.as_dtype(b))


_KINDS = {
    "bool": lambda d: d == dtypes.bool_,
    "signed integer": dtypes.is_signed,
    "unsigned integer": dtypes.is_unsigned,
    "integral": dtypes.is_integer,
    "real floating": dtypes.is_float,
    "complex floating": dtypes.is_complex,
    "numeric": lambda d: d != dtypes.bool_,
}


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind: a dtype, or "bool", "integral", "real floating", ...; or one of a tuple of these.

    Raises:
        ArgumentError: for a kind that is not known.

    >>> fnp.isdtype(fnp.float32, "real floating")
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    given = dtypes.as_dtype(dtype)
    if isinstance(kind, str) and kind in _KINDS:
        return bool(_KINDS[kind](given))
    try:
        return given == dtypes.as_dtype(kind)
    except TypeError as e:
        raise ArgumentError(f"{kind!r} is no kind of dtype", fix=f"use a dtype or one of {', '.join(_KINDS)}") from e


def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    """Whether a cast between dtypes is of a sort, as `numpy.can_cast`.

    >>> fnp.can_cast(fnp.int8, fnp.int32)
    True
    """
    given = aval_of(from_).dtype if is_value(from_) else dtypes.as_dtype(from_)
    return bool(np.can_cast(given, dtypes.as_dtype(to), casting))  # type: ignore[arg-type]


def iscomplexobj(x: Any) -> bool:
    """Whether an array or number is of complex dtype.

    >>> fnp.iscomplexobj(fnp.ones(2))
    False
    """
    return dtypes.is_complex(aval_of(x if is_value(x) else np.asarray(x)).dtype)


def isrealobj(x: Any) -> bool:
    """Whether an array or number is not of complex dtype.

    >>> fnp.isrealobj(fnp.ones(2))
    True
    """
    return not iscomplexobj(x)


def isscalar(element: Any) -> bool:
    """Whether it is a number, or an array of rank 0.

    >>> fnp.isscalar(1.0), fnp.isscalar(fnp.ones(2))
    (True, False)
    """
    return is_value(element) and aval_of(element).ndim == 0
