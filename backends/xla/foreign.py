"""Foreign functions: compiled kernels of users' own that programs call through XLA's typed FFI.

TRAP: XLA calls the pointer it is given when it is registered, and again in programs: a pointer to anything else than a
handler kills the process. And LAPACK's targets must not be called before they are initialised. So programs call by name
only what was registered here.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jaxlib
import numpy as np

from functorch_like.backends.xla.jaxlib_api import xc
from functorch_like.errors import ArgumentError, DtypeError

PLATFORMS = ("cpu", "gpu")
_lock = threading.Lock()
_targets: dict[tuple[str, str], tuple[Any, Any]] = {}
#: Functions of the older interface of custom calls, which only lowering rules of users call.
_untyped: dict[tuple[str, str], tuple[Any, Any]] = {}
#: Stages for which a function of the typed FFI may have handlers of their own.
STAGES = ("instantiate", "prepare", "initialize", "execute")
# Prototypes of the package: those of `ctypes.pythonapi` are shared by the whole process.
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def include_dir() -> str:
    """The folder of the C++ headers of XLA's FFI that come with jaxlib."""
    return str(Path(str(jaxlib.__file__)).parent / "include")


def capsule(symbol: Any) -> tuple[int, Any]:
    """The address of a handler, and a capsule of it, from a capsule or a function of a library loaded with ctypes."""
    if type(symbol).__name__ == "PyCapsule":
        return int(_pointer_of(symbol, _name_of(symbol))), symbol
    if not isinstance(symbol, ctypes._CFuncPtr):  # type: ignore[attr-defined]
        raise ArgumentError(
            f"{symbol!r:.60} of type {type(symbol).__name__} is not a handler",
            fix="give a function of a library, ctypes.cdll.LoadLibrary(path).name, or a PyCapsule of its pointer",
        )
    address = ctypes.cast(symbol, ctypes.c_void_p).value
    if not address:
        raise ArgumentError("the handler is a null pointer", fix="give a function of a library that is loaded")
    return address, _new(address, b"xla._CUSTOM_CALL_TARGET", None)


def _handlers(symbol: Any) -> tuple[Any, Any]:
    """Return the addresses and the capsules of a handler, or of a dictionary of handlers by stage."""
    if not isinstance(symbol, Mapping):
        return capsule(symbol)
    if "execute" not in symbol or not set(symbol) <= set(STAGES):
        raise ArgumentError(
            f"handlers of the stages {', '.join(map(str, symbol))} were given",
            fix=f"give one for execute, and if needed for others of {', '.join(STAGES)}",
        )
    made = {stage: capsule(each) for stage, each in symbol.items()}
    return {stage: address for stage, (address, _) in made.items()}, {stage: each for stage, (_, each) in made.items()}


def register(name: str, symbol: Any, platform: str, *, typed: bool = True) -> None:
    """Make a handler known under a name; the same one again changes nothing.

    Args:
        name: the name.
        symbol: the handler; for the typed FFI also a dictionary of handlers by stage.
        platform: "cpu" or "gpu".
        typed: False for the older interface of custom calls, which only lowering rules of users call.

    Raises:
        ArgumentError: for another handler of the same name (XLA cannot replace one), or an object that is no handler.
    """
    if platform not in PLATFORMS:
        raise ArgumentError(f"platform={platform!r} is unknown", fix=f"use one of {', '.join(PLATFORMS)}")
    address, made = _handlers(symbol) if typed else capsule(symbol)
    targets, others = (_targets, _untyped) if typed else (_untyped, _targets)
    with _lock:
        known = targets.get((name, platform)) or others.get((name, platform))
        if known is None and name in xc.custom_call_targets("Host" if platform == "cpu" else "CUDA"):
            raise ArgumentError(f"the name {name!r} is taken by jaxlib itself", fix="choose another name")
        if known is not None:
            if known[0] == address and (name, platform) in targets:
                return
            raise ArgumentError(
                f"another function is registered as {name!r} for {platform}", fix="choose a new name for a new function"
            )
        xc.register_custom_call_target(name, made, "cpu" if platform == "cpu" else "CUDA", api_version=int(typed))
        targets[name, platform] = address, made


def register_type(name: str, capsules: Any, platform: str) -> None:
    """Register a type of the typed FFI by its PyCapsules, "type_id" and, for types with more than that, "type_info".

    Raises:
        ArgumentError: for other objects than PyCapsules, or an unknown platform.
    """
    if platform not in PLATFORMS:
        raise ArgumentError(f"platform={platform!r} is unknown", fix=f"use one of {', '.join(PLATFORMS)}")
    wrong = {key: value for key, value in dict(capsules).items() if type(value).__name__ != "PyCapsule"}
    if wrong or "type_id" not in capsules:
        raise ArgumentError(
            f"the type {name!r} is registered by a PyCapsule of its type_id, got {wrong or dict(capsules)!r:.80}",
            fix="give a PyCapsule of a pointer to the ffi::TypeId",
        )
    xc.register_custom_type(name, dict(capsules), "cpu" if platform == "cpu" else "CUDA")


def split_along_batches(name: str) -> None:
    """Let XLA split calls of a function along leading dimensions, if arrays are split along these over a mesh."""
    xc.register_custom_call_as_batch_partitionable(name)


def check(name: str, platform: str) -> None:
    """Raise unless a handler of this name is registered for the platform."""
    if (name, platform) not in _targets:
        known = ", ".join(repr(n) for n, p in _targets if p == platform) or "none"
        raise ArgumentError(
            f"no foreign function {name!r} is registered for {platform}; those that are: {known}",
            fix=f"ft.ffi.register_ffi_target({name!r}, symbol, platform={platform!r}) first",
        )


# ------------------------------------------------------------------------------------------------------- attributes
_TYPES = {"b": "i1", "i": "i", "u": "ui", "f": "f"}


def attribute(name: str, value: Any) -> str:
    """An attribute as MLIR writes it: bool, int (i64), float (f64), str, NumPy scalars and vectors of their dtype."""
    if isinstance(value, str):
        plain = lambda byte: 32 <= byte < 127 and byte not in b'"\\'
        return '"' + "".join(chr(b) if plain(b) else f"\\{b:02X}" for b in value.encode()) + '"'
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        raise ArgumentError(f"attribute {name}={value} does not fit 64 bits", fix="pass it as a string")
    array = np.asarray(value)
    if array.dtype.kind not in _TYPES or array.ndim > 1 or array.dtype == np.longdouble:
        raise DtypeError(
            f"attribute {name}={value!r:.60} cannot be passed to a foreign function",
            fix="pass a bool, int, float, str, NumPy scalar or NumPy vector; arrays go among the operands",
        )
    kind = _TYPES[array.dtype.kind]
    if array.ndim:  # arrays have signless types only
        kind = kind.lstrip("u")
        array = array.view(f"i{array.dtype.itemsize}") if array.dtype.kind == "u" else array
    of = kind if kind == "i1" else f"{kind}{8 * array.dtype.itemsize}"
    texts = [_number(x) for x in np.atleast_1d(array)]
    if array.ndim:
        return f"array<{of}: {', '.join(texts)}>" if texts else f"array<{of}>"
    return texts[0] if of == "i1" else f"{texts[0]} : {of}"


def _number(x: Any) -> str:
    if x.dtype.kind == "f":  # by its bits, so that no digit is lost
        return f"0x{int(x.view(f'u{x.dtype.itemsize}')):0{2 * x.dtype.itemsize}X}"
    return ("true" if x else "false") if x.dtype.kind == "b" else str(int(x))
