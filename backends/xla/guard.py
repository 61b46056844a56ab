"""One process, one owner of jaxlib: `jax` and this package cannot share it.

jaxlib keeps the methods of its array class, the state of its jit and several cached Python classes once per process.
The second to be imported overwrites them for both: silently wrong numbers, no error. So importing this package after
`jax` raises, and importing `jax` after this package raises.

The second rule has another use. jaxlib's C++ imports `jax` by itself in some calls (see `jax_import_stubs.py`). Where
one was missed, the finder here turns that into a failed import, which C++ swallows, instead of a real jax taking over.
"""

from __future__ import annotations

import importlib.machinery
import sys
from types import ModuleType
from typing import Any

OLDEST, TOO_NEW = (0, 10, 2), (0, 13)
_INSTALL = "Run: pip install 'jaxlib>=0.10.2,<0.13'"

_WHY = (
    "jax and functorch_like drive the same jaxlib, whose array methods, jit state and cached classes exist once per "
    "process, so in one process they would corrupt each other's results."
)
_REMEDY = (
    "Use them in separate processes (for example multiprocessing with the 'spawn' start method, or two scripts) and "
    "exchange NumPy arrays."
)


def refuse_jax() -> None:
    """Raise ImportError if `jax` was imported before this package."""
    if "jax" in sys.modules:
        raise ImportError(
            f"functorch_like cannot be imported: jax is already imported in this process. {_WHY} {_REMEDY}",
            name="functorch_like",
        )


def jaxlib_version() -> str:
    """Return the installed jaxlib's version; raise ImportError if there is none."""
    try:
        from jaxlib.version import __version__
    except ImportError as error:
        raise ImportError(f"functorch_like needs jaxlib, which is not installed. {_INSTALL}", name="jaxlib") from error
    return str(__version__)


def check_jaxlib() -> tuple[int, ...]:
    """Return the installed jaxlib's version as numbers; raise ImportError if it is outside of the tested range."""
    text = jaxlib_version()
    digits = [part for part in text.split(".")[:3] if part.isdecimal()]
    version = tuple(int(part) for part in digits)
    if not OLDEST <= version < TOO_NEW:
        raise ImportError(
            f"functorch_like found jaxlib {text}, which it was not tested with. It uses parts of jaxlib that change "
            f"from version to version. {_INSTALL}",
            name="jaxlib",
        )
    return version


class _Refusing:
    """A loader that raises instead of loading."""

    def create_module(self, spec: Any) -> ModuleType | None:
        raise ImportError(f"jax cannot be imported after functorch_like. {_WHY} {_REMEDY}", name="jax")

    def exec_module(self, module: ModuleType) -> None:
        """Never reached; the import system requires it."""


class _DenyJax:
    """Finder that matches `jax` exactly. Where jax is not installed it stands aside, so the usual error appears.

    It answers with a spec rather than raising, because libraries probe with `importlib.util.find_spec("jax")`.
    """

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name != "jax":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None:
            return None
        return importlib.machinery.ModuleSpec(name, _Refusing(), origin=spec.origin)  # type: ignore[arg-type]


def deny_jax() -> None:
    """Make `import jax` raise ImportError from now on."""
    if not any(isinstance(finder, _DenyJax) for finder in sys.meta_path):
        sys.meta_path.insert(0, _DenyJax())  # type: ignore[arg-type]
