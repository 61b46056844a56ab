"""Tiers of compilation: programs are compiled quickly first; those that run long are compiled again in the background.

A program starts in the quick tier unless its optimised form is on disk, or one run would last longer than the compile
time saved. `transforms/tier_watch.py` measures its run time. When that reaches the estimated cost of the optimised
form, a background thread compiles it. The next call of the function exchanges the two forms. So the time lost to slow
code and the time lost to needless compiling are about equal at worst.

On a GPU the cost of the optimised form is the timing of kernels for its matrix products; programs without them have
one tier. On a CPU, after much longer, the convolutions of a program are tried both ways (`convolution_trial`), and the
program may be exchanged a second time.
"""

from __future__ import annotations

import math
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from functorch_like.backends import compilation, determinism, settings, xla
from functorch_like.backends.xla import client, configuration, events, option_sets
from functorch_like.backends.xla.jaxlib_api import VERSION
from functorch_like.compiler import gpu_costs, run_times, tier_costs
from functorch_like.compiler.convolution_trial import Trial
from functorch_like.compiler.lower import Lowered

if TYPE_CHECKING:
    from concurrent.futures import Future

#: Run time after which the optimised form is compiled, as a fraction of its estimated cost. Optimised code is several
#: times faster, so waiting for all of the cost would lose more than it saves.
_PATIENCE = 0.5
#: The same fraction if an earlier process has left the quick form on disk: such a program is likely to run again.
_PATIENCE_AGAIN = 0.1
#: The same fractions on GPUs, where quick forms run nearly as fast, and compiling keeps all cores busy.
_PATIENCE_ON_GPU, _PATIENCE_ON_GPU_AGAIN = 1.0, 0.25
#: Seconds of a program's first run that are not counted: libraries prepare themselves (for a convolution in 27 ms), and
#: later runs will not.
_PREPARATION = 30e-3
#: Seconds that an eager call may take longer under quick options: a fifth of the cost of a call.
_UNNOTICED = 1e-6
#: Seconds of compile time below which an eager program has no tiers: measured calls go through Python.
_LARGE = 50e-3 if VERSION < (0, 11) else 25e-3


class Improvement:
    """A better form of a program, to be compiled once the program has run long enough.

    Args:
        compile: makes the form, in the background.
        worth: seconds of run time after which it is compiled.
        name: name of the program.
        quick: True if the form that runs meanwhile is the quick one.
        on_gpu: True for a program whose calls return before their results are computed.
        report: gives a text about the exchange.
        then: gives the improvement of the form, if there is one.

    Attributes:
        spent: seconds that the program has run, but for those that libraries needed once.
        runs: number of runs from Python that are part of it; 0 on GPUs.
        on_gpu: as given.
        compiled: future of the form; None until its compilation is requested.
        watchers: objects whose `note()` is called after the compilation: one for each jitted function of the program.
    """

    def __init__(
        self,
        compile: Callable[[], xla.Executable],
        worth: float,
        name: str,
        *,
        quick: bool,
        on_gpu: bool = False,
        report: Callable[[Improvement], str],
        then: Callable[[xla.Executable], Improvement | None] = lambda executable: None,
    ) -> None:
        self.worth, self.name, self.quick, self.spent = worth, name, quick, 0.0
        self.runs = 0
        self.compiled: Future[xla.Executable] | None = None
        self.watchers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._compile, self._report, self.then = compile, report, then
        self._settings = configuration.snapshot()
        self.on_gpu = on_gpu
        self._sample = run_times.Sampling() if on_gpu else None
        self._uncounted = math.inf if on_gpu else _PREPARATION  # GPUs load kernels and libraries in the first run
        _alive.add(self)

    def measured(self, run: Callable[..., list[Any]], args: Sequence[Any], more: float = 0.0) -> list[Any]:
        """Return the results of a run from Python, and credit its time and `more` seconds."""
        if self._sample is None:
            started = time.perf_counter()
            results = run(args)
            self.credit(time.perf_counter() - started + more)
            self.runs += 1
            return results
        stands = self._sample.count()
        if not stands:
            return run(args)
        results, seconds = run_times.seconds_of(lambda: run(args), args)
        self.credit(stands * (seconds + more))
        return results

    def credit(self, seconds: float) -> None:
        """Add run time; when it reaches `worth`, start to compile the better form."""
        self.spent += max(0.0, seconds - self._uncounted)
        self._uncounted = 0.0
        if self.spent >= self.worth and self.compiled is None:
            self.start()

    def start(self) -> Future[xla.Executable]:
        """Compile the better form in the background, once; return its future."""
        from concurrent.futures import Future  # few programs run for long

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
        """True once the compilation of the better form has ended, failed or been cancelled."""
        return self.compiled is not None and self.compiled.done()

    @property
    def where(self) -> str:
        """The tier in which the program runs meanwhile, for reports."""
        return "in the quick tier" if self.quick else "optimised"

    def report(self) -> str:
        """Return a text about the exchange, for reports."""
        return self._report(self)

    def run(self) -> None:
        """Compile the better form in this thread."""
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


#: All improvements that may still come, for reports.
_alive: weakref.WeakSet[Improvement] = weakref.WeakSet()


def names() -> set[str]:
    """Return the names of the programs that are in the quick tier now."""
    return {each.name for each in list(_alive) if each.quick}


# -------------------------------------------------------------------------------------------------- background thread
_lock = threading.Lock()
_waiting: deque[Improvement] = deque()
_thread: threading.Thread | None = None


