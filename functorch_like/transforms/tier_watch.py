"""Timing of a jitted function's programs before their last tier, and their exchange for better forms.

While there is such a program, the function is called through `TierWatch`, which adds up the times of calls. When the
sum has grown, the program that has run is looked up by the arguments of the call. Once all programs are exchanged,
the function is called directly again.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from functorch_like.backends.xla import events
from functorch_like.compiler.program import Program
from functorch_like.compiler.run_times import Sampling, seconds_of
from functorch_like.compiler.tiers import Improvement
from functorch_like.interpreters import eager_tiers

if TYPE_CHECKING:
    from functorch_like.transforms.jit_state import JitState

#: Time is credited to a program when it has reached this part of `Improvement.worth`, and at least so many seconds:
#: finding the program takes 50 us.
_SHARE, _LEAST = 0.25, 1e-3


class TierWatch:
    """Time spent by the calls of one jitted function in programs that may be improved.

    Args:
        jitted: the function.

    Attributes:
        misses: calls that came to Python; these are measured there.
    """

    def __init__(self, jitted: JitState) -> None:
        self._jitted = jitted
        # By program the improvement that this object has seen: another function may exchange the program.
        self._programs: weakref.WeakKeyDictionary[Program, Improvement] = weakref.WeakKeyDictionary()
        self._lock = threading.RLock()
        self._installed: Any = None
        self._spent, self._limit = 0.0, _LEAST
        self._ready = False
        self.misses = 0

    def run(self, program: Program, leaves: Sequence[Any]) -> list[Any]:
        """Run a program before its last tier from Python, and measure it."""
        improvement = program.improvement
        results = program.run(leaves) if improvement is None else improvement.measured(program.run, leaves)
        self.follow(program)
        if events.has_listeners():
            events.emit("tier", program.lowered.name, how=_tier(program))
        return results

    def follow(self, program: Program) -> None:
        """Measure calls of a program from now on."""
        with self._lock:
            improvement = program.improvement
            if improvement is None or program in self._programs:
                return
            self._programs[program] = improvement
            improvement.watchers.add(self)
            self._ready |= improvement.is_over
            self._limit = max(min(self._limit, _SHARE * improvement.worth), _LEAST)
            if self._installed is None:
                self._installed = self._sampled() if improvement.on_gpu else self._timed()
                self._jitted.serve(self._installed)

    def _timed(self) -> Callable[..., Any]:
        fast, name, clock, events_seen = (
            self._jitted.fast,
            self._jitted.spec.name,
            time.perf_counter,
            events.has_listeners,
        )

        def timed(*args: Any, **kwargs: Any) -> Any:
            if self._ready:
                self.exchange()
            misses, started = self.misses, clock()
            out = fast(*args, **kwargs)
            if self.misses == misses:
                self._spent += clock() - started
                if self._spent >= self._limit:
                    self._attribute(args, kwargs)
                if events_seen():
                    events.emit("tier", name, how=self._now(args, kwargs))
            return out

        return timed

    def _sampled(self) -> Callable[..., Any]:
        """Return the function that calls of programs on a GPU run."""
        fast, name, events_seen = self._jitted.fast, self._jitted.spec.name, events.has_listeners
        sample = Sampling()

        def sampled(*args: Any, **kwargs: Any) -> Any:
            if self._ready:
                self.exchange()
            stands, misses = sample.count(), self.misses
            if not stands:
                out = fast(*args, **kwargs)
            else:
                out, seconds = seconds_of(lambda: fast(*args, **kwargs), (args, kwargs))
                if self.misses == misses:
                    self._spent += stands * seconds
                    if self._spent >= self._limit:
                        self._attribute(args, kwargs)
            if self.misses == misses and events_seen():
                events.emit("tier", name, how=self._now(args, kwargs))
            return out

        return sampled

    def _attribute(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Credit the accumulated time to the program of the last call. On average each program gets its own time."""
        spent, self._spent = self._spent, 0.0
        if not self._programs:  # `clear_caches` has dropped them
            self.forget()
            return
        program = self._jitted.compiled_before(args, kwargs)
        if program is not None and program.improvement is not None:
            program.improvement.credit(spent)

    def _now(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        program = self._jitted.compiled_before(args, kwargs)
        return "optimised" if program is None else _tier(program)

    def note(self) -> None:
        """Record that a program has been compiled: the next call exchanges it before it runs."""
        self._ready = True

    # ------------------------------------------------------------------------------------------------------- exchange
    def exchange(self) -> None:
        """Exchange the programs whose better form has been compiled."""
        with self._lock:
            self._ready = False
            try:
                self._exchange_finished()
            except BaseException:  # an interrupt, or a warning that is an error
                self._ready = True
                raise

    def _exchange_finished(self) -> None:
        finished = [p for p, seen in self._programs.items() if p.improvement is not seen or seen.is_over]
        if finished:
            self._jitted.fast._clear_cache()
        for program in finished:
            self._programs.pop(program, None)
            eager_tiers.exchange(program)
            self.follow(program)
        self._limit = max(_LEAST, _SHARE * min((seen.worth for seen in self._programs.values()), default=0.0))
        if not self._programs:
            self._uninstall()

    def _uninstall(self) -> None:
        if self._jitted.served is self._installed:
            self._jitted.serve(self._jitted.fast)
        self._installed = None

    def forget(self) -> None:
        """Stop measuring the programs so far."""
        with self._lock:
            self._programs.clear()
            self._uninstall()

    def finish(self) -> None:
        """Compile the better forms of all programs, wait for them, and exchange, until all are in their last tier."""
        while self._programs:
            with self._lock:
                waiting = [improvement.start() for improvement in self._programs.values()]
            for future in waiting:
                if not future.cancelled():
                    future.exception()  # waits
            self.exchange()


def _tier(program: Program) -> str:
    return "optimised" if program.improvement is None else program.improvement.where
