"""`jit(mode="max-autotune")`: compile a program with several candidates, and keep the one that runs fastest.

Candidates are timed on the arguments of the first call. They are sets of XLA's options and, on CPUs, the primitives'
standard lowerings instead of the fast ones. The choice is stored on disk beside the programs. A candidate that may
make XLA abort is tried in another process first.
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
from functorch_like.compiler.timing import least_seconds
from functorch_like.errors import FtError

#: Ratio of times to the default candidate that another one must reach: a smaller gain may be noise.
_GAIN = 0.97


@dataclasses.dataclass(frozen=True, eq=False)
class Candidate:
    """Options and lowerings to compile a program with.

    Attributes:
        name: unique among the candidates.
        fitting: compile options; None for those that the default rule chooses.
        fast: True for the fast lowerings of primitives.
        risky: True if XLA may abort.
        of: name of an operation; the candidate is left out for programs without it.
    """

    name: str
    fitting: dict[str, Any] | None = None
    fast: bool = True
    risky: bool = False
    of: bytes = b""

    def settings(self) -> AbstractContextManager[Any]:
        """Return the context manager of the settings for lowering."""
        return nullcontext() if self.fast else flags({"cpu.fast_lowerings": False})


DEFAULT = Candidate("default")
CANDIDATES: dict[str, tuple[Candidate, ...]] = {
    "cpu": (
        DEFAULT,
        Candidate("plain", sets.PLAIN),
        Candidate("fused products", sets.FUSED_DOTS),
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
        make: function that lowers the program, under the settings in force.
        device: the device.
        options: the user's compile options, for all candidates.
        args: arguments for timing.
        name: name of the program in events.
    """
    candidates = CANDIDATES.get(device.platform, (DEFAULT,))
    standard = make()
    if standard.calls_python:  # timing would call Python many times
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
        except FtError as e:  # options that this version of XLA does not have
            failures.append(e)
            continue
        if program is not None and identity not in seen:
            seen.add(identity)
            programs[candidate] = program
    if not programs and failures:  # all failed, because of the user's options
        raise failures[0]
    seconds = least_seconds(programs, args)
    best = min(seconds, key=lambda candidate: seconds[candidate])
    if best is not candidates[0] and candidates[0] in seconds and seconds[best] > _GAIN * seconds[candidates[0]]:
        best = candidates[0]
    table = ", ".join(f"{candidate.name} {took * 1e3:.3g} ms" for candidate, took in seconds.items())
    events.emit("tune", name, time.perf_counter() - started, how=f"chose {best.name}: {table}", seconds_of=seconds)
    record = {"chosen": best.name, "seconds": {candidate.name: took for candidate, took in seconds.items()}}
    cache.remember(note, json.dumps(record))
    return best


def _recalled(text: str | None, candidates: Sequence[Candidate]) -> tuple[Candidate, dict[Candidate, float]] | None:
    """Return the choice of an earlier process, and the seconds that it measured; None without a valid record."""
    try:
        record = json.loads(text or "null")
        by_name = {candidate.name: candidate for candidate in candidates}
        return by_name[record["chosen"]], {by_name[name]: took for name, took in record["seconds"].items()}
    except (ValueError, LookupError, TypeError):  # no record, or one of an earlier version
        return None


def _compiled(
    candidate: Candidate, make: Callable[[], Lowered], device: Any, options: dict[str, Any] | None
) -> tuple[xla.Executable | None, bytes]:
    """Return the program of a candidate, or None if it is left out or its trial died; and the program's identity."""
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
