"""Names of a package that are imported at their first use, so that the package is imported in less time.

>>> import functorch_like.numpy as fnp
>>> "nanmean" in dir(fnp), fnp.nanmean.__module__
(True, 'functorch_like.numpy')
"""

from __future__ import annotations

import builtins
import importlib
import sys
import threading
import types
from typing import Any, NamedTuple

from functorch_like import public_names
from functorch_like.calling import api_boundary
from functorch_like.frames import without_frames


class _Name(NamedTuple):
    """A name in a module that has not been imported."""

    module: str
    name: str


class _Module:
    """The result of an import statement in a block: every name is in it."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> _Name:
        return _Name(self._module, name)


class Package(types.ModuleType):
    """The class of modules with lazy names."""

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, types.ModuleType):  # the import system does this at the import of a submodule
            value = _TABLES[self.__name__].arrived(name, value)
        super().__setattr__(name, value)

    def __reduce__(self) -> Any:  # as cloudpickle does with modules of the exact type
        return importlib.import_module, (self.__name__,)


class _Table:
    """The lazy names of one package."""

    def __init__(self, package: str) -> None:
        self.module = sys.modules[package]
        self.package, self.namespace = package, vars(self.module)
        self.names: dict[str, _Name] = {}  # of functions and classes
        self.submodules: dict[str, bool] = {}  # and True where their functions become boundaries
        self.module.__class__ = Package
        self.namespace["__getattr__"], self.namespace["__dir__"] = self.get, self.listing

    def add(self, name: str, origin: _Name, wrap: bool) -> None:
        """Register the name that a statement has bound; bind it to the submodule if that was imported before."""
        if origin.module != self.package:
            self.names[name] = origin
            return
        self.submodules[name] = wrap
        imported = sys.modules.get(f"{self.package}.{name}")
        if imported is not None:
            setattr(self.module, name, imported)

    def arrived(self, name: str, module: types.ModuleType) -> Any:
        """Return the package's attribute of the name of a submodule that has now been imported."""
        if name in self.submodules:
            public_names.attach(module)
            if self.submodules[name]:
                api_boundary.wrap_public_functions(module)
        origin = self.names.get(name)
        if origin is not None and origin.module == module.__name__:  # the function keeps the name they share
            return api_boundary.wrap_public_function(getattr(module, origin.name), self.package, name)
        return module

    @without_frames
    def get(self, name: str) -> Any:
        """The package's `__getattr__`."""
        if name in self.submodules:
            value: Any = importlib.import_module(f"{self.package}.{name}")
        elif name in self.names:
            module, attribute = self.names[name]
            value = api_boundary.wrap_public_function(
                getattr(importlib.import_module(module), attribute), self.package, name
            )
        elif name == "__all__":
            return self.listing()
        else:
            raise public_names.missing(self.module, name)
        # All threads must get the same object: pickle and comparisons by `is` rely on it.
        return self.namespace.setdefault(name, value)

    def listing(self) -> list[str]:
        """The package's `__dir__`."""
        lazy = (name for name in (*self.names, *self.submodules) if not name.startswith("_"))
        return sorted({*public_names.defined(self.module), *lazy})


_TABLES: dict[str, _Table] = {}


class block:
    """A `with` block in a package's `__init__`, whose imports are made when their names are first used.

    Type checkers and editors see the statements as they stand. Functions are wrapped, as
    `api_boundary.wrap_public_functions` wraps those that are imported at once; so are those of submodules, which a
    block imports from the package itself.

    Args:
        package: the `__name__` of the package.
        wrap: False for submodules whose functions are wrapped already, or must not be.

    >>> import functorch_like
    >>> with block("functorch_like"):  # doctest: +SKIP
    ...     from functorch_like import lax as lax
    ...     from functorch_like.transforms.jacobians import hessian as hessian
    """

    _lock = threading.Lock()

    def __init__(self, package: str, *, wrap: bool = True) -> None:
        self._package, self._wrap, self._namespace = package, wrap, vars(sys.modules[package])

    def __enter__(self) -> None:
        self._lock.acquire()
        self._import = builtins.__import__
        builtins.__import__ = self._defer

    def _defer(self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        if globals is self._namespace:
            return _Module(name)
        return self._import(name, globals, locals, fromlist, level)  # of another thread

    def __exit__(self, *error: object) -> None:
        builtins.__import__ = self._import
        self._lock.release()
        bound = [(name, value) for name, value in self._namespace.items() if type(value) is _Name]
        for name, _ in bound:
            del self._namespace[name]
        table = _TABLES.get(self._package)
        if table is None:
            table = _TABLES[self._package] = _Table(self._package)
        for name, origin in bound:
            table.add(name, origin, self._wrap)
