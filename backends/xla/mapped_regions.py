"""Memory regions of the process, whose number Linux limits: each compiled program has from three to a few dozen.

Where Linux refuses one, LLVM prints "Cannot allocate memory", and the process dies soon after. 4,000 programs may be
enough for that: functions that are called with arrays of thousands of shapes have as many.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path

from functorch_like.backends.xla import counters
from functorch_like.errors import OutOfMemoryError

_REGIONS, _LIMIT = Path("/proc/self/maps"), Path("/proc/sys/vm/max_map_count")
#: Regions of a large program. It sets the number of programs until the next count. (Counting 65,000 takes 50 ms.)
_LARGE = 50
#: Fractions of the limit: from the first on, programs are dropped; from the second on, none is added.
_CROWDED, _FULL = 0.7, 0.95

_due = 0
_noticed = False
_drop_programs: Callable[[], object] = lambda: None


def on_crowded(drop_programs: Callable[[], object]) -> None:
    """Set the function that drops programs when there is little room for more."""
    global _drop_programs
    _drop_programs = drop_programs


def make_room() -> None:
    """Drop programs if the process has nearly as many regions as it may have.

    This thread must not be compiling a program. Most calls return without counting regions.

    Raises:
        OutOfMemoryError: if that does not help, because other references hold the programs.
    """
    global _due
    loaded = counters.compiles + counters.optimised + counters.cache_hits
    if loaded < _due or sys.platform != "linux":
        return
    most = limit()
    if most is None:
        _due = sys.maxsize
        return
    regions = count()
    if regions >= _CROWDED * most:
        _notice(regions, most)
        _drop_programs()
        regions = count()
    if regions >= _FULL * most:
        raise OutOfMemoryError(
            f"this process has {regions:,} memory regions, of the {most:,} that Linux allows: each compiled program "
            "has several, and too many are held",
            fix="let go of results of .compile() and of functions that are not called any more, or raise the limit: "
            "sysctl vm.max_map_count=1000000",
        )
    room = (_CROWDED if regions < _CROWDED * most else _FULL) * most - regions
    _due = loaded + 1 + int(room / _LARGE)


def _notice(regions: int, most: int) -> None:
    global _noticed
    if not _noticed:
        logging.getLogger("functorch_like").warning(
            "the compiled programs of this process take %s memory regions, of the %s that Linux allows, so all caches "
            "are dropped, and what is called again is compiled again. Calls with arrays of thousands of shapes do "
            "this: pad to a few sizes, or raise the limit: sysctl vm.max_map_count=1000000",
            f"{regions:,}", f"{most:,}",
        )  # fmt: skip
    _noticed = True


def limit() -> int | None:
    """Return the most regions that a process may have; None where it cannot be read."""
    try:
        return int(_LIMIT.read_text())
    except (OSError, ValueError):
        return None


def count() -> int:
    """Return the number of regions of this process; 0 where it cannot be read."""
    try:
        return _REGIONS.read_bytes().count(b"\n")
    except OSError:
        return 0
