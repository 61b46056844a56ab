"""LAPACK on CPUs, through the custom calls that jaxlib brings along.

TRAP: a program that calls one of them before `ensure` has run kills the process; that holds for programs loaded from
the on-disk cache too. So `call` makes sure when a program is lowered, and the cache when it loads one that was not
lowered in this process.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
import threading
from collections.abc import Generator, Mapping, Sequence
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any

from functorch_like import interrupts
from functorch_like.avals import ShapedArray
from functorch_like.backends.xla.jaxlib_api import xc
from functorch_like.backends.xla.matrix_calls import matrix_call

_LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
#: Names of routines for complex numbers, where they differ.
_COMPLEX = {"syevd": "heevd", "sytrd": "hetrd", "orgqr": "ungqr", "ormqr": "unmqr"}

#: SciPy's modules that hold the addresses of the routines.
_BINDINGS = ("scipy.linalg.cython_blas", "scipy.linalg.cython_lapack")

_lock = threading.Lock()
_ready = False


def ensure() -> None:
    """Make LAPACK callable from compiled programs: once per process, 20 ms (it loads SciPy's bindings)."""
    global _ready
    if _ready:
        return
    with interrupts.held, _lock:  # C++ calls null pointers after half of it
        if _ready:
            return
        from jaxlib.cpu import _lapack

        for name, capsule in _lapack.registrations().items():
            xc.register_custom_call_target(name, capsule, "cpu", api_version=int(name.endswith("_ffi")))
        with _scipy_bindings():
            _lapack.initialize()
        _ready = True


@contextlib.contextmanager
def _scipy_bindings() -> Generator[None]:
    """Offer the modules that jaxlib takes LAPACK's addresses from without their package, whose import takes 130 ms.

    They are extension modules that need nothing of `scipy.linalg`, which imports 250 other modules. Afterwards they
    leave `sys.modules`, so that a later import of the package works as ever: Python gives out the same modules.
    Where this fails, jaxlib imports them with the package.
    """
    loaded = []
    if "scipy.linalg" not in sys.modules:
        with contextlib.suppress(ImportError, OSError):
            loaded = [module for name in _BINDINGS if (module := _loaded(name)) is not None]
    try:
        yield
    finally:
        if "scipy.linalg" not in sys.modules:  # else another thread has imported it meanwhile, with these
            for module in loaded:
                sys.modules.pop(module.__name__, None)


def _loaded(name: str) -> ModuleType | None:
    """An extension module of `scipy.linalg`, in `sys.modules`; None if its file is not found."""
    package = importlib.util.find_spec("scipy")
    folders = [os.path.join(folder, "linalg") for folder in (package and package.submodule_search_locations) or ()]
    spec = PathFinder.find_spec(name, folders)
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def named(routine: str, dtype: Any) -> str:
    """LAPACK's name of a routine for a dtype."""
    return _LETTERS[dtype.name] + (_COMPLEX.get(routine, routine) if dtype.kind == "c" else routine)


def call(
    e: Any,
    routine: str,
    operands: Sequence[Any],
    in_avals: Sequence[ShapedArray],
    out_avals: Sequence[ShapedArray],
    *,
    lead: int,
    attrs: Mapping[str, str | int | bool] | None = None,
    aliases: Sequence[tuple[int, int]] = (),
) -> list[Any]:
    """Emit a call of a routine for each matrix of a stack.

    Args:
        routine: without the letter of its dtype, by the name for real numbers: "potrf", "syevd". The dtype of the first
            operand chooses the letter.
        attrs: LAPACK's letters, 32-bit integers or booleans.
        e, operands, in_avals, out_avals, lead, aliases: as for `matrix_call`.
    """
    ensure()
    texts = {key: _text(value) for key, value in (attrs or {}).items()}
    target = f"lapack_{named(routine, in_avals[0].dtype)}_ffi"
    return matrix_call(e, target, operands, in_avals, out_avals, lead=lead, attrs=texts, aliases=aliases)


def _text(value: str | int | bool) -> str:
    """An attribute as MLIR has it."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{ord(value)} : ui8" if isinstance(value, str) else f"{value} : i32"
