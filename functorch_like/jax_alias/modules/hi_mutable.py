"""Values of mutable hi types: objects of a library whose parts are held by Refs.

A jaxpr holds no such objects. Each operation gets a copy of the object, with the values that the Refs have in the
current trace, and writes back the parts that changed. So transformations treat an object as they treat its Refs.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from functorch_like.core import EVALUATE, argument_aval, aval_of, state
from functorch_like.errors import ArgumentError, UnsupportedError
from functorch_like.jax_alias.modules import hi_types
from functorch_like.random.typed_keys import KeyArray, KeyAval, is_keys
from functorch_like.ref.cells import as_held
from functorch_like.ref.reference import Ref
from functorch_like.ref.views import fits

if TYPE_CHECKING:
    from functorch_like.jax_alias.modules.hi_primitives import HiPrimitive


class AvalQDD:
    """The type of a new mutable value, with its first state.

    Args:
        aval: the type.
        qdd: the part of the type that operations may change.
    """

    __slots__ = ("aval", "qdd")
    is_high = has_qdd = True

    def __init__(self, aval: Any, qdd: Any) -> None:
        self.aval, self.qdd = aval, qdd


class MutableHiType:
    """Base of types of values that operations change in place.

    A subclass defines `lo_ty_qdd`, `new_from_loval`, `read_loval` and `update_from_loval`. Its values have a method
    `cur_qdd`, which returns the part of the type that operations may change.
    """

    is_high = True
    has_qdd = True

    def lo_ty_qdd(self, qdd: Any) -> list[Any]:
        """Return the types of the parts of a value in a state."""
        raise hi_types.undefined(self, "lo_ty_qdd")

    def new_from_loval(self, qdd: Any, *parts: Any) -> Any:
        """Return a new value in a state, with given parts."""
        raise hi_types.undefined(self, "new_from_loval")

    def read_loval(self, qdd: Any, value: Any) -> list[Any]:
        """Return the parts of a value in a state."""
        raise hi_types.undefined(self, "read_loval")

    def update_from_loval(self, qdd: Any, value: Any, *parts: Any) -> None:
        """Bring a value to a state, with given parts."""
        raise hi_types.undefined(self, "update_from_loval")

    def to_tangent_aval(self) -> Any:
        """Return the type of tangents."""
        raise hi_types.undefined(self, "to_tangent_aval")

    def to_ct_aval(self) -> Any:
        """Return the type of cotangents."""
        return self.to_tangent_aval()

    def normalize(self) -> MutableHiType:
        """Return the type."""
        return self

    def _node_of(self, value: Any) -> tuple[list[Any], Any]:
        """Return the children of a value as a node of pytrees, and what describes it."""
        return _children(value)


class Loose:
    """A part that is not a Ref, with the aval of its Ref, while an object is rebuilt from a pytree."""

    __slots__ = ("aval", "child")
    is_reference = True

    def __init__(self, child: Any, aval: Any) -> None:
        self.child, self.aval = child, aval

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the Ref."""
        return self.aval.shape


# ------------------------------------------------------------------------------------------------ reading of objects
class _Direct(threading.local):
    """A `with` block in which operations act on the objects that they are given: methods of types apply some."""

    depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *exception: object) -> None:
        self.depth -= 1


_direct = _Direct()


class _State:
    """The type and state of an object, and its parts as they are stored in it; of typed keys, the words."""

    __slots__ = ("impls", "parts", "qdd", "ty")

    def __init__(self, value: Any) -> None:
        with _direct:
            self.ty = hi_types.TYPES[type(value)](value)
            self.qdd = value.cur_qdd()
            stored = self.ty.read_loval(self.qdd, value)
        self.impls = [part._impl if is_keys(part) else None for part in stored]
        self.parts = [part._words if is_keys(part) else part for part in stored]

    def stored(self, parts: Sequence[Any]) -> list[Any]:
        """Return parts as the object stores them, with keys of words."""
        return [x if impl is None else KeyArray(x, impl) for x, impl in zip(parts, self.impls, strict=True)]

    def copy(self, parts: Sequence[Any]) -> Any:
        """Return another object with other parts."""
        with _direct:
            return self.ty.new_from_loval(self.qdd, *self.stored(parts))


def is_mutable(value: Any) -> bool:
    """Return True for a value of a registered class whose type is mutable."""
    return type(value) in hi_types.TYPES and isinstance(hi_types.typeof(value), MutableHiType)


def current_state(value: Any) -> Any:
    """Return the part of the type of a mutable value that operations may change: `jax.experimental.cur_qdd`.

    Raises:
        ArgumentError: for a value of another type.
    """
    if type(value) not in hi_types.TYPES or not hasattr(value, "cur_qdd"):
        raise ArgumentError(
            f"cur_qdd takes a value of a mutable hi type, got {value!r:.60} of type {type(value).__name__}",
            fix="give an object whose class hijax.register_hitype registered with a MutableHiType",
        )
    if _direct.depth:
        return value.cur_qdd()
    inside = state_with_refs(value)
    with _direct:
        return inside.copy([ref.read() for ref in inside.parts]).cur_qdd()


# -------------------------------------------------------------------------------------------------------------- Refs
class PartRef(Ref):
    """A Ref that was made for a part of an object.

    Attributes:
        home: the trace in which it was made; there, the object may get other parts.
    """

    __slots__ = ("home",)

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.home = state.trace


