"""Actions that run when a module of another library is imported. The library itself is not imported for that."""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

Action = Callable[[types.ModuleType], object]
#: By name of the module, the action that will run at its import.
_WAITING: dict[str, Action | tuple[str, str]] = {}


def on_import(name: str, action: Action | tuple[str, str]) -> None:
    """Call `action(module)` once: now if the module is loaded, otherwise right after its import.

    An action may be a pair of names, of a module and a function in it, which is imported when it is called.

    >>> seen = []
    >>> on_import("sys", seen.append)
    >>> seen[0].__name__
    'sys'
    """
    _WAITING[name] = action
    module = sys.modules.get(name)
    if module is not None:
        _act(module)
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())  # pyright: ignore[reportArgumentType]


def _act(module: types.ModuleType) -> None:
    action = _WAITING.pop(module.__name__, None)
    if isinstance(action, tuple):
        home, function = action
        action = getattr(importlib.import_module(home), function)
    if action is not None:
        action(module)


class _Loader:
    """A module's own loader, and the action after it.

    Neither this class nor `_Finder` derives from those of `importlib.abc`, whose import takes milliseconds.
    """

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def __getattr__(self, name: str) -> Any:  # `get_source`, `get_code` and others, which tools read
        if name == "loader":  # copy and pickle make instances without attributes
            raise AttributeError(name)
        return getattr(self.loader, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        module.__loader__ = self.loader
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        _act(module)  # not in `find_spec`: a spec may be looked for and never be loaded


class _Finder:
    """Finder that wraps the loaders of modules with actions. For other modules it costs one dictionary lookup."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in _WAITING:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)  # pyright: ignore[reportAttributeAccessIssue]
        return spec
