"""Memory that is kept for later calls, and given back on `clear_caches`.

glibc maps each block of more than 32 MB anew and returns it to the system when freed. Each of its pages then costs a
page fault at its next use, which takes longer than most operations on the page: a training step whose temporaries have
60 MB spent a quarter to a half of its time on them. XLA:CPU, NumPy and PyTorch all get their memory there.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path

#: The part of the memory that is kept at most, unless a setting gives the amount.
_PART = 8
#: glibc takes a C int.
_MOST = 2**31 - 1
#: Parameters of mallopt (malloc.h), and the largest values that glibc chooses for them by itself.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_USUAL = 1 << 25
#: Variables by which users set this in glibc.
_SET_BY_USERS = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_MAX_", "MALLOC_TOP_PAD_")

_clears: list[Callable[[], object]] = []


def on_clear(clear: Callable[[], object]) -> None:
    """Call `clear` on each `clear`. For modules that are not always imported."""
    _clears.append(clear)


def clear() -> None:
    """Drop caches of this package's modules other than programs."""
    for each in _clears:
        each()


def give_back() -> None:
    """Collect garbage, and return free memory of the C heap to the system, where the C library can (glibc)."""
    gc.collect()
    _libc("malloc_trim", 0)


def keep_freed(amount: int | None) -> None:
    """Have the C library keep up to so many bytes of freed memory for what is allocated next, where it can (glibc).

    Args:
        amount: bytes; 0 for glibc's own way, None for a part of the memory, unless the environment sets glibc's.
    """
    if amount is None:
        if any(map(os.environ.get, _SET_BY_USERS)) or "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", ""):
            return
        amount = available() // _PART
    amount = min(amount, _MOST)
    # One of them alone would keep glibc from adapting the other; and old ones refuse more than is usual.
    for blocks in (_USUAL, max(amount, _USUAL)):
        _libc("mallopt", _MMAP_THRESHOLD, blocks)
    _libc("mallopt", _TRIM_THRESHOLD, max(amount, 2 * _USUAL))


def available(groups: Path = Path("/sys/fs/cgroup")) -> int:
    """The bytes of memory that this process may have: the machine's, or fewer in a container."""
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")] if hasattr(os, "sysconf") else []
    for name in ("memory.max", "memory/memory.limit_in_bytes"):  # of cgroups, version 2 and 1
        try:
            sizes.append(int((groups / name).read_text()))
        except (OSError, ValueError):  # not there, or "max"
            continue
    return min(sizes, default=_USUAL * _PART)


def _libc(function: str, *arguments: int) -> None:
    """Call a function of the C library that only glibc has."""
    if sys.platform == "linux":
        import ctypes  # 2 ms, unless NumPy was there before

        call = getattr(ctypes.CDLL(None), function, None)
        if call is not None:
            call(*arguments)
