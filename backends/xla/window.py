"""A bound on the programs in flight, for versions of jaxlib that deadlock without one.

TRAP: before jaxlib 0.12, the 33rd program with a collective that is dispatched to several local CPU devices, while the
32 before it are unfinished, never returns; nothing is reported. A loop of training steps that never reads a result gets
there. So each dispatch waits until at most `LIMIT` are unfinished.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from functorch_like.backends.xla.jaxlib_api import VERSION

#: Half of what deadlocks; threads that dispatch at the same time take turns.
LIMIT = 16
_in_flight: deque[Any] = deque()
_lock = threading.Lock()

_COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-")


def is_needed(inner: Any, mesh: Any) -> bool:
    """Return True if dispatches of a program must be counted."""
    if VERSION >= (0, 12) or mesh.platform != "cpu" or len(mesh.local_devices) < 2:
        return False
    texts = (module.to_string() for module in inner.hlo_modules())
    return any(name in text for text in texts for name in _COLLECTIVES)


def dispatch(inner: Any, args: Sequence[Any]) -> Any:
    """Run a program once fewer than `LIMIT` are unfinished.

    A token is kept of each. It holds no memory of the results, and donation does not delete it.
    """
    with _lock:
        while len(_in_flight) >= LIMIT:
            _wait(_in_flight.popleft())
        results = inner.execute_sharded(args, with_tokens=True)
        _in_flight.append(results.consume_token())
        return results


def _wait(token: Any) -> None:
    with suppress(Exception):  # the error of a program is raised where its results are read
        token.block_until_ready()


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    _in_flight.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