def _start() -> None:
    """Start the background thread if there is none. It ends when nothing is waiting."""
    global _thread
    if _thread is None:
        # No daemon: at its end the process waits for XLA, whose threads must not outlive the interpreter. The compiled
        # program is on disk for the next process.
        thread = threading.Thread(target=_work, name="functorch_like.tiers", daemon=False)
        with suppress(RuntimeError):  # Python shuts down, or there are too many threads
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
            improvement = _waiting.popleft()
        improvement.run()
        del improvement  # otherwise the thread keeps the program alive until the next one


# ----------------------------------------------------------------------------------------------------------- beginning


def begin(
    lowered: Lowered, device: Any, options: dict[str, Any] | None, mode: str
) -> tuple[xla.Executable, Improvement | None]:
    """Compile a program in the tier in which it starts.

    Args:
        lowered: the program.
        device: the device; not a mesh.
        options: the user's compile options.
        mode: mode of `jit`.

    Returns:
        The executable, and what will improve it; None if the program is in its last tier.
    """
    if mode != "default" or not _has_tiers(lowered, device, options):
        return lowered.compile(device, options, mode=mode), None
    fingerprint = lowered.identify()
    trial = Trial(lowered, device, options, fingerprint)
    full = trial.fitting
    compile = lambda fitting: lowered.compile(device, options, fitting=fitting, fingerprint=fingerprint)

    def tried(executable: xla.Executable) -> Improvement | None:
        return None if trial.is_over else _by_trial(trial, compile, executable, lowered.name)

    if compilation.tiers != "quick" and not _starts_quick(lowered, device):
        executable = compile(full)
        return executable, tried(executable)
    quick = lowered.quick_fitting(full, device)
    if compilation.tiers == "quick":
        return compile(quick), None
    # First by the fingerprint alone, which saves lowering.
    known = lowered.load(device, options, full, fingerprint, lowering=False)
    again = None if known else lowered.load(device, options, quick, fingerprint, lowering=False)
    if known is None and again is None:
        known = lowered.load(device, options, full, fingerprint, lowering=True)
    if known is None and again is None and _on_gpu(device) and lowered.calls_python:
        known = compile(full)
    if known is not None:
        return known, tried(known)
    return again or compile(quick), Improvement(
        lambda: compile(full),
        _worth(lowered, device, again is not None),
        lowered.name,
        quick=True,
        on_gpu=_on_gpu(device),
        report=lambda own: f"after {own.spent * 1e3:.3g} ms of running in the quick tier",
        then=tried,
    )


def _by_trial(trial: Trial, compile: Callable[[Any], xla.Executable], now: xla.Executable, name: str) -> Improvement:
    """Return the improvement of an optimised form by the faster way to compute its convolutions."""
    before = trial.fitting

    def better() -> xla.Executable:
        trial.run()
        return now if trial.fitting == before else compile(trial.fitting)

    return Improvement(better, trial.worth, name, quick=False, report=lambda own: trial.report)


def begin_eager(
    lowered: Lowered, device: Any, options: dict[str, Any] | None, mode: str
) -> tuple[xla.Executable, Improvement | None]:
    """Compile a program that runs outside of jit; as `begin`, with the same arguments and results.

    A program on small arrays keeps the quick options, which compile in a third of the time and run as fast. A large
    program has tiers. Others, such as one operation on many elements, are optimised at once.
    """
    if mode == "default" and _has_tiers(lowered, device, options):
        if _on_gpu(device):
            return begin(lowered, device, options, mode)
        costs = tier_costs.estimate(lowered.jaxpr)
        if costs.run_seconds <= _UNNOTICED:
            quick = lowered.quick_fitting(lowered.fitting(device), device)
            return lowered.compile(device, options, fitting=quick), None
        if costs.compile_seconds >= _LARGE or compilation.tiers == "quick":
            return begin(lowered, device, options, mode)
    return lowered.compile(device, options, mode=mode), None


def _starts_quick(lowered: Lowered, device: Any) -> bool:
    """Return True if a program is worth the quick tier."""
    if _on_gpu(device):
        return gpu_costs.seconds_of_timing(lowered.jaxpr) > 0
    costs = tier_costs.estimate(lowered.jaxpr)
    return costs.equations >= tier_costs.FEWEST and costs.run_seconds < costs.compile_seconds


def _worth(lowered: Lowered, device: Any, again: bool) -> float:
    """Return the seconds of run time after which a program is optimised; `again`: its quick form was on disk."""
    if _on_gpu(device):
        seconds = gpu_costs.seconds_of_timing(lowered.jaxpr)
        return seconds * (_PATIENCE_ON_GPU_AGAIN if again else _PATIENCE_ON_GPU)
    return tier_costs.estimate(lowered.jaxpr).compile_seconds * (_PATIENCE_AGAIN if again else _PATIENCE)


def _has_tiers(lowered: Lowered, device: Any, options: dict[str, Any] | None) -> bool:
    """Return True unless settings, options or effects of a program exclude tiers."""
    if compilation.tiers == "off" or lowered.partitioning is not None:
        return False
    if _on_gpu(device) and lowered.jaxpr.effects:
        return False
    if client.CPU_ASYNC and not _on_gpu(device):
        return False
    if determinism.are_deterministic_algorithms_enabled():
        return False
    # A user who sets one of these options has chosen a tier.
    quick = option_sets.TIMING if _on_gpu(device) else option_sets.QUICK.keys()
    return quick.isdisjoint([*dict(settings.compile_options(device.platform)), *(options or {})])


def _on_gpu(device: Any) -> bool:
    return device.platform != "cpu"
