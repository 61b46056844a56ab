"""OpenMP, which XLA does not use: its threads are a pool of its own (`backends.cpu.num_threads`)."""

from __future__ import annotations


def is_available() -> bool:
    """Return False: programs run on XLA's own pool of threads, and OMP_NUM_THREADS has no effect on them.

    >>> from functorch_like import backends
    >>> backends.openmp.is_available()
    False
    """
    return False