def _store(value: Any, inside: _State, parts: Sequence[Any]) -> None:
    """Put Refs that hold the parts into an object."""
    refs = [part if isinstance(part, Ref) else PartRef(as_held(part, argument_aval(part).dtype)) for part in parts]
    with _direct:
        inside.ty.update_from_loval(inside.qdd, value, *inside.stored(refs))


def _at_home(inside: _State) -> bool:
    """Return True if the object was made in the current trace.

    An object without parts counts as made outside of all traces.
    """
    if not inside.parts:
        return state.trace is EVALUATE
    return all(isinstance(ref, PartRef) and ref.home is state.trace for ref in inside.parts)


def state_with_refs(value: Any, inside: _State | None = None) -> _State:
    """Return the state of an object; an object that holds arrays gets Refs in their place.

    Args:
        value: the object.
        inside: its state, if that was read already.
    """
    inside = _State(value) if inside is None else inside
    if not inside.ty.has_qdd:
        return inside
    if not all(isinstance(part, Ref) for part in inside.parts):
        _store(value, inside, [part.child if isinstance(part, Loose) else part for part in inside.parts])
        inside = _State(value)
    return inside


# ----------------------------------------------------------------------------------------------------------- pytrees
def _children(value: Any) -> tuple[list[Any], _Node]:
    """Return the children of an object as a node of pytrees, its Refs or what stands for them, and its state."""
    inside = _State(value)
    if not any(isinstance(part, Loose) for part in inside.parts):
        inside = state_with_refs(value, inside)
    return [p.child if isinstance(p, Loose) else p for p in inside.parts], _Node(inside.ty, inside.qdd)


def _stored(child: Any, aval: Any) -> Any:
    """Return a child of a node as an object stores it."""
    words = aval.words if isinstance(aval, KeyAval) else aval
    held = child if isinstance(child, Ref) else Loose(child, words)
    return KeyArray(held, aval.impl) if isinstance(aval, KeyAval) else held


@dataclasses.dataclass(frozen=True)
class _Node:
    """The type and state of an object, as what describes a node of pytrees."""

    ty: Any
    qdd: Any

    def raise_val(self, *children: Any) -> Any:
        """Return the object with given children."""
        with _direct:
            avals = self.ty.lo_ty_qdd(self.qdd)
            return self.ty.new_from_loval(self.qdd, *map(_stored, children, avals))


# -------------------------------------------------------------------------------------------------------- operations
def type_of(x: Any) -> Any:
    """Return the type of an operand: of a value of hi type, a typed key, a Ref, an array or a number."""
    if type(x) in hi_types.TYPES:
        return hi_types.typeof(x)
    if is_keys(x):
        return x.dtype.aval_of_shape(x.shape)
    return x.aval if hasattr(x, "is_reference") else aval_of(x)


def makes_mutable(out: Any) -> bool:
    """Return True if the types of the results of an operation contain a mutable one."""
    return any(isinstance(ty, (AvalQDD, MutableHiType)) for ty in (out if isinstance(out, (list, tuple)) else [out]))


def apply(prim: HiPrimitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Apply an operation that takes or returns mutable values."""
    if _direct.depth:
        return prim.to_lojax(*args, **params)
    copied: dict[int, tuple[Any, _State, list[Any], Any]] = {}  # by object: one that is given twice has one copy
    for x in args:
        if id(x) in copied or not is_mutable(x):
            continue
        inside = state_with_refs(x)
        if inside.ty.has_qdd:
            before = [ref.read() for ref in inside.parts]
            copied[id(x)] = x, inside, before, inside.copy(before)
    out = prim.to_lojax(*(copied[id(x)][-1] if id(x) in copied else x for x in args), **params)
    for x, inside, before, copy in copied.values():
        _write(x, inside, before, copy)
    originals = {id(copy): x for x, _, _, copy in copied.values()}
    results = [originals.get(id(x), x) for x in (out if prim.multiple_results else [out])]
    for x in results:
        if is_mutable(x):
            state_with_refs(x)
    return results if prim.multiple_results else results[0]


def _write(value: Any, inside: _State, before: Sequence[Any], copy: Any) -> None:
    """Write the parts of a copy that an operation has changed."""
    after = _State(copy)
    if _fit(inside, after):
        for ref, old, new in zip(inside.parts, before, after.parts, strict=True):
            if new is not old:
                ref.put(as_held(new, ref.dtype))
        return
    if not _at_home(inside):
        raise UnsupportedError(
            f"{type(value).__name__} gets parts of another number, shape or dtype in {state.trace.name or 'a trace'}, "
            "outside of which it was made",
            fix="give it all of its parts, in their dtypes, before the call",
        )
    _store(value, after, after.parts)


def _fit(inside: _State, after: _State) -> bool:
    """Return True if the Refs of an object can hold the new parts, and its state is the same but for weak types."""
    if len(inside.parts) != len(after.parts):
        return False
    pairs = [
        (type_of(ref).inner_aval, argument_aval(part)) for ref, part in zip(inside.parts, after.parts, strict=True)
    ]
    if not all(held.shape == new.shape and fits(held, new) for held, new in pairs):
        return False
    with _direct:
        return after.copy(inside.parts).cur_qdd() == inside.qdd
