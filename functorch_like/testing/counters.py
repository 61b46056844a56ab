"""Counts of compilations, traces and transfers within a block: guards of speed that need no clock.

Counts are those of the whole process, so other threads count too.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager

from functorch_like.backends import xla

_COMPILES = ("compiles", "cache_hits")
_TRACES = ("traces",)
_TRANSFERS = ("host_to_device", "device_to_host", "device_to_device")


class Counted:
    """Growth of the counters since it was made; it stops at the end of the block.

    Attributes:
        count: the sum.
        each: the parts by name, without those that are zero.
    """

    def __init__(self, names: tuple[str, ...] = ()) -> None:
        self._names, self._before = names, xla.counters.snapshot()
        self._after: dict[str, int] | None = None

    @property
    def each(self) -> dict[str, int]:
        after = xla.counters.snapshot() if self._after is None else self._after
        grown = {name: after[name] - before for name, before in self._before.items()}
        return {name: n for name, n in grown.items() if n and (not self._names or name in self._names)}

    @property
    def count(self) -> int:
        return sum(self.each.values())

    def stop(self) -> None:
        """Count no further."""
        self._after = xla.counters.snapshot()

    def __repr__(self) -> str:
        return f"Counted({self.count}: {self.each})"


@contextmanager
def _counting(*names: str) -> Generator[Counted]:
    counted = Counted(names)
    try:
        yield counted
    finally:
        counted.stop()


def count_compiles() -> AbstractContextManager[Counted]:
    """Count the new programs: `compiles` by XLA, and `cache_hits` loaded from disk instead.

    Optimised forms, which the background thread compiles when a program has run for long, do not count.

    >>> import functorch_like as ft
    >>> double = ft.jit(lambda x: 2 * x)
    >>> x = ft.device_put(np.ones(3))
    >>> with count_compiles() as first:
    ...     y = double(x)
    >>> with count_compiles() as second:
    ...     y = double(x)
    >>> first.count, second.count
    (1, 0)
    """
    return _counting(*_COMPILES)


def count_traces() -> AbstractContextManager[Counted]:
    """Count how often `jit`, `make_jaxpr` and `eval_shape` traced a function.

    >>> import functorch_like as ft
    >>> double = ft.jit(lambda x: 2 * x)
    >>> with count_traces() as traces:
    ...     y = double(np.ones(3)), double(np.zeros(3)), double(np.ones(4))
    >>> traces.count
    2
    """
    return _counting(*_TRACES)


def count_transfers() -> AbstractContextManager[Counted]:
    """Count copies that Python made: `host_to_device`, `device_to_host` and `device_to_device`.

    What C++ moves by itself is not seen: NumPy arguments of compiled functions on their fast path, and `np.asarray` of
    an array.

    >>> import functorch_like as ft
    >>> with count_transfers() as moved:
    ...     x = ft.device_put(np.ones(3))
    >>> moved.each
    {'host_to_device': 1}
    """
    return _counting(*_TRANSFERS)
