"""Costs of a compiled function: tracing, lowering, compiling, and each call."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import functorch_like as ft
from functorch_like.backends import xla
from functorch_like.ir.jaxpr import Jaxpr


@dataclass
class Cost:
    """Costs of one function, in seconds.

    Attributes:
        name: what to call it.
        operations: equations in its jaxpr, those of inner programs included.
        trace: from Python to a jaxpr.
        lower: from the jaxpr to StableHLO.
        compile: from StableHLO to machine code, or to the file on disk that has it.
        from_disk: whether the machine code came from the cache on disk.
        runs: each call, until its results were there.
    """

    name: str
    operations: int
    trace: float
    lower: float
    compile: float
    from_disk: bool
    runs: list[float] = field(default_factory=list)

    @property
    def run(self) -> float:
        """The median call; NaN where there was none."""
        return statistics.median(self.runs) if self.runs else float("nan")


class Costs(list[Cost]):
    """The costs of several functions, in the order they were compiled."""

    def compile(self, name: str, jitted: Any, *args: Any) -> Callable[..., Any]:
        """Compile a jitted function for arguments like these, step by step and with a clock.

        Args:
            name: what to call it.
            jitted: from `ft.jit`.
            args: arrays, or anything with their shapes and dtypes; nothing is computed with them.

        Returns:
            The compiled function; each call waits for its results and is timed.
        """
        traced = jitted.trace(*args)
        lowered = traced.lower()
        before = xla.counters.snapshot()
        compiled = lowered.compile()
        from_disk = bool(xla.counters.since(before).get("cache_hits"))
        cost = Cost(name, operations(traced.jaxpr), traced.seconds, lowered.seconds, compiled.seconds, from_disk)
        self.append(cost)

        def timed(*args: Any) -> Any:
            started = time.perf_counter()
            out = ft.block_until_ready(compiled(*args))
            cost.runs.append(time.perf_counter() - started)
            return out

        return timed


def operations(jaxpr: Jaxpr) -> int:
    """Return the number of equations of a jaxpr, those of the jaxprs inside it included."""
    inner = (value for equation in jaxpr.equations for value in equation.params.values() if isinstance(value, Jaxpr))
    return len(jaxpr.equations) + sum(operations(value) for value in inner)
