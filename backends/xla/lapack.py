"""LAPACK on CPUs, through the custom calls that jaxlib brings along.

TRAP: a program that calls one of them before `ensure` has run kills the process; that holds for programs loaded from
the on-disk cache too. Every process lowers a program before it compiles or loads it (the key of the cache is made of
the lowered module), so `call` is the one place that has to make sure. Whoever loads executables without lowering must
call `ensure` first.

TRAP: LAPACK wants matrices column by column; a wrong layout gives wrong numbers and no error.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from functorch_like.avals import ShapedArray
from functorch_like.backends.xla.jaxlib_api import xc

_LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
#: What routines are called for complex numbers, where that differs.
_COMPLEX = {"syevd": "heevd", "sytrd": "hetrd", "orgqr": "ungqr"}

_lock = threading.Lock()
_ready = False


def ensure() -> None:
    """Make LAPACK callable from compiled programs: once per process, 150 ms (it imports SciPy's bindings)."""
    global _ready
    if _ready:
        return
    with _lock:
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
    alias: tuple[int, int] | None = None,
) -> list[Any]:
    """Emit a call of a routine for each matrix of a stack.

    Args:
        e: the emitter.
        routine: without the letter of its dtype, by the name for real numbers: "potrf", "syevd".
        operands, in_avals: what jaxlib's kernel takes; the first one's dtype chooses the routine.
        out_avals: what it gives, status codes included.
        lead: how many leading dimensions count matrices; what has two dimensions more is a matrix.
        attrs: LAPACK's letters, or 32-bit integers.
        alias: the operand that may be overwritten, and the result that takes its place.
    """
    ensure()
    given = ", ".join(
        f"{key} = {ord(value)} : ui8" if isinstance(value, str) else f"{key} = {value} : i32"
        for key, value in (attrs or {}).items()
    )
    fields = {
        "call_target_name": e.string(f"lapack_{named(routine, in_avals[0].dtype)}_ffi"),
        "api_version": e.i32(4),
        "backend_config": e.attr(f"{{{given}}}"),
        "has_side_effect": e.flag(False),
        "operand_layouts": e.attr(_layouts(in_avals, lead)),
        "result_layouts": e.attr(_layouts(out_avals, lead)),
    }
    if alias is not None:
        place = "" if len(out_avals) == 1 else str(alias[1])
        fields["output_operand_aliases"] = e.attr(
            f"[#stablehlo.output_operand_alias<output_tuple_indices = [{place}], operand_index = {alias[0]}, "
            "operand_tuple_indices = []>]"
        )
    found = e.op("stablehlo.custom_call", list(operands), list(out_avals), fields)
    return [found] if len(out_avals) == 1 else found


def _layouts(avals: Sequence[ShapedArray], lead: int) -> str:
    """The dimensions of each, from the fastest varying to the slowest."""
    return "[" + ", ".join(_layout(aval.ndim, lead) for aval in avals) + "]"


def _layout(ndim: int, lead: int) -> str:
    if not ndim:
        return "dense<> : tensor<0xindex>"
    order = [ndim - 2, ndim - 1, *range(ndim - 3, -1, -1)] if ndim == lead + 2 else list(range(ndim - 1, -1, -1))
    return f"dense<{order}> : tensor<{ndim}xindex>"
