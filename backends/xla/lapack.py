"""LAPACK on CPUs, through the custom calls that jaxlib brings along.

TRAP: a program that calls one of them before `ensure` has run kills the process; that holds for programs loaded from
the on-disk cache too. So `call` makes sure when a program is lowered, and the cache when it loads one that was not
lowered in this process.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from functorch_like import interrupts
from functorch_like.avals import ShapedArray
from functorch_like.backends.xla.jaxlib_api import xc
from functorch_like.backends.xla.matrix_calls import matrix_call

_LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
#: Names of routines for complex numbers, where they differ.
_COMPLEX = {"syevd": "heevd", "sytrd": "hetrd", "orgqr": "ungqr"}

_lock = threading.Lock()
_ready = False


def ensure() -> None:
    """Make LAPACK callable from compiled programs: once per process, 150 ms (it imports SciPy's bindings)."""
    global _ready
    if _ready:
        return
    with interrupts.held, _lock:  # C++ calls null pointers after half of it
        if _ready:
            return
        from jaxlib.cpu import _lapack

        for name, capsule in _lapack.registrations().items():
            xc.register_custom_call_target(name, capsule, "cpu", api_version=int(name.endswith("_ffi")))
        _lapack.initialize()
        _ready = True


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
    attrs: Mapping[str, str | int] | None = None,
    aliases: Sequence[tuple[int, int]] = (),
) -> list[Any]:
    """Emit a call of a routine for each matrix of a stack.

    Args:
        routine: without the letter of its dtype, by the name for real numbers: "potrf", "syevd". The dtype of the first
            operand chooses the letter.
        attrs: LAPACK's letters, or 32-bit integers.
        e, operands, in_avals, out_avals, lead, aliases: as for `matrix_call`.
    """
    ensure()
    texts = {
        key: f"{ord(value)} : ui8" if isinstance(value, str) else f"{value} : i32"
        for key, value in (attrs or {}).items()
    }
    target = f"lapack_{named(routine, in_avals[0].dtype)}_ffi"
    return matrix_call(e, target, operands, in_avals, out_avals, lead=lead, attrs=texts, aliases=aliases)
