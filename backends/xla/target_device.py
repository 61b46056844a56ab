"""The device that a program is lowered or compiled for, for rules that report it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_compiled_for: ContextVar[Any] = ContextVar("compiled_for", default=None)


@contextmanager
def compiling_for(device: Any) -> Generator[None]:
    """Name the device, or the mesh, of what is lowered and compiled within a block."""
    before = _compiled_for.set(device)
    try:
        yield
    finally:
        _compiled_for.reset(before)


def target_device() -> Any:
    """Return what `compiling_for` names; None where the device is not known yet."""
    return _compiled_for.get()
