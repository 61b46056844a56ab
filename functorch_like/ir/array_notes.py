"""Notes on arrays, by identity, since arrays have no hash."""

from __future__ import annotations

import weakref
from typing import Any, Generic, TypeVar

V = TypeVar("V")


class ArrayNotes(Generic[V]):
    """A note for each of some arrays; it is dropped with its array."""

    __slots__ = ("_notes",)

    def __init__(self) -> None:
        self._notes: dict[int, tuple[weakref.ref[Any], V]] = {}

    def add(self, array: Any, note: V) -> None:
        """Note something on an array, in place of an earlier note."""
        key = id(array)
        self._notes[key] = weakref.ref(array, lambda _: self._notes.pop(key, None)), note

    def get(self, array: Any) -> V | None:
        """Return the note on an array; None if there is none."""
        entry = self._notes.get(id(array))
        return entry[1] if entry is not None and entry[0]() is array else None

    def drop(self, x: Any) -> None:
        """Drop the note on an array, if it has one."""
        self._notes.pop(id(x), None)

    def __len__(self) -> int:
        return len(self._notes)
