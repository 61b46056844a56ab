"""Properties of dtypes: limits, kinds, promotion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray, ShapeDtypeStruct
from functorch_like.core import argument_aval, aval_of, is_value
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.numpy.creation import asarray
from functorch_like.numpy.logic import equal, not_equal
from functorch_like.numpy.unary import imag
from functorch_like.transforms.eager_jit import with_kernel

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike

dtype = np.dtype
issubdtype = dtypes.issubdtype


def result_type(*arrays_and_dtypes: ArrayLike | DTypeLike | ShapeDtypeStruct) -> np.dtype[Any]:
    """The dtype that arrays, numbers and dtypes are promoted to.

    Args:
        arrays_and_dtypes: arrays, numbers, dtypes and names of dtypes.

    Returns:
        A dtype.

    Raises:
        ArgumentError: without any operand.

    >>> fnp.result_type(fnp.float16, 2.0).name, fnp.result_type(fnp.int32, fnp.float16).name
    ('float16', 'float16')
    """
    if not arrays_and_dtypes:
        raise ArgumentError("fnp.result_type of nothing", fix="give an array or a dtype")
    of_ref: Any = lambda a: a.dtype if hasattr(a, "is_reference") else a
    kinds = [argument_aval(a) if is_value(a) else a for a in map(of_ref, arrays_and_dtypes)]
    return dtypes.result_type(*kinds)


class finfo:
    """Limits of a floating dtype, bfloat16 and float8 too: `bits`, `eps`, `max`, `min`, `smallest_normal`, `dtype`, and
    the other attributes of `numpy.finfo`. Numbers are Python floats, as in the array API standard.

    Args:
        dtype: a dtype, or an array; a complex dtype has the limits of its parts.

    >>> fnp.finfo(fnp.float16).max, fnp.finfo(fnp.ones(2)).bits
    (65504.0, 32)
    """

    def __init__(self, dtype: Any) -> None:
        exact = aval_of(dtype).dtype if is_value(dtype) else dtypes.exact_dtype(dtype)
        self.dtype = dtypes.real_part(exact)
        self._limits = dtypes.finfo(self.dtype)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        value = getattr(self._limits, name)
        return float(value) if isinstance(value, np.generic) and dtypes.is_float(value.dtype) else value

    def __reduce__(self) -> tuple[Any, ...]:
        return finfo, (self.dtype,)

    def __repr__(self) -> str:
        limits = ", ".join(f"{name}={getattr(self, name)}" for name in ("min", "max", "eps"))
        return f"finfo({self.dtype.name}: {limits})"


def promote_types(a: DTypeLike, b: DTypeLike) -> np.dtype[Any]:
    """The dtype that two dtypes are promoted to.

    Args:
        a: dtype or name of one.
        b: dtype or name of one.

    Returns:
        A dtype.

    >>> fnp.promote_types("int32", "float32").name
    'float32'
    """
    kinds = (ShapedArray((), dtypes.exact_dtype(kind)) for kind in (a, b))
    return dtypes.promote(*kinds)[0]


_KINDS = {
    "bool": lambda d: d == dtypes.bool_,
    "signed integer": dtypes.is_signed,
    "unsigned integer": dtypes.is_unsigned,
    "integral": dtypes.is_integer,
    "real floating": dtypes.is_float,
    "complex floating": dtypes.is_complex,
    "numeric": lambda d: d != dtypes.bool_,
}


def isdtype(dtype: DTypeLike | None, kind: DTypeLike | tuple[DTypeLike, ...]) -> bool:
    """Return True if a dtype is of a kind: a dtype, "bool", "integral", ..., or one of a tuple of these.

    Args:
        dtype: dtype or name of one.
        kind: dtype, name of a kind, or tuple of these.

    Returns:
        True or False.

    Raises:
        ArgumentError: for an unknown kind.

    >>> fnp.isdtype(fnp.float32, "real floating")
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    exact = dtypes.as_dtype(dtype)
    if isinstance(kind, str) and kind in _KINDS:
        return bool(_KINDS[kind](exact))
    try:
        return exact == dtypes.as_dtype(kind)
    except TypeError as e:
        raise ArgumentError(f"{kind!r} is not a kind of dtype", fix=f"use a dtype or one of {', '.join(_KINDS)}") from e


