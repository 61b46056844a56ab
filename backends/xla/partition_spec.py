"""Partition specs: which axes of a mesh split each dimension of an array."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from functorch_like.errors import ArgumentError

Entry = Any


class _Unconstrained:
    """The entry of a dimension whose partitioning is left to the compiler."""

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> str:
        return "UNCONSTRAINED"


UNCONSTRAINED = _Unconstrained()


class PartitionSpec(tuple[Entry, ...]):
    """Mesh axes that split an array, for each of its dimensions.

    An entry is a name, a tuple of names (the first one varies slowest), None for a dimension that is not split, or
    `PartitionSpec.UNCONSTRAINED` for one that `lax.with_sharding_constraint` leaves to the compiler. Dimensions beyond
    the last entry are not split. Specs that mean the same are equal: `P("x")`, `P(("x",))` and `P("x", None)`.

    Args:
        partitions: the entries.

    Raises:
        ArgumentError: for an entry of another type, or an axis that is named twice.

    >>> from functorch_like.sharding import PartitionSpec as P
    >>> P("data", None), P("data") == P(("data",), None), P(None, ("data", "model"))
    (P('data', None), True, P(None, ('data', 'model')))
    """

    __slots__ = ()
    UNCONSTRAINED = UNCONSTRAINED

    def __new__(cls, *partitions: Entry) -> PartitionSpec:
        entries = tuple(tuple(p) if type(p) is list else p for p in partitions)
        _check(entries)
        return tuple.__new__(cls, entries)

    def canonical(self) -> tuple[Entry, ...]:
        """The entries that equal specs share: single names without a tuple, no None at the end."""
        entries = [axes if len(axes) != 1 else axes[0] for axes in _each(self)]
        entries = [None if e == () else e for e in entries]
        while entries and entries[-1] is None:
            entries.pop()
        return tuple(entries)

    def axes(self, ndim: int) -> tuple[Any, ...]:
        """Return a tuple of names for each of `ndim` dimensions; UNCONSTRAINED stays as it is."""
        result = tuple(e if e is UNCONSTRAINED else names(e) for e in self)
        return result + ((),) * (ndim - len(result))

    def mentioned(self) -> tuple[str, ...]:
        """All axes that split some dimension."""
        return tuple(name for e in self if e is not UNCONSTRAINED for name in names(e))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PartitionSpec):
            return self.canonical() == other.canonical()
        return tuple.__eq__(self, other) if isinstance(other, tuple) else NotImplemented

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __hash__(self) -> int:
        return hash(self.canonical())

    def __repr__(self) -> str:
        return f"P({', '.join(map(repr, self))})"

    def __reduce__(self) -> tuple[Any, ...]:
        return PartitionSpec, tuple(self)


def names(entry: Entry) -> tuple[str, ...]:
    """The axes of an entry."""
    return () if entry is None else entry if isinstance(entry, tuple) else (entry,)


def _each(spec: PartitionSpec) -> Iterator[Any]:
    for e in spec:
        yield (UNCONSTRAINED,) if e is UNCONSTRAINED else names(e)


def _check(entries: tuple[Entry, ...]) -> None:
    seen: set[str] = set()
    for e in entries:
        if e is UNCONSTRAINED:
            continue
        for name in names(e):
            if not isinstance(name, str):
                raise ArgumentError(
                    f"a PartitionSpec has the entry {e!r} of type {type(e).__name__}",
                    fix="use names of mesh axes, tuples of names, or None",
                )
            if name in seen:
                raise ArgumentError(
                    f"PartitionSpec{entries!r} names the axis {name!r} twice", fix="split one dimension by each axis"
                )
            seen.add(name)
