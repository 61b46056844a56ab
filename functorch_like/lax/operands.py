"""Conversion of operands for primitives: numbers, sizes and axes, and the makers of functions in `lax`.

A *number* is a Python or NumPy scalar, or a weakly typed array of rank 0. It is converted to the dtype of the other
operands, if that is of the same or a higher kind (bool < int < float < complex). No other operand is converted.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes, source_info
from functorch_like.core import INT32, ArrayImpl, Tracer, argument_aval, as_argument, aval_of, state, transform_stack
from functorch_like.errors import (
    ArgumentError,
    AxisError,
    ConcretizationError,
    DtypeError,
    FtError,
    NumberError,
    ShapeError,
)
from functorch_like.primitives import structural
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, Binary, Unary

PYTHON = frozenset({bool, int, float, complex})
_ORDER = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


def error(cls: type[FtError], reason: str, fix: str) -> FtError:
    """Return an error of a user-level function, with the user's line and the current transformations."""
    return cls(reason, fix=fix, chain=transform_stack(state.trace), at=str(source_info.user_line(state.source) or ""))


# ---------------------------------------------------------------------------------------------------------- numbers
def host(x: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """Convert a Python or NumPy scalar to a dtype.

    Raises:
        DtypeError: where the dtype is of a lower kind, such as integers for a float.
        NumberError: for an int that the dtype does not hold.
    """
    array = np.asarray(x)
    kind = lambda d: 2 if dtypes.is_float(d) else 1 if dtypes.is_integer(d) else _ORDER.get(d.kind, 4)
    if kind(array.dtype) > kind(dtype) and type(x) is not int:
        raise error(
            DtypeError,
            f"{x!r} is not of {dtype.name}, the dtype of the other operand",
            "convert one of the two explicitly",
        )
    if dtypes.is_integer(dtype):
        low, high = dtypes.iinfo(dtype).min, dtypes.iinfo(dtype).max
        if not int(low) <= x <= int(high):
            raise error(
                NumberError, f"{x} is out of bounds for {dtype.name}", "convert the array to a wider dtype first"
            )
    with np.errstate(all="ignore"):
        return array.astype(dtype)


def value(x: Any) -> Any:
    """Return `x` as an operand of primitives: a Python number becomes a (weak) NumPy scalar of its own dtype."""
    x = as_argument(x)
    if type(x) is ArrayImpl or isinstance(x, (Tracer, np.ndarray)):
        return x
    return np.asarray(x, aval_of(x).dtype)[()]


def _is_number(x: Any, aval: Any) -> bool:
    return (
        type(x) in PYTHON
        or isinstance(x, (np.generic, bool, int, float, complex))
        or (aval.weak_type and not aval.shape)
    )


def match(*xs: Any) -> list[Any]:
    """Return operands, with numbers in the dtype and scalars in the shape of the others."""
    avals = [argument_aval(x) for x in xs]
    numbers = [_is_number(x, a) for x, a in zip(xs, avals, strict=True)]
    strong = [a.dtype for a, is_number in zip(avals, numbers, strict=True) if not is_number]
    dtype = strong[0] if strong else dtypes.promote(*avals)[0]
    shape = max((a.shape for a in avals), key=len)
    result: list[Any] = []
    for x, aval, is_number in zip(xs, avals, numbers, strict=True):
        if is_number:
            x = _in_dtype(x, aval, dtype)
        if not aval.shape and shape:
            x = structural.broadcast_in_dim(x, shape=shape, broadcast_dimensions=())
        result.append(x)
    return result


def _repeated(x: Any, y: Any) -> list[Any]:
    """Repeat two operands of one rank along the axes in which one has size 1."""
    a, b = aval_of(x).shape, aval_of(y).shape
    if a == b or len(a) != len(b) or any(m != n and 1 not in (m, n) for m, n in zip(a, b, strict=True)):
        return [x, y]
    shape, axes = tuple(n if m == 1 else m for m, n in zip(a, b, strict=True)), tuple(range(len(a)))
    return [
        v if aval_of(v).shape == shape else structural.broadcast_in_dim(v, shape=shape, broadcast_dimensions=axes)
        for v in (x, y)
    ]


def _in_dtype(x: Any, aval: Any, dtype: np.dtype[Any]) -> Any:
    if type(x) is not ArrayImpl and not isinstance(x, Tracer):
        made = host(x, dtype)
        return made[()] if aval.weak_type else made  # a NumPy scalar is weak, an array of rank 0 is not
    if aval.dtype == dtype:
        return x
    return structural.convert_element_type(x, new_dtype=dtype, weak_type=aval.weak_type)


def checked(*xs: Any) -> tuple[Any, ...]:
    """Return arguments for an `eager_jit` function: scalars in a form that C++ neither narrows nor widens."""
    arrays = [argument_aval(x) for x in xs if type(x) not in PYTHON]
    dtype = next((a.dtype for a in arrays if not a.weak_type), None) or (arrays[0].dtype if arrays else None)
    return tuple(_scalar(x, dtype) if type(x) in PYTHON else x for x in xs)


def _scalar(x: Any, dtype: Any) -> Any:
    if type(x) is float and (dtype or dtypes.default_float()) == dtypes.float32:
        return x
    if type(x) is int and dtype in (None, dtypes.int32) and INT32[0] <= x <= INT32[1]:
        return x
    if dtype is None:
        return x if type(x) is bool else aval_of(x).dtype.type(x)
    made = host(x, dtype)
    if dtype in (dtypes.float64, dtypes.complex128) or dtype.kind in "iub":
        return made[()]
    return x if type(x) is not int else float(x)  # the compiled program converts a Python float to narrower floats


# ------------------------------------------------------------------------------------------------- sizes and axes
def ints(values: Any, what: str) -> tuple[int, ...]:
    """Return a sequence of ints, or one int, as a tuple.

    Raises:
        ConcretizationError: for traced values.
        ArgumentError: for values that are not ints.
    """
    if type(values) is tuple and all(type(v) is int for v in values):
        return values
    try:
        several = hasattr(values, "__iter__") and getattr(values, "ndim", 1) and not isinstance(values, (dict, set))
        each: Any = values if several else (values,)
        return tuple(operator.index(v) for v in each)
    except (TypeError, FtError) as e:
        traced = isinstance(values, Tracer) or (
            isinstance(values, (list, tuple)) and any(isinstance(v, Tracer) for v in values)
        )
        raise error(
            ConcretizationError if traced else ArgumentError,
            f"{what}={values!r} must be ints",
            "sizes are fixed when a function is traced: use x.shape, or static_argnums"
            if traced
            else "give an int, or a tuple of ints",
        ) from e


def one_int(x: Any, what: str) -> int:
    """Return one int, as `ints` reads it.

    Raises:
        ArgumentError: for none, or several.
    """
    values = ints(x, what)
    if len(values) != 1:
        raise error(ArgumentError, f"{what}={x!r} must be one int", "give an int")
    return values[0]


def axis_of(axis: Any, ndim: int, what: str = "axis") -> int:
    """Return a dimension counted from 0; negative ones count from the end.

    Raises:
        AxisError: where there is no such dimension.
    """
    at = one_int(axis, what)
    if not -ndim <= at < ndim:
        raise error(
            AxisError, f"{what}={at} is not a dimension of an array of rank {ndim}", f"use {-ndim} to {ndim - 1}"
        )
    return at + ndim if at < 0 else at


def axes_of(axes: Any, ndim: int, what: str = "axes") -> tuple[int, ...]:
    """Return dimensions counted from 0, sorted.

    Raises:
        ShapeError: where a dimension does not exist, or is named twice.
    """
    result = sorted(axis_of(a, ndim, what) for a in ints(axes, what))
    if len(set(result)) != len(result):
        raise error(ShapeError, f"{what}={tuple(axes)} names a dimension twice", "name each once")
    return tuple(result)


def same_rank(values: Sequence[Any], ndim: int, what: str) -> tuple[Any, ...]:
    """Return a tuple with one entry for each dimension.

    Raises:
        ShapeError: where there are more or fewer.
    """
    if len(values) != ndim:
        raise error(
            ShapeError, f"{what}={tuple(values)} has {len(values)} entries for {ndim} dimensions", f"give {ndim}"
        )
    return tuple(values)


# ------------------------------------------------------------------------------------------------------------ makers
_DOC = """{summary}

    Args:
{args}

    Returns:
        An array of their shape{gives}.

    Raises:
        ShapeError: where the shapes differ; only scalars are broadcast.
        DtypeError: where the dtypes differ, or the operation does not support them.

    >>> {example}
    {shows}
    """


def _named(function: Any, name: str, summary: str, names: Sequence[str], example: str, gives: str) -> Any:
    call, _, shows = example.partition(" = ")
    args = "\n".join(f"        {n}: array or number." for n in names)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = _DOC.format(summary=summary, args=args, gives=gives, example=call, shows=shows)
    return function


def unary(name: str, primitive: Callable[[Any], Any], summary: str, example: str, gives: str = "") -> Unary:
    """Make a function of one array or number."""

    def body(x: Any) -> Any:
        return primitive(value(x))

    body.__name__ = name
    fast = eager_jit(ints=True, checked=True)(body)

    def function(x: ArrayLike) -> Array:
        if type(x) is ArrayImpl:
            return fast(x)
        return primitive(x) if isinstance(x, Tracer) else fast(*checked(x))

    return _named(function, name, summary, ("x",), example, gives)


def binary(name: str, primitive: Callable[[Any, Any], Any], summary: str, example: str, gives: str = "") -> Binary:
    """Make a function of two arrays of one shape and dtype; a number takes those of the other operand."""

    def body(x: Any, y: Any) -> Any:
        if type(x) in PYTHON or type(y) in PYTHON or aval_of(x) is not aval_of(y):
            x, y = _repeated(*match(x, y))
        return primitive(x, y)

    body.__name__ = name
    fast = eager_jit(ints=True, checked=True)(body)

    def function(x: ArrayLike, y: ArrayLike) -> Array:
        if type(x) is ArrayImpl and type(y) is ArrayImpl:
            return fast(x, y)
        if isinstance(x, Tracer) or isinstance(y, Tracer):
            return body(x, y)
        return fast(*checked(x, y))

    return _named(function, name, summary, ("x", "y"), example, gives)


def held_refs() -> list[Any]:
    """Return the Refs whose values the function that is being staged holds, as `ref.captured.held_here`."""
    if not getattr(state.trace, "cells", None):
        return []
    from functorch_like.ref.captured import held_here  # few functions have Refs

    return held_here()
