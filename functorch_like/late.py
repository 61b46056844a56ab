"""Names of a package that are imported when they are first asked for, so that the rest imports in less time."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from functorch_like import boundary


def attach(
    package: str, functions: Mapping[str, Iterable[str]], modules: Iterable[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """A package's `__getattr__` and `__dir__`, by which it has the names of `functions` and the submodules `modules`.

    `functions` tells which names are in which submodule. They are boundaries, as `boundary.seal` makes those that are
    there from the start. A submodule is sealed when it comes.

    >>> import functorch_like.numpy as fnp
    >>> "nanmean" in dir(fnp), fnp.nanmean.__module__
    (True, 'functorch_like.numpy.skipping_nan')
    """
    home = {name: module for module, names in functions.items() for name in names}
    submodules = frozenset(modules)
    namespace = vars(sys.modules[package])

    def get(name: str) -> Any:
        if name in submodules:
            found = importlib.import_module(f"{package}.{name}")
            boundary.seal(found)
        elif name in home:
            found = boundary.sealed(getattr(importlib.import_module(f"{package}.{home[name]}"), name))
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package])
        namespace[name] = found
        return found

    def listing() -> list[str]:
        return sorted({*namespace, *home, *submodules})

    return get, listing
