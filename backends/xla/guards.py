"""jaxlib's guards: arrays that the garbage collector frees, and threads that run programs of several processes."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from functorch_like.backends.xla.jaxlib_api import _jax
from functorch_like.errors import ArgumentError

_lib = _jax.guard_lib
_LEVELS = {level.name.lower(): level for level in _lib.GarbageCollectionGuardLevel}
_threads = [False]


def _level(name: str | None) -> object:
    if name is not None and name not in _LEVELS:
        raise ArgumentError(
            f"{name!r:.60} is no level of the guard of collected arrays", fix=f"use None or one of {', '.join(_LEVELS)}"
        )
    return None if name is None else _LEVELS[name]


def collection_level() -> str | None:
    """Return the guard of collected arrays in this thread; None and "allow" do nothing."""
    level = _lib.thread_local_state().garbage_collect_array or _lib.global_state().garbage_collect_array
    return None if level is None else level.name.lower()


def set_collection_level(name: str | None) -> None:
    """Set the guard of collected arrays in every thread.

    Args:
        name: "allow", "log" (a line on stderr with the place where the array was made), "fatal" (the process ends), or
            None for "allow".

    Raises:
        ArgumentError: for other names.
    """
    _lib.global_state().garbage_collect_array = _level(name)


@contextmanager
def collection_guard(name: str | None) -> Generator[None]:
    """Set the guard of collected arrays in this thread, in a block.

    Raises:
        ArgumentError: for other names than those of `set_collection_level`.
    """
    state, level = _lib.thread_local_state(), _level(name)
    before, state.garbage_collect_array = state.garbage_collect_array, level
    try:
        yield
    finally:
        state.garbage_collect_array = before


def threads_are_guarded() -> bool:
    """Return True if programs of several processes may be run by one thread only."""
    return _threads[0]


def guard_threads(on: bool) -> None:
    """Let only this thread run programs of several processes: jaxlib refuses them in others."""
    _lib.update_thread_guard_global_state(bool(on))
    _threads[0] = bool(on)


@contextmanager
def thread_guard(on: bool = True) -> Generator[None]:
    """Let only this thread run programs of several processes, in a block."""
    before = _threads[0]
    guard_threads(on)
    try:
        yield
    finally:
        guard_threads(before)
