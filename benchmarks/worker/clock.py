"""Samplers: functions that return the seconds of one unit of work."""

import gc
import os
import time
from collections.abc import Callable

# Processor time of all threads, for machines that other processes use; else wall time.
now = time.process_time if os.environ.get("FT_BENCH_CLOCK") == "cpu" else time.perf_counter

ENOUGH = 0.05  # seconds of a sample, so that the clock and the scheduler matter little


def repeated(work: Callable[[], object], finish: Callable[[object], object] = lambda last: None) -> Callable[[], float]:
    """Return a sampler of the mean of many calls; `finish` waits for the last result, inside the measured time."""
    for _ in range(3):  # the first compiles, or the third of an exact function; this would distort the count
        timed(work, 1, finish)
    count = 1
    while (seconds := timed(work, count, finish)) < ENOUGH / 4:
        count *= 4
    count = max(1, round(count * ENOUGH / seconds))
    return lambda: timed(work, count, finish) / count


def settle(compiled: Callable, *arguments: object) -> None:
    """Call a jitted function, and wait for the last tier of its program where there are several."""
    compiled(*arguments)
    if hasattr(compiled, "optimised"):
        compiled.optimised()


def timed(work: Callable[[], object], count: int, finish: Callable[[object], object]) -> float:
    """Return the seconds of `count` calls. Garbage collection is off, as in `timeit`."""
    gc.disable()
    try:
        last = None
        begin = now()
        for _ in range(count):
            last = work()
        finish(last)
        return now() - begin
    finally:
        gc.enable()


def fresh(prepare: Callable[[], object], work: Callable[[object], object], count: int = 1) -> Callable[[], float]:
    """Return a sampler of work that must miss its caches: each call gets a newly prepared object, off the clock."""

    def sample() -> float:
        prepared = [prepare() for _ in range(count)]
        gc.disable()
        try:
            begin = now()
            for each in prepared:
                work(each)
            return (now() - begin) / count
        finally:
            gc.enable()

    return sample
