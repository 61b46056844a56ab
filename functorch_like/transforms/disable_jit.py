"""`disable_jit`: jitted functions as plain Python."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from functorch_like.backends.external_settings import JIT_DISABLED


@contextmanager
def disable_jit(disable: bool = True) -> Generator[None]:
    """Run jitted functions in a block, in this thread, as plain Python: one primitive after the other.

    Args:
        disable: False turns jit on again inside an outer `disable_jit`.

    Returns:
        A context manager.

    >>> import functorch_like as ft
    >>> with disable_jit():
    ...     y = ft.jit(lambda x: x + 1 if x > 0 else x)(2.0)  # a Python `if` on a value
    >>> float(y)
    3.0
    """
    with JIT_DISABLED.held(bool(disable)):
        yield


def jit_is_disabled() -> bool:
    """Return True if this is inside a `disable_jit` block."""
    return JIT_DISABLED.value
