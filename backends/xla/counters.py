"""Counts of traces, compilations and transfers. Tests guard speed with these instead of clocks."""

from __future__ import annotations

traces = 0  # functions traced by jit, make_jaxpr and eval_shape
compiles = 0  # programs XLA compiled
cache_hits = 0  # programs loaded from disk instead
cache_writes = 0  # programs written to disk
optimised = 0  # programs compiled or loaded by the background thread, in place of their quick forms
modules = 0  # StableHLO modules built
host_to_device = 0  # NumPy values copied in by Python (those C++ moves on its fast path are not seen)
device_to_host = 0  # arrays read back
device_to_device = 0  # arrays copied between devices by Python
computed_by_numpy = 0  # eager operations that NumPy computed, because they are new
misses = 0  # calls of compiled functions that came back to Python

_NAMES = (
    "cache_hits",
    "cache_writes",
    "compiles",
    "computed_by_numpy",
    "device_to_device",
    "device_to_host",
    "host_to_device",
    "misses",
    "modules",
    "optimised",
    "traces",
)


def snapshot() -> dict[str, int]:
    """All counters now."""
    return {name: globals()[name] for name in _NAMES}


def since(before: dict[str, int]) -> dict[str, int]:
    """Return the counts that grew since an earlier snapshot, and by how much."""
    return {name: count - before[name] for name, count in snapshot().items() if count != before[name]}
