"""Names of public modules: the list of `dir`, and the AttributeError for a missing name."""

from __future__ import annotations

import importlib
import opcode
import os
import sys
import types
from typing import Any, TypeVar

from functorch_like.errors import nearest
from functorch_like.foreign.names import ELSEWHERE, RENAMED
from functorch_like.frames import without_frames

#: Modules in which a missing name is looked for, in this order, each with the name that users write for it.
_SIBLINGS = (
    ("numpy", "fnp"), ("nn", "ft.nn"), ("lax", "ft.lax"), ("numpy.linalg", "fnp.linalg"), ("random", "ft.random"),
    ("scipy.special", "ft.scipy.special"), ("sharding", "ft.sharding"),
)  # fmt: skip
#: For a module of SciPy, the NumPy modules that hold functions users look for there, each with its short name.
_NUMPY_MODULES = {
    "scipy.linalg": (("numpy.linalg", "fnp.linalg"), ("numpy", "fnp")), "scipy.fft": (("numpy.fft", "fnp.fft"),),
}  # fmt: skip
#: Likeness of two names from which on one is taken for a misspelling of the other.
_LIKE = 0.65


def defined(module: types.ModuleType) -> set[str]:
    """Return the public names of a module: those of `__all__`, or else those that it defines or re-exports."""
    namespace = vars(module)
    if "__all__" in namespace:
        return set(namespace["__all__"])
    is_package = "__path__" in namespace  # a package re-exports names of its files
    return {name for name, value in namespace.copy().items() if not name.startswith("_")
            and (_reexported(value) if is_package else _own(module, value))}  # fmt: skip


def _reexported(value: Any) -> bool:
    return not isinstance(value, types.ModuleType) and getattr(value, "__module__", "") not in _TOOLS


_TOOLS = ("__future__", "typing", "collections.abc")


def _own(module: types.ModuleType, value: Any) -> bool:
    return getattr(value, "__module__", None) == module.__name__ and not isinstance(value, TypeVar)


def missing(module: types.ModuleType, name: str) -> Exception:
    """Return the error for a name that a public module does not have: an ImportError in an import statement.

    At each `from package import submodule` the import system looks for an attribute first. Users never see that error,
    so it has no text.
    """
    if _is_importing():
        return AttributeError(name=name)
    remedy = remedy_of(module, name)
    if remedy and _is_import_statement() and f"{module.__name__}.{name}" not in sys.modules:
        # Python would not show the text of an AttributeError.
        return ImportError(f"cannot import name {name!r} from {module.__name__!r}{remedy}", name=module.__name__)
    # Without `obj`: with it Python would append its own suggestion.
    return AttributeError(f"module {module.__name__!r} has no attribute {name!r}{remedy}", name=name)


def remedy_of(module: types.ModuleType, name: str) -> str:
    """Return a remedy for a missing name, beginning with a semicolon; or an empty text."""
    elsewhere = ELSEWHERE.get(module.__name__, {}).get(name)
    if elsewhere:
        return f"; {elsewhere}"
    if name.startswith("_"):  # tools look these up in every module, and the search for a near name takes milliseconds
        return ""
    renamed = RENAMED.get(module.__name__, {}).get(name) or _in_sibling(module, name)
    return f"; use {renamed}" if renamed else _in_scipy(module, name) or nearest(name, dir(module), _LIKE)


def _in_scipy(module: types.ModuleType, name: str) -> str:
    """Return a remedy that names SciPy's own function, if it has the missing name; or an empty text."""
    path = module.__name__.partition(".")[2]
    if path.partition(".")[0] != "scipy" or _is_importing():
        return ""
    if name == "rvs" and path.startswith("scipy.stats."):
        return "; draws take a key: functorch_like.random has the distributions, ft.random.normal(key, shape)"
    try:
        original = importlib.import_module(path)
    except ImportError:
        return ""
    return f"; SciPy's own takes values, not traced ones: {path}.{name}" if hasattr(original, name) else ""


def _in_sibling(module: types.ModuleType, name: str) -> str:
    """Return a name of another module as users write it, `fnp.sin` for `ft.sin`; or an empty text."""
    package = __name__.partition(".")[0]
    if _is_importing():
        return ""
    own = module.__name__.removeprefix(package + ".")
    siblings = _NUMPY_MODULES.get(own, _SIBLINGS)
    if siblings is _SIBLINGS and own not in ("", package, *(path for path, _ in _SIBLINGS)):
        return ""
    for path, written in siblings:
        full = f"{package}.{path}"
        if full != module.__name__ and name in dir(importlib.import_module(full)):
            return f"{written}.{name}"
    return ""


def _is_importing() -> bool:
    """Return True if Python's import system reads the attribute, to find out whether a submodule is loaded."""
    frame = _caller()
    return frame is not None and frame.f_code.co_filename.startswith("<frozen importlib")


def _is_import_statement() -> bool:
    """Return True if the line outside the package that imports a name is `from module import name`."""
    frame = _caller()
    return frame is not None and frame.f_code.co_code[frame.f_lasti] == opcode.opmap["IMPORT_FROM"]


def _caller() -> types.FrameType | None:
    """Return the innermost frame outside of the package."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return frame


_HERE = os.path.dirname(__file__)


def attach(module: types.ModuleType) -> None:
    """Give a public module `__dir__` and `__getattr__`, by `defined` and `missing`."""
    namespace = vars(module)
    if "__getattr__" not in namespace:

        @without_frames
        def get(name: str) -> Any:
            raise missing(module, name)

        namespace["__getattr__"] = get
    if "__dir__" not in namespace and type(module) is types.ModuleType:  # subclasses have their own
        namespace["__dir__"] = lambda: sorted(defined(module))