def can_cast(from_: DTypeLike | ArrayLike, to: DTypeLike, casting: str = "safe") -> bool:
    """Return True if a casting rule allows the cast from one dtype to another, as `numpy.can_cast`.

    Args:
        from_: dtype, array or number.
        to: dtype.
        casting: the rule: "no", "equiv", "safe", "same_kind" or "unsafe".

    Returns:
        True or False.

    >>> fnp.can_cast(fnp.int8, fnp.int32)
    True
    """
    source = aval_of(from_).dtype if is_value(from_) else dtypes.as_dtype(from_)
    return bool(np.can_cast(source, dtypes.as_dtype(to), casting))  # type: ignore[arg-type]


def iscomplexobj(x: object) -> bool:
    """Return True if an array, number, list of numbers, dtype or type is complex.

    Args:
        x: anything that has a dtype or that NumPy converts to an array.

    Returns:
        True or False.

    >>> fnp.iscomplexobj(fnp.ones(2))
    False
    """
    if is_value(x):
        return dtypes.is_complex(aval_of(x).dtype)
    if isinstance(x, type):
        named = getattr(x, "dtype", None)  # of fnp.complex64; NumPy's types have a descriptor
        return named.kind == "c" if isinstance(named, np.dtype) else issubclass(x, (complex, np.complexfloating))
    if isinstance(x, np.dtype):
        return x.kind == "c"
    if hasattr(type(x), "__jax_array__"):
        return iscomplexobj(x.__jax_array__())  # pyright: ignore[reportAttributeAccessIssue]
    if hasattr(x, "dtype"):  # an array of another library, or typed keys
        return bool(np.iscomplexobj(x))  # pyright: ignore[reportArgumentType]
    return isinstance(x, (list, tuple)) and any(map(iscomplexobj, x))


def isrealobj(x: object) -> bool:
    """Return True if an array or number is not of complex dtype.

    Args:
        x: anything that has a dtype or that NumPy converts to an array.

    Returns:
        True or False.

    >>> fnp.isrealobj(fnp.ones(2))
    True
    """
    return not iscomplexobj(x)


def isscalar(element: object) -> bool:
    """Return True if an object is a number or an array of rank 0.

    Args:
        element: any object.

    Returns:
        True or False.

    >>> fnp.isscalar(1.0), fnp.isscalar(fnp.ones(2))
    (True, False)
    """
    return is_value(element) and aval_of(element).ndim == 0


@with_kernel(1)
def iscomplex(x: ArrayLike) -> Array:
    """Return True where elements have an imaginary part that is not zero.

    Args:
        x: array or number.

    Returns:
        A boolean array of its shape.

    >>> fnp.iscomplex(fnp.asarray([1 + 1j, 1])).tolist()
    [True, False]
    """
    return not_equal(imag(x if is_value(x) else asarray(x)), 0)


@with_kernel(1)
def isreal(x: ArrayLike) -> Array:
    """Return True where elements have no imaginary part.

    Args:
        x: array or number.

    Returns:
        A boolean array of its shape.

    >>> fnp.isreal(fnp.asarray([1 + 1j, 1])).tolist()
    [False, True]
    """
    return equal(imag(x if is_value(x) else asarray(x)), 0)


def iterable(y: object) -> bool:
    """Return True if an object can be iterated over; an array of rank 0 cannot.

    Args:
        y: any object.

    Returns:
        True or False.

    >>> fnp.iterable([1, 2]), fnp.iterable(fnp.asarray(1))
    (True, False)
    """
    try:
        iter(y)  # pyright: ignore[reportCallIssue, reportArgumentType]
    except (TypeError, ShapeError):
        return False
    return True
