"""Policy of the disk cache: whether programs are kept, where, and how many bytes of them.

Apart from the cache itself, because settings are there from the start and the cache with the first program.
"""

from __future__ import annotations

from collections.abc import Callable

DEFAULT_BYTES = 2 << 30

_read: Callable[[], tuple[bool, str, int]] = lambda: (True, "", DEFAULT_BYTES)


def on_settings(read: Callable[[], tuple[bool, str, int]]) -> None:
    """Set the function that returns if programs are kept, where ("" is the default place), and the limit in bytes."""
    global _read
    _read = read


def settings() -> tuple[bool, str, int]:
    """Return if programs are kept, where ("" is the default place), and the limit in bytes."""
    return _read()
