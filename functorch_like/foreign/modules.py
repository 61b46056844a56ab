"""Modules of other libraries that users import from this package: the ImportError names what to import instead."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

from functorch_like.public_names import remedy_of

_PACKAGE = __name__.partition(".")[0]


class _Missing:
    """The last of the finders: it is called for modules that no other one has found, and never finds any."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        parent, _, name = fullname.rpartition(".")
        if not fullname.startswith(_PACKAGE + ".") or parent not in sys.modules:
            return None
        if sys._getframe(2).f_code.co_name != "_find_and_load_unlocked":
            return None  # importlib.util.find_spec and its like, which get None
        remedy = remedy_of(sys.modules[parent], name)
        if remedy:
            error = ModuleNotFoundError(f"No module named {fullname!r}{remedy}", name=fullname)
            try:
                raise error
            finally:  # the import system drops its own frames
                error.__traceback__ = None
        return None


def install() -> None:
    """Let errors of imports below this package name the remedy, where there is one."""
    sys.meta_path.append(_Missing())  # pyright: ignore[reportArgumentType]
