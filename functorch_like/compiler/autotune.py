"""`jit(mode="max-autotune")`: a program is compiled by several candidates, and the one that runs fastest is kept.

Candidates are timed on the arguments of the first call. They are XLA's option sets and, on CPUs, the primitives'
standard lowerings beside the fast ones. What was chosen is remembered on disk beside the programs. A candidate that
might make XLA abort is tried in another process first.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from functorch_like.backends import flags, xla
from functorch_like.backends.xla import cache, compile_options, events
from functorch_like.backends.xla import option_sets as sets
from functorch_like.compiler.lower import Lowered
from functorch_like.errors import FtError

#: A candidate must be this much faster than the default one to be taken: less may be noise.
_GAIN = 0.97
_ROUNDS = 7
#: Seconds that one sample lasts at least, for the clock not to matter.
_SAMPLE = 2e-3


@dataclasses.dataclass(frozen=True, eq=False)
class Candidate:
    """Options and lowerings to compile a program with.

    Attributes:
        name: unique among the candidates.
        fitting: compile options; None for those that the default rule chooses.
        fast: whether primitives take their fast lowerings.
        risky: whether XLA might abort.
        of: the operation that it is about: programs without it leave the candidate out.
    """

    name: str
    fitting: dict[str, Any] | None = None
    fast: bool = True
    risky: bool = False
    of: bytes = b""

    def settings(self) -> AbstractContextManager[Any]:
        """The settings under which it is lowered."""
        return nullcontext() if self.fast else flags({"cpu.fast_lowerings": False})


DEFAULT = Candidate("default")
CANDIDATES: dict[str, tuple[Candidate, ...]] = {
    "cpu": (
        DEFAULT,
        Candidate("plain", sets.PLAIN),
        Candidate("all dots", sets.ALL_DOTS),
        Candidate("oneDNN", sets.ONEDNN, risky=True),
        Candidate("no library", sets.NONE),
        Candidate("convolutions", sets.CONVOLUTIONS, of=b"convolution"),
        Candidate("standard lowerings", fast=False),
    ),
    "gpu": (DEFAULT, Candidate("graphs", sets.GRAPHS, risky=True)),
}


def choose(
    make: Callable[[], Lowered], device: Any, options: dict[str, Any] | None, args: Sequence[Any], name: str
) -> Candidate:
    """Return the candidate whose program runs fastest on a device.

    Args:
        make: lowers it, under the settings in force.
        device: where it will run.
        options: the user's, which hold for each candidate.
        args: arguments to time it with.
        name: for events.
    """
    candidates = CANDIDATES.get(device.platform, (DEFAULT,))
    standard = make()
    if standard.calls_python:  # timing it would call again and again
        events.emit("tune", name, how=f"{candidates[0].name}, because the program has callbacks")
        return candidates[0]
    note = cache.key(standard.module, compile_options.options(device, options), device, f"tuned among {candidates}")
    known = _recalled(cache.recall(note), candidates)
    if known is not None:
        best, seconds = known
        events.emit("tune", name, how=f"{best.name}, as measured before", seconds_of=seconds)
        return best
    started = time.perf_counter()
    programs: dict[Candidate, Any] = {}
    seen: set[bytes] = set()
    failures: list[FtError] = []
    for candidate in candidates:
        try:
            program, identity = _compiled(candidate, make, device, options)
        except FtError as e:  # options that are unknown to this version
            failures.append(e)
            continue
        if program is not None and identity not in seen:
            seen.add(identity)
            programs[candidate] = program
    if not programs and failures:  # so not the candidates are refused, but the user's options
        raise failures[0]
    seconds = _time(programs, args)
    best = min(seconds, key=lambda candidate: seconds[candidate])
    if best is not candidates[0] and candidates[0] in seconds and seconds[best] > _GAIN * seconds[candidates[0]]:
        best = candidates[0]
    table = ", ".join(f"{candidate.name} {took * 1e3:.3g} ms" for candidate, took in seconds.items())
    events.emit("tune", name, time.perf_counter() - started, how=f"chose {best.name}: {table}", seconds_of=seconds)
    record = {"chosen": best.name, "seconds": {candidate.name: took for candidate, took in seconds.items()}}
    cache.remember(note, json.dumps(record))
    return best


def _recalled(text: str | None, candidates: Sequence[Candidate]) -> tuple[Candidate, dict[Candidate, float]] | None:
    """The candidate that an earlier process chose, and the seconds that it measured; None where there was none."""
    try:
        record = json.loads(text or "null")
        by_name = {candidate.name: candidate for candidate in candidates}
        return by_name[record["chosen"]], {by_name[name]: took for name, took in record["seconds"].items()}
    except (ValueError, LookupError, TypeError):  # none, or of an earlier version
        return None


def _compiled(
    candidate: Candidate, make: Callable[[], Lowered], device: Any, options: dict[str, Any] | None
) -> tuple[xla.Executable | None, bytes]:
    """The program of a candidate, None if there is no use in it or a trial of it died, and the program's identity."""
    from functorch_like.backends.xla import mlir, subprocess_trial

    with candidate.settings():
        lowered = make()
        all_options = lowered.options(device, options, fitting=candidate.fitting)
        program = mlir.anonymous_bytecode(lowered.module)
        identity = program + repr(sorted(all_options.items())).encode()
        if candidate.of not in program:
            return None, identity
        if candidate.risky and not subprocess_trial.survives(lowered.module, device, all_options):
            return None, identity
        return lowered.compile(device, options, fitting=candidate.fitting), identity


def _time(programs: dict[Candidate, xla.Executable], args: Sequence[Any]) -> dict[Candidate, float]:
    """Seconds of one run, the least of several samples taken in turn."""
    counts: dict[Candidate, int] = {}
    for candidate, program in programs.items():
        _run(program, args, 1)
        counts[candidate] = max(1, round(_SAMPLE / max(1e-6, _run(program, args, 1))))
    best: dict[Candidate, float] = {}
    for _ in range(_ROUNDS):
        for candidate, program in programs.items():
            took = _run(program, args, counts[candidate]) / counts[candidate]
            best[candidate] = min(took, best.get(candidate, took))
    return best


def _run(program: xla.Executable, args: Sequence[Any], count: int) -> float:
    started = time.perf_counter()
    outs: list[Any] = []
    for _ in range(count):
        outs = program.execute(args)
    for out in outs:
        xla.block_until_ready(out)
    return time.perf_counter() - started
