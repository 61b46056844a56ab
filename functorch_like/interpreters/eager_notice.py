"""Warning, once in a process, after many eager operations have been compiled one by one."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager

from functorch_like import source_info
from functorch_like.core import state

#: Number of programs of one operation, and seconds of compiling them, from which on a warning is logged.
PROGRAMS, SECONDS = 50, 5.0

_programs = 0
_seconds = 0.0


@contextmanager
def compiling(name: str) -> Generator[None]:
    """Count a program that is compiled within the block for one eager operation, and measure the time."""
    global _programs, _seconds
    started = time.perf_counter()
    yield
    before = _is_much()
    _programs += 1
    _seconds += time.perf_counter() - started
    if _is_much() and not before:
        _warn(name)


def _is_much() -> bool:
    return _programs >= PROGRAMS and _seconds >= SECONDS


def _warn(name: str) -> None:
    import logging  # seldom needed

    logging.getLogger("functorch_like").warning(
        "%d operations outside of jit were compiled one by one, in %.0f s; the last one is %s, at %s. "
        "jit compiles a function, or its derivative, as one program: ft.jit(ft.grad(f))(x)",
        _programs,
        _seconds,
        name,
        source_info.user_line(state.source) or "an unknown line",
    )
