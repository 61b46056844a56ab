"""Samplers: functions that return the seconds one unit of work took."""

import gc
import os
import time
from collections.abc import Callable

# What all threads of the process computed, where others disturb; else what a clock on the wall shows.
now = time.process_time if os.environ.get("FT_BENCH_CLOCK") == "cpu" else time.perf_counter

ENOUGH = 0.05  # seconds a sample should last, for the clock and the scheduler to matter little


def repeated(work: Callable[[], object], finish: Callable[[object], object] = lambda last: None) -> Callable[[], float]:
    """Samples the mean of many calls; `finish` waits for the last result, inside the measured time."""
    timed(work, 1, finish)  # the first call compiles, and would pass for a long one
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
    """Seconds for `count` calls. The collector rests, as it does in `timeit`."""
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
    """Samples work that must not meet its own caches: each call gets something newly prepared, off the clock."""

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
