"""Names of a package that are imported when they are first asked for, so that the rest imports in less time."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from functorch_like.calling import api_boundary as boundary


def attach(
    package: str,
    functions: Mapping[str, Iterable[str]],
    modules: Iterable[str] = (),
    unsealed: Iterable[str] = (),
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """A package's `__getattr__` and `__dir__`, by which it has the names of `functions` and the submodules `modules`.

    `functions` tells which names are in which submodule. They are boundaries, as `boundary.seal` makes those that are
    there from the start. A submodule is sealed when it comes, whoever imports it, but for those in `unsealed`.

    >>> import functorch_like.numpy as fnp
    >>> "nanmean" in dir(fnp), fnp.nanmean.__module__
    (True, 'functorch_like.numpy')
    """
    home = {name: module for module, names in functions.items() for name in names}
    sealed = frozenset(modules)
    submodules = sealed.union(unsealed)
    module = sys.modules[package]
    namespace = vars(module)

    class Package(types.ModuleType):
        def __setattr__(self, name: str, value: Any) -> None:
            if isinstance(value, types.ModuleType):  # the import system does this, when somebody imports a submodule
                if name in sealed:
                    boundary.seal(value)
                elif home.get(name) == name:  # the function that is called like its module keeps its place
                    value = boundary.sealed(getattr(value, name), package, name)
            super().__setattr__(name, value)

        def __reduce__(self) -> Any:  # as cloudpickle, which knows the exact type alone, does with modules
            return importlib.import_module, (self.__name__,)

    module.__class__ = Package
    for name in home.keys() | submodules:
        if name in namespace:  # and what somebody has imported before
            setattr(module, name, namespace[name])

    def get(name: str) -> Any:
        if name in submodules:
            found = importlib.import_module(f"{package}.{name}")
        elif name in home:
            found = boundary.sealed(getattr(importlib.import_module(f"{package}.{home[name]}"), name), package, name)
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package])
        namespace[name] = found
        return found

    def listing() -> list[str]:
        return sorted({*namespace, *home, *submodules})

    return get, listing
