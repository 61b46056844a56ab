"""A clock for heartbeats, which does not count the time for which this process itself was stopped."""

from __future__ import annotations

import threading
import time


class RunningClock:
    """Seconds for which this process has run, as far as regular readings show it.

    The time between two readings counts as at most `largest` seconds. A process that was stopped, or waited for a
    processor, has read no messages meanwhile. Counted in full, that time would make all other processes silent at once.

    Args:
        largest: seconds that the time between two readings counts at most.
    """

    def __init__(self, largest: float) -> None:
        self.largest = largest
        self._lock = threading.Lock()
        self._total, self._last = 0.0, time.monotonic()

    def read(self) -> float:
        """Return the seconds so far."""
        with self._lock:
            now = time.monotonic()
            self._total += min(now - self._last, self.largest)
            self._last = now
            return self._total
