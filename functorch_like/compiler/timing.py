"""Timing of compiled programs beside each other, for choices between them."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeVar

from functorch_like.backends import xla

K = TypeVar("K", bound=Hashable)

_ROUNDS = 7
#: Least duration of a sample in seconds, so that the resolution of the clock does not matter.
_SAMPLE = 2e-3


def least_seconds(programs: Mapping[K, xla.Executable], args: Sequence[Any]) -> dict[K, float]:
    """Return the seconds of one run of each program: the least of several samples taken in turn."""
    counts: dict[K, int] = {}
    for key, program in programs.items():
        _run(program, args, 1)  # in its first run, libraries prepare themselves
        counts[key] = max(1, round(_SAMPLE / max(1e-6, _run(program, args, 1))))
    least: dict[K, float] = {}
    for _ in range(_ROUNDS):
        for key, program in programs.items():
            took = _run(program, args, counts[key]) / counts[key]
            least[key] = min(took, least.get(key, took))
    return least


def _run(program: xla.Executable, args: Sequence[Any], count: int) -> float:
    started = time.perf_counter()
    outs: list[Any] = []
    for _ in range(count):
        outs = program.execute(args)
    for out in outs:
        xla.block_until_ready(out)
    return time.perf_counter() - started
