"""The part of Python's state that is in no frame: global variables, attributes of classes, of functions and of modules.

A function may count in a global variable, or in an attribute of a class. Such state is read at each guard: of all the
global names in the code of the functions at work, and of the functions, classes and modules that these name. What has
not changed since the first guard counts as one, whatever it is, since it is the same on each path.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from functorch_like import source_info

_MOST_CODES = 300
_LARGEST = 1000  # elements of containers, and bytes of arrays, that are compared
_IN_PYTHON = 1 << 9  # flag of classes that are made by `class`, and of a few others
_PLAIN = (int, float, complex, str, bytes, type(None), np.ndarray, np.generic, list, dict, tuple, set)
_FUNCTIONS = (types.FunctionType, classmethod, staticmethod, property, types.MethodType)

_Place = tuple[int, str]  # a namespace by its identity, and a name in it; for a class, no name


class GlobalState:
    """The global variables that functions may read, with their values at the first guard.

    Args:
        frames: at the first guard.
    """

    def __init__(self, frames: Iterable[types.FrameType]) -> None:
        self._seen: set[Any] = set()
        self._kept: list[Any] = []  # so that identities stay their own
        self._places: dict[_Place, Mapping[str, Any] | type] = {}
        self._first: dict[_Place, Any] = {}
        self.add(frames)

    def add(self, frames: Iterable[types.FrameType], kinds: Iterable[type] = ()) -> None:
        """Find the global names in the code of frames, and in what they name, and the attributes of classes."""
        for frame in frames:
            if source_info.is_users(frame.f_code.co_filename):
                self._code(frame.f_code, frame.f_globals)
                for value in list(frame.f_locals.values()):
                    self._value(value)
        for kind in kinds:
            self._value(kind)

    def note_first(self, read: Callable[[Any], tuple[Any, bool]]) -> None:
        """Record the values at the first guard."""
        self._first = {place: read(value) for place, value in self._values()}

    def key(self, read: Callable[[Any], tuple[Any, bool]]) -> Any:
        """Return the values that have changed since the first guard, or that are traced.

        Args:
            read: returns the key of a value, and whether traced values are in it.
        """
        changed: list[Any] = []
        for place, value in self._values():
            key, traced = read(value)
            if traced or self._first.get(place) != (key, traced):
                changed.append((place, key))
        return tuple(changed)

    def _values(self) -> Iterator[tuple[_Place, Any]]:
        for place, owner in self._places.items():
            if isinstance(owner, type):
                yield place, _data(owner)
            elif place[1] in owner:
                yield place, owner[place[1]]

    # ------------------------------------------------------------------------------------------------- what is reached
    def _code(self, code: types.CodeType, names: Mapping[str, Any]) -> None:
        if (code, id(names)) in self._seen or len(self._seen) > _MOST_CODES:
            return
        self._seen.add((code, id(names)))
        self._kept.append(names)
        for const in code.co_consts:
            if isinstance(const, types.CodeType):
                self._code(const, names)
        for name in code.co_names:
            self._name(name, names, code)

    def _name(self, name: str, names: Mapping[str, Any], code: types.CodeType) -> None:
        if name not in names:
            return
        value = names[name]
        if isinstance(value, types.ModuleType):
            if is_users_module(value) and (value, code) not in self._seen:
                self._seen.add((value, code))
                for attribute in code.co_names:
                    self._name(attribute, vars(value), code)
            return
        self._places[id(names), name] = names
        self._value(value)

    def _value(self, value: Any) -> None:
        """Go on to the code of a function, or of the methods of a class."""
        if isinstance(value, _PLAIN):
            return
        if isinstance(value, _FUNCTIONS):
            for function in (value, *(getattr(value, name, None) for name in ("__func__", "fget", "fset"))):
                if isinstance(function, types.FunctionType) and source_info.is_users(function.__code__.co_filename):
                    self._code(function.__code__, function.__globals__)
                    for cell in function.__closure__ or ():
                        if cell != types.CellType() and id(cell) not in self._seen:
                            self._seen.add(id(cell))
                            self._value(cell.cell_contents)
            return
        kind = value if isinstance(value, type) else type(value)
        for base in kind.__mro__:
            if base not in self._seen and is_users_class(base):
                self._seen.add(base)
                self._places[id(base), ""] = base
                for member in list(vars(base).values()):
                    self._value(member)


def is_users_module(module: types.ModuleType) -> bool:
    """Return True for a module in a file of the user's."""
    file = getattr(module, "__file__", None)
    return file is not None and source_info.is_users(file)


def is_users_class(kind: type) -> bool:
    """Return True for a class that a user has defined in Python."""
    if not kind.__flags__ & _IN_PYTHON:
        return False
    module = sys.modules.get(kind.__module__)
    return module is None or kind.__module__ == "__main__" or is_users_module(module)


def _data(kind: type) -> dict[str, Any]:
    """Return the attributes of a class that are no methods."""
    return {
        name: value
        for name, value in list(vars(kind).items())
        if not name.startswith("__") and not isinstance(value, (*_FUNCTIONS, types.MemberDescriptorType))
    }


def is_large(x: Any) -> bool:
    """Return True for values of global variables that are compared by identity, because they are large."""
    if isinstance(x, np.ndarray):
        return x.nbytes > _LARGEST
    return isinstance(x, (list, tuple, dict, set, frozenset)) and len(x) > _LARGEST
