"""The import finder that provides modules under JAX's names."""

from __future__ import annotations

import importlib
import importlib.machinery
import os
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from functorch_like import dtypes
from functorch_like.backends import promotion
from functorch_like.backends import random as random_settings
from functorch_like.backends.validators import parse_boolean
from functorch_like.backends.xla import jax_import_stubs
from functorch_like.backends.xla.configuration import programs_on_mesh, switched_on
from functorch_like.core import LENIENT_POSITIONS, Tracer
from functorch_like.jax_alias import callers, missing, options
from functorch_like.jax_alias.names import JAXLIB, MODULES, PRIVATE
from functorch_like.numpy import scalar_types

_PACKAGE = "functorch_like"


#: The dictionary of a module, as it is now.
_namespace: Any = vars(ModuleType)["__dict__"].__get__


class AliasModule(ModuleType):
    """A module under one of JAX's names; an attribute is looked up at its first use, and cached."""

    def __init__(self, name: str, sources: tuple[str, ...]) -> None:
        super().__init__(name, f"{_PACKAGE} under the name of {name}.")
        _namespace(self).update(__path__=[], __backend__=_PACKAGE, _sources=sources)

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":  # of `from jax.numpy import *`
            return dir(self)
        if name.startswith("__") and name.endswith("__") and name not in ("__version__", "__version_info__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = _look_up(self.__name__, _namespace(self)["_sources"], name)
        if not missing.is_stand_in(value):
            _namespace(self)[name] = value
        return value

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """The module's dictionary, with all public names: libraries go through it to wrap every function."""
        for name in dir(self):
            getattr(self, name)
        return _namespace(self)

    def __dir__(self) -> list[str]:
        prefix = self.__name__ + "."
        names = {n[len(prefix) :] for n in MODULES if n.startswith(prefix) and "." not in n[len(prefix) :]}
        for source in self._sources:
            module = _source(source)
            names.update(n for n in dir(module) if not n.startswith("_") and not _is_module(getattr(module, n, None)))
        return sorted(names - {"annotations"})

    def __repr__(self) -> str:
        return f"<module {self.__name__!r} of {_PACKAGE}>"


_NOTHING: Any = object()


def _is_module(value: Any) -> bool:
    return isinstance(value, ModuleType)


def _source(name: str) -> ModuleType:
    """Return a source module of the table: ".x" is the alias's own, "x" the package's, "" the package itself."""
    if name.startswith("."):
        name = "jax_alias" + name
    return importlib.import_module(f"{_PACKAGE}.{name}" if name else _PACKAGE)


def _look_up(module: str, sources: tuple[str, ...], name: str) -> Any:
    full = f"{module}.{name}"
    if full in MODULES or full in _private_modules():
        return importlib.import_module(full)
    if full in PRIVATE:
        return getattr(importlib.import_module(PRIVATE[full].public), name)
    for source in sources:
        value = _defined(_source(source), name)
        if value is not _NOTHING and _is_given(source, name, value):
            return options.adapted(module, name, value)
    stand_in = missing.absent(full)
    # Libraries register rules for primitives by the dozen, and check that these are primitives.
    return _source(".modules.user_primitives").MissingPrimitive(full) if name.endswith("_p") else stand_in


def _defined(source: ModuleType, name: str) -> Any:
    """Return an attribute of a source; `_NOTHING` if there is none, also where its error would name a similar one."""
    try:
        return getattr(source, name, _NOTHING)
    except ImportError as error:  # of `public_names.missing`, in an import statement
        if error.name != source.__name__ or error.path is not None:
            raise
        return _NOTHING


def _is_given(source: str, name: str, value: Any) -> bool:
    """Return True if a source provides a name: not a private one, and a module only if the alias lists it."""
    if _is_module(value):
        return name in getattr(_source(source), "__all__", ()) and source.startswith(".")
    return not name.startswith("_") or name in (
        "__version__",
        "__version_info__",
        "__backend__",
        "_ComputableMask",
        "_backends",
        "_einsum",
        "_registry",
    )


def _private_modules() -> set[str]:
    """Return the modules that hold a name of `PRIVATE` or a private module of `MODULES`."""
    if not _PRIVATE_MODULES:
        for name in (*PRIVATE, *(name for name in MODULES if name.startswith("jax._src."))):
            while "." in name:
                name = name.rpartition(".")[0]
                _PRIVATE_MODULES.add(name)
    return _PRIVATE_MODULES


_PRIVATE_MODULES: set[str] = set()


class Distribution(metadata.Distribution):
    """Metadata of the distribution "jax": its name, and the version that `jax.__version__` gives."""

    def read_text(self, filename: str) -> str | None:
        """Return the text of the metadata; there are no other files."""
        version = _source(".modules.root").__version__
        return f"Metadata-Version: 2.1\nName: jax\nVersion: {version}\n" if filename == "METADATA" else None

    def locate_file(self, path: str | os.PathLike[str]) -> Any:
        """Return the path of a file in the folder of the alias."""
        return Path(__file__).parent / path


class AliasFinder:
    """Finder of `jax` and its submodules."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Return a spec for a name of JAX, None for any other.

        While another module is imported, an inert module stands for a missing one, unless the failure is caught.
        """
        if name != "jax" and not name.startswith("jax."):
            return None
        if name not in MODULES and name not in _private_modules():
            asking = callers.caller()
            missing.ASKED.setdefault(name, set()).add(asking.where)
            if not (asking.importing and asking.tolerant):
                return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def find_distributions(self, context: metadata.DistributionFinder.Context) -> Iterator[Distribution]:
        """Yield the distribution "jax", of which libraries read the version."""
        if context.name == "jax":
            yield Distribution()

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Make the module."""
        return AliasModule(spec.name, MODULES.get(spec.name, ()))

    def exec_module(self, module: ModuleType) -> None:
        """Put a module of jaxlib in its place. Do nothing for others: names are looked up when they are used."""
        name = module.__name__
        if name in JAXLIB:
            from functorch_like.backends.xla import mlir_rules  # brings MLIR with it

            sys.modules[name] = mlir_rules.jaxlib_module(JAXLIB[name])


def is_installed() -> bool:
    """Return True if `import jax` gives this package."""
    return any(isinstance(finder, AliasFinder) for finder in sys.meta_path)


def install() -> None:
    """Make `import jax` import this package, in this process from now on. Call it before any import of JAX.

    Raises:
        ImportError: at the import of this package, if JAX itself was imported before.

    Example:
        >>> install()  # doctest: +SKIP
        >>> import jax  # doctest: +SKIP
        >>> jax.__backend__  # doctest: +SKIP
        'functorch_like'
    """
    if is_installed():
        return
    sys.meta_path.insert(0, AliasFinder())  # type: ignore[arg-type]
    _source(".modules.sharding").attach()
    _source(".modules.attributes").attach()
    _source(".modules.arrays").name_classes()
    Tracer.__hash__ = None  # type: ignore[assignment]  # libraries test for collections.abc.Hashable; JAX's are not
    scalar_types.ScalarType.__hash__ = scalar_types.hash_of_type  # type: ignore[method-assign]
    promotion.widening = "allow"  # programs for JAX freely mix in NumPy's float64 arrays
    random_settings.adopt_jax(parse_boolean(os.environ.get("JAX_THREEFRY_PARTITIONABLE") or "1"))
    dtypes.STRONG_SCALARS.set_global(True)
    LENIENT_POSITIONS.set_global(True)
    programs_on_mesh.set_global(True)
    if switched_on("JAX_ENABLE_X64"):
        dtypes.set_default_dtype("float64")
        dtypes.set_default_dtype("int64")
    dtypes._NARROW.set_global(dtypes.default_float() != dtypes.float64)  # and expect these to count as float32
    for name, contents in jax_import_stubs.hand_over().items():
        _namespace(importlib.import_module(name)).update(contents)
