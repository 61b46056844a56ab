"""Operations over arrays and values of hi types: the primitive that applies them, tangents, sums of cotangents."""

from __future__ import annotations

from typing import Any

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.errors import UnsupportedError
from functorch_like.jax_alias.modules.hi_types import HiType, Types
from functorch_like.jax_alias.modules.user_primitives import (
    AxisData,
    Primitive,
    Zero,
    fancy_primitive_batchers,
    primitive_jvps,
    primitive_transposes,
)

call_hi_primitive_p = Primitive("call_hi_primitive")
call_hi_primitive_p.multiple_results = True


class Operation:
    """An operation for given types of arguments, with its rules over their parts.

    Attributes:
        ins, out: the types of the arguments, as a tuple, and of the result.
    """

    ins: Types
    out: Types

    def expand(self, *args: Any) -> Any:
        """Return the result."""
        raise NotImplementedError

    def flat(self, *parts: Any) -> list[Any]:
        """Apply the operation to the parts of its arguments; return those of its result."""
        return self.out.lower(self.expand(*self.ins.lift(parts)), f"the result of {self!r}")

    def apply(self, args: tuple[Any, ...]) -> Any:
        """Apply the primitive of the operation to arguments."""
        parts = self.ins.lower(args, f"arguments of {self!r}")
        return self.out.lift(call_hi_primitive_p.bind(*parts, _prim=self))

    def jvp_of_parts(self, primals: Any, tangents: Any) -> tuple[Any, Any]:
        """Return the parts of the result, and their tangents."""
        raise NotImplementedError

    def batch_of_parts(self, axis: AxisData, args: Any, dims: Any) -> tuple[Any, Any]:
        """Return the parts of the batched result, and their mapped axes."""
        raise self.lacks("vmap", "`batch` or `batch_dim_rule`")

    def transpose_of_parts(self, cts: Any, args: Any) -> list[Any]:
        """Return the cotangents of the parts of the arguments; None for those that are known."""
        raise self.lacks("a transpose", "`transpose`")

    def lacks(self, what: str, methods: str) -> UnsupportedError:
        """Return the error for a missing rule."""
        return UnsupportedError(f"{self!r} has no rule for {what}", fix=f"define {methods} in its class")


call_hi_primitive_p.def_impl(lambda *parts, _prim: _prim.flat(*parts))
call_hi_primitive_p.def_abstract_eval(lambda *avals, _prim: _prim.out.parts)
primitive_jvps[call_hi_primitive_p] = lambda primals, tangents, *, _prim: _prim.jvp_of_parts(primals, tangents)
primitive_transposes[call_hi_primitive_p] = lambda cts, *args, _prim: _prim.transpose_of_parts(cts, args)
fancy_primitive_batchers[call_hi_primitive_p] = lambda axis, args, dims, *, _prim: _prim.batch_of_parts(
    axis, args, dims
)


# ---------------------------------------------------------------------------------------------------------- tangents
def moves(tangent: Any) -> bool:
    """Return True for a tangent that is not known to be zero."""
    return not isinstance(tangent, Zero)


def _check_tangents(ty: Any) -> None:
    """Raise UnsupportedError for a type whose tangents have other parts than its values."""
    if not isinstance(ty, HiType):
        return
    pairs = zip(ty.lo_ty(), ty.to_tangent_aval().lo_ty(), strict=False)
    alike = all(not dtypes.is_inexact(a.dtype) or (a.shape, a.dtype) == (t.shape, t.dtype) for a, t in pairs)
    if not alike or len(ty.lo_ty()) != len(ty.to_tangent_aval().lo_ty()):
        raise UnsupportedError(
            f"tangents of {ty!r} have other parts than its values", fix="give them a part for each part of the value"
        )


def tangent_of(ty: Any, parts: list[Any]) -> Any:
    """Return the tangent of an argument from the tangents of its parts; zeros are arrays, but for integers."""
    _check_tangents(ty)
    if isinstance(ty, HiType):
        return ty.to_tangent_aval().raise_val(*map(filled, parts))
    (part,) = parts
    return part if moves(part) or not dtypes.is_inexact(ty.dtype) else part.instantiate()


def filled(part: Any) -> Any:
    """Return the tangent of a part as an array."""
    return part if moves(part) else fnp.zeros(part.aval.shape, part.aval.dtype)


def parts_of_tangent(ty: Any, tangent: Any) -> list[Any]:
    """Return the tangents of the parts; zeros for those of integers."""
    if isinstance(tangent, Zero) or tangent is None:
        return [Zero(aval) for aval in Types(ty).parts]
    if not isinstance(ty, HiType):
        return [tangent if dtypes.is_inexact(ty.dtype) else Zero(ty)]
    _check_tangents(ty)
    parts = ty.to_tangent_aval().lower_val(tangent)
    return [p if dtypes.is_inexact(a.dtype) else Zero(a) for p, a in zip(parts, ty.lo_ty(), strict=True)]


def tangent_parts(types: Types, tangents: Any) -> list[Any]:
    """Return the tangents of all parts of values of given types."""
    each = types.structure.flatten_up_to(tangents)
    return [part for ty, t in zip(types.leaves, each, strict=True) for part in parts_of_tangent(ty, t)]


class Accumulator:
    """The sum of cotangents of one argument, to which rules add.

    Attributes:
        aval: the argument's type.
    """

    def __init__(self, aval: Any) -> None:
        self.aval = aval
        self._parts: list[Any] | None = None

    def accum(self, ct: Any) -> None:
        """Add a cotangent; None and zeros count as nothing."""
        if ct is None or isinstance(ct, Zero):
            return
        parts = parts_of_tangent(self.aval, ct)
        old = self._parts
        self._parts = parts if old is None else [a if not moves(b) else a + b for a, b in zip(old, parts, strict=True)]

    def freeze(self) -> Any:
        """Return the sum; a `Zero` if nothing was added."""
        return Zero(self.aval) if self._parts is None else tangent_of(self.aval, self._parts)

    def parts(self) -> list[Any]:
        """Return the sums of the parts."""
        return [Zero(aval) for aval in Types(self.aval).parts] if self._parts is None else self._parts
