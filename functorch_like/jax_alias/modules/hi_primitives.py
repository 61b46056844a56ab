"""`HiPrimitive`: primitives that take or return values of hi types, with rules as methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functorch_like.errors import UnsupportedError
from functorch_like.jax_alias.modules import hi_mutable
from functorch_like.jax_alias.modules.hi_operations import (
    Operation,
    parts_of_tangent,
    tangent_of,
    tangent_parts,
)
from functorch_like.jax_alias.modules.hi_types import Types
from functorch_like.jax_alias.modules.user_primitives import (
    Params,
    Primitive,
    UndefinedPrimal,
)


class HiPrimitive(Primitive):
    """Base of primitives that take or return values of hi types, with rules as methods.

    A subclass defines `abstract_eval`, which returns types and effects; `to_lojax`, which computes the result; and for
    derivatives `jvp`, and `transpose` if the primitive is linear. It is applied by `bind`.
    """

    def is_high(self, *avals: Any, **params: Any) -> bool:
        """Return True: types of arguments and result may be hi types."""
        return True

    def to_lojax(self, *args: Any, **params: Any) -> Any:
        """Return the result; by default that of `impl`."""
        return self.impl(*args, **params)

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
        """Return the result and its tangent."""
        raise UnsupportedError(f"the primitive {self.name} has no derivative", fix="define `jvp` in its class")

    def transpose(self, ct: Any, *args: Any, **params: Any) -> Sequence[Any]:
        """Return the cotangents of the arguments, which are `UndefinedPrimal` where the primitive is linear."""
        raise UnsupportedError(f"the primitive {self.name} has no transpose", fix="define `transpose` in its class")

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply the primitive."""
        types = tuple(map(hi_mutable.type_of, args))
        if any(isinstance(ty, hi_mutable.MutableHiType) for ty in types):
            return hi_mutable.apply(self, args, params)
        out, _ = self.abstract_eval(*types, **params)
        if hi_mutable.makes_mutable(out):
            return hi_mutable.apply(self, args, params)
        return _Bound(self, types, params, out).apply(args)


class _Bound(Operation):
    """A primitive over hi types with the types of its arguments and its parameters."""

    def __init__(self, prim: HiPrimitive, types: tuple[Any, ...], params: dict[str, Any], out: Any) -> None:
        self.prim, self.params = prim, params
        self.ins, self.out = Types(types), Types(list(out) if prim.multiple_results else out)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Bound):
            return False
        return (self.prim, self.ins.leaves, Params(self.params)) == (other.prim, other.ins.leaves, Params(other.params))

    def __hash__(self) -> int:
        return hash((self.prim, tuple(self.ins.leaves), Params(self.params)))

    def __repr__(self) -> str:
        return self.prim.name

    def expand(self, *args: Any) -> Any:
        out = self.prim.to_lojax(*args, **self.params)
        return list(out) if self.prim.multiple_results else out

    def jvp_of_parts(self, primals: Any, tangents: Any) -> tuple[Any, Any]:
        directions = self.ins.each(tangent_of, tangents)
        out, moved = self.prim.jvp(self.ins.lift(primals), directions, **self.params)
        if self.prim.multiple_results:
            out, moved = list(out), list(moved)
        return self.out.lower(out, f"the result of jvp of {self!r}"), tangent_parts(self.out, moved)

    def transpose_of_parts(self, cts: Any, args: Any) -> list[Any]:
        linear = lambda parts: any(isinstance(part, UndefinedPrimal) for part in parts)
        chunks = list(self.ins.chunks(args))
        given = [UndefinedPrimal(ty) if linear(chunk) else Types(ty).lift(chunk) for ty, chunk in chunks]
        back = self.prim.transpose(self.out.each(tangent_of, cts), *given, **self.params)
        pairs = zip(chunks, back, strict=True)
        return [
            p for (ty, chunk), ct in pairs for p in (parts_of_tangent(ty, ct) if linear(chunk) else [None] * len(chunk))
        ]
