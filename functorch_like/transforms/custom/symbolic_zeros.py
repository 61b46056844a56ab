"""Values that go in and out of rules: arguments, tangents and cotangents, and those that are zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from functorch_like import dtypes, tree
from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.core import ArrayImpl, Tracer, aval_of
from functorch_like.primitives.structural import convert_element_type, zeros


class SymbolicZero:
    """A zero that is not instantiated: rules with `symbolic_zeros=True` get it in place of tangents and cotangents.

    A rule may return it, too.

    Attributes:
        aval: the shape and dtype of the zero.
    """

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return len(self.aval.shape)

    @staticmethod
    def from_primal_value(value: Any) -> SymbolicZero:
        """The zero tangent of a value."""
        return SymbolicZero(tangent_aval(aval_of(value)))

    def __repr__(self) -> str:
        return f"SymbolicZero({self.aval!r})"


def as_array(x: Any) -> Any:
    """An argument as rules get it: numbers and NumPy arrays become arrays of the package."""
    if isinstance(x, (ArrayImpl, Tracer)):
        return x
    aval = aval_of(x)
    return convert_element_type(np.asarray(x, aval.dtype), new_dtype=aval.dtype, weak_type=aval.weak_type)


#: Dtypes that keep all digits of a Python number.
_WIDE = {float: np.float64, complex: np.complex128}


def widened(leaves: list[Any]) -> list[Any]:
    """Arguments in which Python numbers beside arrays of 64 bits keep all their digits, as they do in `jit`."""
    if not any(type(x) in _WIDE for x in leaves):
        return leaves
    if not any(a.dtype in _WIDE.values() and not a.weak_type for a in map(aval_of, leaves)):
        return leaves
    return [_WIDE[type(x)](x) if type(x) in _WIDE else x for x in leaves]


def tangent_aval(aval: ShapedArray) -> ShapedArray:
    """Return the aval of tangents and cotangents of a value."""
    return aval.strong() if dtypes.is_inexact(aval.dtype) else ShapedArray(aval.shape, dtypes.float0)


def instantiate(tangent: Any, aval: ShapedArray, symbolic: bool = False) -> Any:
    """A tangent or cotangent as rules get it, an array; `aval` is that of its primal."""
    if tangent is not None:
        return as_array(tangent) if dtypes.is_inexact(aval.dtype) else tangent
    if symbolic:
        return SymbolicZero(tangent_aval(aval))
    if not dtypes.is_inexact(aval.dtype):
        return np.zeros(aval.shape, dtypes.float0)
    return convert_element_type(zeros(aval), new_dtype=aval.dtype, weak_type=False)


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """Return the zero tangent of a pytree of values: zeros of its shapes and dtypes, float0 for integers.

    Args:
        val: arrays and numbers.
        symbolic_zeros: give a `SymbolicZero` instead.

    Returns:
        A pytree of the structure of `val`.

    >>> ft.custom_derivatives.zero_from_primal(fnp.ones(2)).tolist()
    [0.0, 0.0]
    """
    return tree.map(lambda x: instantiate(None, aval_of(x), symbolic_zeros), val)


def is_zero(x: Any) -> bool:
    """Return True if a tangent or cotangent that a rule returned is a symbolic zero, None or of dtype float0."""
    return x is None or isinstance(x, SymbolicZero) or getattr(x, "dtype", None) == dtypes.float0


def strong(x: Any, aval: ShapedArray) -> Any:
    """A tangent or cotangent as the interpreters take it: numbers as arrays of its dtype."""
    if is_zero(x):
        return None
    own = aval_of(x)
    if own.dtype == aval.dtype and not own.weak_type:
        return x
    x = x if isinstance(x, (ArrayImpl, Tracer, np.ndarray)) else np.asarray(x, aval.dtype)
    return convert_element_type(x, new_dtype=aval.dtype, weak_type=False)


def matching(treedef: Any, given: Any) -> tuple[list[Any], Any]:
    """Return the leaves of a tangent and their tree: that of the primal, if it fits once None counts as a zero leaf."""
    try:
        parts = treedef.flatten_up_to(given)
    except (ValueError, TypeError):
        return xla.flatten(given)
    fits = all(p is None or xla.flatten(p)[1] == xla.leaf_structure for p in parts)
    return (parts, treedef) if fits else xla.flatten(given)


def given_aval(x: Any, expected: ShapedArray | None, primal: ShapedArray | None) -> ShapedArray:
    """The aval of a tangent or cotangent that was returned where `expected` belongs, if that is known.

    A tangent that is a number takes the dtype of its primal, and the tangent of a number may have any dtype.
    """
    if x is None and expected is not None:
        return expected
    if isinstance(x, SymbolicZero):
        return x.aval
    if getattr(x, "dtype", None) == dtypes.float0:
        return ShapedArray(np.shape(np.asarray(x)), dtypes.float0)
    aval = aval_of(x)
    if expected is None or primal is None:
        return aval.strong()
    number = aval.weak_type or (primal.weak_type and dtypes.is_inexact(aval.dtype))
    fits = dtypes.is_inexact(expected.dtype) and dtypes.is_complex(aval.dtype) <= dtypes.is_complex(expected.dtype)
    if number and fits:
        return aval.update(dtype=expected.dtype, weak_type=False)
    return aval.strong()
