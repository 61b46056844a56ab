"""Run times on a GPU, where a call returns before its results are computed.

To wait for each call would keep the host from working ahead. So the calls 1, 2, 3, 4, 6, 8, 11, 14, 18, ... are waited
for, and each counts for those since the one before.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from functorch_like.backends import xla
from functorch_like.core import ArrayImpl
from functorch_like.errors import FtError

T = TypeVar("T")


class Sampling:
    """Choice of the calls of a program that are waited for."""

    def __init__(self) -> None:
        self._calls = self._last = 0
        self._next = 1

    def count(self) -> int:
        """Count a call; return the number of calls that it stands for, or 0 if it is not waited for.

        >>> sample = Sampling()
        >>> [sample.count() for call in range(12)]
        [1, 1, 1, 1, 0, 2, 0, 2, 0, 0, 3, 0]
        """
        self._calls += 1
        if self._calls < self._next:
            return 0
        stands, self._last = self._calls - self._last, self._calls
        self._next = self._calls + 1 + self._calls // 4
        return stands


def seconds_of(run: Callable[[], T], operands: Any) -> tuple[T, float]:
    """Return the results of a run, and the seconds until they are computed, once its operands are."""
    _wait(operands)
    started = time.perf_counter()
    results = run()
    _wait(results)
    return results, time.perf_counter() - started


def _wait(x: Any) -> None:
    for leaf in xla.flatten(x)[0]:
        if type(leaf) is ArrayImpl and not leaf.is_deleted():
            with suppress(FtError):  # it is raised where the value is read
                xla.block_until_ready(leaf)
