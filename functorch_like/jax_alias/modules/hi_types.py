"""Types of a library's own values, of `jax.experimental.hijax`: each value stands for arrays, its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from functorch_like import tree
from functorch_like.avals import ShapedArray
from functorch_like.errors import ArgumentError, UnsupportedError

#: Functions that return the type of a value, by the value's class.
TYPES: dict[type, Callable[[Any], Any]] = {}


class HiType:
    """Base of types of immutable values, which are compared and hashed by their fields.

    A subclass defines `lo_ty`, `lower_val` and `raise_val`.
    """

    is_high = True
    has_qdd = False

    def lo_ty(self) -> list[ShapedArray]:
        """Return the avals of the parts."""
        raise undefined(self, "lo_ty")

    def lower_val(self, hi_val: Any) -> list[Any]:
        """Return the parts of a value."""
        raise undefined(self, "lower_val")

    def raise_val(self, *lo_vals: Any) -> Any:
        """Return the value with given parts."""
        raise undefined(self, "raise_val")

    def to_tangent_aval(self) -> HiType:
        """Return the type of tangents; its parts are like those of the value, as far as they are floats."""
        raise undefined(self, "to_tangent_aval")

    def to_ct_aval(self) -> HiType:
        """Return the type of cotangents."""
        return self.to_tangent_aval()

    def normalize(self) -> HiType:
        """Return the type."""
        return self

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        """Return a short text."""
        return repr(self)


class HiPspec:
    """Base of specs that split values over a mesh; values of types of a library's own are not split here."""


def undefined(ty: Any, name: str) -> UnsupportedError:
    """Return the error for a method that a class of types lacks."""
    return UnsupportedError(f"the type {type(ty).__name__} has no {name}", fix="define the method in the class")


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], Any]) -> None:
    """Register a class of values: transformations see a value as a pytree of its parts.

    Args:
        val_cls: the class.
        typeof_fn: returns the type of a value, a `HiType` or `MutableHiType`.
    """
    if val_cls not in TYPES:
        tree.register_pytree_node(val_cls, _parts, _of_parts)
    TYPES[val_cls] = typeof_fn


def _parts(value: Any) -> tuple[list[Any], Any]:
    ty = typeof(value)
    return (lower(ty, value), ty) if isinstance(ty, HiType) else ty._node_of(value)


def _of_parts(described: Any, parts: Sequence[Any]) -> Any:
    return described.raise_val(*parts)


def typeof(value: Any) -> Any:
    """Return the type of a value of a registered class."""
    return TYPES[type(value)](value)


def is_high_value(value: Any) -> bool:
    """Return True for a value of a registered class."""
    return type(value) in TYPES


def parts_of(ty: Any) -> list[ShapedArray]:
    """Return the avals of the parts of a type; an aval's only part is itself."""
    return list(ty.lo_ty()) if isinstance(ty, HiType) else [ty]


def lower(ty: Any, value: Any) -> list[Any]:
    """Return the parts of a value of a type."""
    return list(ty.lower_val(value)) if isinstance(ty, HiType) else [value]


class Types:
    """A pytree of types, each an aval or a `HiType`, as the types of arguments or of a result.

    Args:
        types: the pytree.
    """

    def __init__(self, types: Any) -> None:
        leaves, self.structure = tree.flatten(types)
        self.leaves: list[Any] = list(leaves)
        self.parts = [aval for ty in self.leaves for aval in parts_of(ty)]

    def lower(self, values: Any, what: str) -> list[Any]:
        """Return the parts of values in the structure of the types.

        Raises:
            ArgumentError: for another structure; `what` describes the values.
        """
        try:
            each = self.structure.flatten_up_to(values)
        except (ValueError, TypeError) as error:
            raise ArgumentError(f"{what} does not have the structure {self.structure}", fix=str(error)) from error
        return [part for ty, value in zip(self.leaves, each, strict=True) for part in lower(ty, value)]

    def chunks(self, parts: Sequence[Any]) -> Iterator[tuple[Any, list[Any]]]:
        """Yield each type with its share of the parts."""
        rest = iter(parts)
        for ty in self.leaves:
            yield ty, [next(rest) for _ in parts_of(ty)]

    def each(self, fun: Callable[[Any, list[Any]], Any], parts: Sequence[Any]) -> Any:
        """Return a pytree of the types' structure with `fun(type, its parts)` in place of each type."""
        return tree.unflatten(self.structure, [fun(ty, chunk) for ty, chunk in self.chunks(parts)])

    def lift(self, parts: Sequence[Any]) -> Any:
        """Return the values with given parts."""
        return self.each(lambda ty, chunk: ty.raise_val(*chunk) if isinstance(ty, HiType) else chunk[0], parts)
