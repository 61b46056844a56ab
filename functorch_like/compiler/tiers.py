"""Tiers of compilation: a new program is compiled quickly and runs; what runs long is compiled again in the background.

A program starts in the quick tier unless its optimised form is on disk. It also starts optimised if one run would last
longer than the compile time saved. `transforms/tier_watch.py` measures how long it runs. Once that has reached the
estimated cost of the optimised form, one background thread compiles it. The next call of the function exchanges the
two. So time lost to slow code and time lost to needless compiling are about equal at worst.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from functorch_like.backends import compilation, determinism, settings, xla
from functorch_like.backends.xla import client, configuration, events, option_sets
from functorch_like.backends.xla.jaxlib_api import VERSION
from functorch_like.compiler import tier_costs
from functorch_like.compiler.lower import Lowered

#: Part of the estimated cost of the optimised form that a program runs until it is compiled: code runs some times
#: faster after it, so that waiting for all of the cost would lose more than it saves.
_PATIENCE = 0.5
#: The same, where an earlier process has left the quick form on disk: the program comes again.
_PATIENCE_AGAIN = 0.1
#: Seconds that an eager call may take longer: a fifth of what calling it takes.
_UNNOTICED = 1e-6
#: Seconds of compile time below which an eager program is not measured: its calls would come to Python meanwhile.
_LARGE = 50e-3 if VERSION < (0, 11) else 25e-3


class QuickTier:
    """A program's stay in the quick tier, and the way out of it.

    Attributes:
        worth: seconds of running after which the optimised form is compiled.
        spent: seconds that it has run.
        compiled: the future of the optimised form; None until its compilation starts.
        watchers: are noted when it is there: one for each jitted function that runs the program.
    """

    def __init__(self, compile: Callable[[], xla.Executable], worth: float, name: str) -> None:
        self.worth, self.name, self.spent = worth, name, 0.0
        self.compiled: Future[xla.Executable] | None = None
        self.watchers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._compile, self._settings = compile, configuration.snapshot()
        _alive.add(self)

    def credit(self, seconds: float) -> None:
        """Add time that it has run; once that is worth it, have the optimised form compiled."""
        self.spent += seconds
        if self.spent >= self.worth and self.compiled is None:
            self.optimise()

    def optimise(self) -> Future[xla.Executable]:
        """Compile the optimised form in the background, once."""
        with _lock:
            future = self.compiled
            if future is None:
                future = self.compiled = Future()
                _waiting.append(self)
                _start()
                if _thread is None:
                    _waiting.remove(self)
                    future.cancel()
        return future

    @property
    def is_over(self) -> bool:
        """True once the optimised form has been compiled, or will not be."""
        return self.compiled is not None and self.compiled.done()

    def run(self) -> None:
        """Compile the optimised form in this thread."""
        assert self.compiled is not None
        try:
            with configuration.adopted(self._settings), events.in_background():
                made = self._compile()
        except BaseException as error:
            self.compiled.set_exception(error)
        else:
            self.compiled.set_result(made)
        for watcher in list(self.watchers):
            watcher.note()


#: All that are alive, for reports.
_alive: weakref.WeakSet[QuickTier] = weakref.WeakSet()


def names() -> set[str]:
    """Return the names of the programs that are in the quick tier now."""
    return {quick.name for quick in list(_alive)}


# -------------------------------------------------------------------------------------------------- background thread
_lock = threading.Lock()
_waiting: deque[QuickTier] = deque()
_thread: threading.Thread | None = None


def _start() -> None:
    """Start the background thread if there is none. It ends when nothing is waiting."""
    global _thread
    if _thread is None:
        # No daemon: a process that ends while XLA compiles waits for it, because XLA's threads must not outlive the
        # interpreter. What comes of it is on disk for the next process.
        thread = threading.Thread(target=_work, name="functorch_like.tiers", daemon=False)
        with suppress(RuntimeError):  # the interpreter ends, or there are too many threads
            thread.start()
            _thread = thread


def _work() -> None:
    global _thread
    while True:
        with _lock:
            if not _waiting or not threading.main_thread().is_alive():
                for each in _waiting:
                    each.compiled.cancel()  # type: ignore[union-attr]
                _waiting.clear()
                _thread = None
                return
            quick = _waiting.popleft()
        quick.run()
        del quick  # or the thread keeps the program until the next one


# ----------------------------------------------------------------------------------------------------------- beginning


def begin(
    lowered: Lowered, device: Any, options: dict[str, Any] | None, mode: str
) -> tuple[xla.Executable, QuickTier | None]:
    """Compile a program in the tier in which it starts.

    Args:
        lowered: the program.
        device: where it will run; one device.
        options: the user's compile options.
        mode: of `jit`.

    Returns:
        The executable, and the state of the quick tier; None where the program stays as it is.
    """
    if not _has_tiers(lowered, device, options, mode):
        return lowered.compile(device, options, mode=mode), None
    full = lowered.fitting(device, mode)
    quick = {**full, **option_sets.QUICK}
    if compilation.tiers == "quick":
        return lowered.compile(device, options, fitting=quick), None
    # First by the fingerprint alone, which saves lowering.
    fingerprint = lowered.identify()
    known = lowered.load(device, options, full, fingerprint, lowering=False)
    again = None if known else lowered.load(device, options, quick, fingerprint, lowering=False)
    if known is None and again is None:
        known = lowered.load(device, options, full, fingerprint, lowering=True)
    if known is not None:
        return known, None
    if again is None and lowered.calls_python:
        return lowered.compile(device, options, fitting=full), None
    executable = again or lowered.compile(device, options, fitting=quick, fingerprint=fingerprint)
    cost = tier_costs.estimate(lowered.jaxpr).compile_seconds
    compile_full = lambda: lowered.compile(device, options, fitting=full, fingerprint=fingerprint)
    return executable, QuickTier(compile_full, cost * (_PATIENCE_AGAIN if again else _PATIENCE), lowered.name)


def begin_eager(
    lowered: Lowered, device: Any, options: dict[str, Any] | None, mode: str
) -> tuple[xla.Executable, QuickTier | None]:
    """Compile a program that runs outside of jit; as `begin`, with the same arguments and results.

    On small arrays a program runs as long under quick options, which compile in a third of the time, so these are for
    good. A large program has tiers. Others, such as one operation on many elements, are optimised at once.
    """
    if mode == "default" and _may_be_quick(lowered, device, options):
        costs = tier_costs.estimate(lowered.jaxpr)
        if costs.run_seconds <= _UNNOTICED:
            return lowered.compile(device, options, fitting={**lowered.fitting(device), **option_sets.QUICK}), None
        if costs.compile_seconds >= _LARGE or compilation.tiers == "quick":
            return begin(lowered, device, options, mode)
    return lowered.compile(device, options, mode=mode), None


def _has_tiers(lowered: Lowered, device: Any, options: dict[str, Any] | None, mode: str) -> bool:
    """Return True if a program may start in the quick tier."""
    if mode != "default" or not _may_be_quick(lowered, device, options):
        return False
    if compilation.tiers == "quick":
        return True
    costs = tier_costs.estimate(lowered.jaxpr)
    return costs.equations >= tier_costs.FEWEST and costs.run_seconds < costs.compile_seconds


def _may_be_quick(lowered: Lowered, device: Any, options: dict[str, Any] | None) -> bool:
    """Return True if settings, options and effects leave it open how a program is compiled."""
    if compilation.tiers == "off" or lowered.partitioning is not None:
        return False
    if device.platform != "cpu" or client.CPU_ASYNC or lowered.jaxpr.effects:
        return False
    if determinism.are_deterministic_algorithms_enabled():
        return False
    # A user who sets one of these options has chosen a tier.
    return option_sets.QUICK.keys().isdisjoint({**dict(settings.compile_options("cpu")), **(options or {})})
