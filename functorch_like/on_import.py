"""Actions when a module of another library is imported, at whatever time; the library itself is not imported here."""

from __future__ import annotations

import importlib.machinery
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

Action = Callable[[types.ModuleType], object]
#: By module, what is still to be done when it is imported.
_WAITING: dict[str, Action] = {}


def on_import(name: str, action: Action) -> None:
    """Call `action(module)` once: now where the module is loaded, otherwise right after its import.

    >>> seen = []
    >>> on_import("sys", seen.append)
    >>> seen[0].__name__
    'sys'
    """
    module = sys.modules.get(name)
    if module is not None:
        action(module)
        return
    _WAITING[name] = action
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())  # pyright: ignore[reportArgumentType]


class _Loader:
    """A module's own loader, and the action after it.

    Neither this class nor the next derives from those of `importlib.abc`: importing that takes milliseconds.
    """

    def __init__(self, loader: Any, action: Action) -> None:
        self.loader, self.action = loader, action

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        module.__loader__ = self.loader
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        self.action(module)


class _Finder:
    """Wraps the loaders of the modules that are waited for, each once."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        action = _WAITING.pop(fullname, None)
        if action is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, action)  # pyright: ignore[reportAttributeAccessIssue]
        return spec
