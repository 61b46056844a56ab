"""Memory that is kept for later calls, and given back on `clear_caches`."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable

_clears: list[Callable[[], object]] = []


def on_clear(clear: Callable[[], object]) -> None:
    """Call `clear` on each `clear`. For modules that are not always imported."""
    _clears.append(clear)


def clear() -> None:
    """Drop what the modules of this package keep besides programs."""
    for each in _clears:
        each()


def give_back() -> None:
    """Collect garbage, and return free memory of the C heap to the system, where the C library can (glibc)."""
    gc.collect()
    if sys.platform == "linux":
        import ctypes  # 2 ms, for this alone

        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
