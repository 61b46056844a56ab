"""Policy of the disk cache: whether programs are kept, where, and how many bytes of them.

It is separate from the cache, because settings exist from the start, and the cache only from the first program on.
"""

from __future__ import annotations

from collections.abc import Callable

DEFAULT_BYTES = 2 << 30

_read: Callable[[], tuple[bool, str, int]] = lambda: (True, "", DEFAULT_BYTES)


def on_settings(read: Callable[[], tuple[bool, str, int]]) -> None:
    """Set the function whose results `settings` returns."""
    global _read
    _read = read


def settings() -> tuple[bool, str, int]:
    """Return True if programs are kept; the place where ("" is the default one); and the limit in bytes."""
    return _read()
