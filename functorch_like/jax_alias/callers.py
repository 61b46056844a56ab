"""Inspection of the Python code that reads a name: is a module being imported, and is a failure caught?

A name that is missing must not stop a library from being imported, if only a function that is never called needs it.
But libraries also test for names, by `hasattr` or `try`, and these tests must fail.
"""

from __future__ import annotations

import dis
import sys
from functools import lru_cache
from types import CodeType, FrameType
from typing import NamedTuple

#: Instructions that may stand before the match of an exception, at the start of a handler.
_LOADS = ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_ATTR", "LOAD_FAST", "BUILD_TUPLE", "PUSH_EXC_INFO", "CACHE", "NOP")
_READS = ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_NAME", "IMPORT_FROM")
_IMPORT_SYSTEM = "<frozen importlib"


class Caller(NamedTuple):
    """The place in the code that reads a name.

    Attributes:
        where: file and line.
        importing: True while a module is being imported.
        tolerant: True for a plain read, such as `jax.x` or `from jax import x`, outside of any `try`.
        importer: True for an `import` statement.
    """

    where: str
    importing: bool
    tolerant: bool
    importer: bool


def caller() -> Caller:
    """Describe the innermost frame outside this package and Python's import system."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and _is_inside(frame):
        frame = frame.f_back
    if frame is None:
        return Caller("", False, False, False)
    instruction, guarded = _at(frame.f_code, frame.f_lasti)
    return Caller(
        f"{frame.f_code.co_filename}:{frame.f_lineno}",
        _is_importing(frame),
        instruction in _READS and not guarded,
        instruction.startswith("IMPORT"),
    )


def _is_inside(frame: FrameType) -> bool:
    name = frame.f_globals.get("__name__", "")
    return name.startswith("functorch_like.jax_alias") or frame.f_code.co_filename.startswith(_IMPORT_SYSTEM)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith(_IMPORT_SYSTEM):
            return True
        frame = frame.f_back
    return False


@lru_cache(4096)
def _at(code: CodeType, offset: int) -> tuple[str, bool]:
    """Return the instruction at an offset, and True if an `except` clause covers it."""
    program = {i.offset: i.opname for i in dis.get_instructions(code)}
    offsets = sorted(program)
    for entry in dis.Bytecode(code).exception_entries:  # type: ignore[attr-defined]
        if entry.start <= offset < entry.end and _is_except(program, offsets, entry.target):
            return program.get(offset, ""), True
    return program.get(offset, ""), False


def _is_except(program: dict[int, str], offsets: list[int], target: int) -> bool:
    """Return True if a handler is that of an `except` clause; `with` and `finally` have handlers, too."""
    for offset in offsets[offsets.index(target) :]:
        name = program[offset]
        if name in ("CHECK_EXC_MATCH", "POP_TOP"):
            return True
        if name not in _LOADS:
            return False
    return False
