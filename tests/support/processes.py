"""Programs of several processes on this machine, started and awaited within a limit; none is left running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from functorch_like.distributed.coordinator import free_address
from functorch_like.distributed.running_clock import RunningClock

#: Seconds that a test's program may take on a busy machine. Only a hanging program takes this long.
LIMIT = 240.0
#: Seconds without progress after which a program counts as hung, where a test can observe progress.
PATIENCE = 90.0


class Ended(NamedTuple):
    """A process that has ended: its exit status and its output."""

    status: int
    output: str
    errors: str


def program(body: str) -> str:
    """Return a script: the usual imports, `RANK`, `COUNT`, `ADDRESS`, and a body."""
    head = """
        import os, signal, sys, time
        RANK, COUNT, ADDRESS = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
        import numpy as np
        import functorch_like as ft, functorch_like.numpy as fnp
        def initialize(**options):
            limits = dict(initialization_timeout=120, heartbeat_timeout_seconds=60, shutdown_timeout_seconds=30)
            ft.distributed.initialize(ADDRESS, COUNT, RANK, **{**limits, **options})
    """
    return textwrap.dedent(head) + textwrap.dedent(body)


def environment(**more: str) -> dict[str, str]:
    """Return the environment of the processes: that of this process without a launcher's variables."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("FT_", "SLURM_", "OMPI_"))}
    # The stacks of a process that hangs are printed when it is aborted.
    return {**kept, "FT_PLATFORM": "cpu", "FT_CACHE": "0", "PYTHONFAULTHANDLER": "1", **more}


def wait_until(condition: Callable[[], object], progress: Callable[[], object], longest: float = 900.0) -> bool:
    """Wait until a condition holds; return False once there is no progress, or the time is over.

    How fast a program runs depends on what else runs on the machine. Time in which this process itself was stopped
    does not count.

    Args:
        condition: function that returns True when the wait is over.
        progress: function whose value changes as the program advances.
        longest: longest wait in seconds.
    """
    clock = RunningClock(1.0)
    last, since, end = progress(), clock.read(), clock.read() + longest
    while not condition():
        time.sleep(0.01)
        now, value = clock.read(), progress()
        if value != last:
            last, since = value, now
        if now - since > PATIENCE or now > end:
            return bool(condition())
    return True


def descendants(pid: int) -> list[int]:
    """Return all descendants of a process, children before grandchildren."""
    parents = {int(path.name): stat[1] for path in Path("/proc").glob("[0-9]*") if (stat := _stat(path.name))}
    found, newest = list[int](), [pid]
    while newest:
        newest = [child for child, parent in parents.items() if parent in newest]
        found += newest
    return found


def _stat(pid: int | str) -> tuple[str, int] | None:
    """Return the state of a process and the id of its parent; None if it has ended."""
    try:
        state, parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
    except OSError:
        return None
    return state, int(parent)


def abort(process: subprocess.Popen[str]) -> str:
    """End a hanging process and its descendants, which print their stacks; return their states before that."""
    pids = [*reversed(descendants(process.pid)), process.pid]
    states = ", ".join(f"{pid}: {stat[0]} (of {stat[1]})" for pid in pids if (stat := _stat(pid)))
    for pid in pids:
        if pid == process.pid and len(pids) > 1:
            time.sleep(2.0)  # time for the launcher to print the output of the others
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGABRT)
    with suppress(subprocess.TimeoutExpired):
        process.wait(10.0)
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return states


def collect(started: Sequence[subprocess.Popen[str]], limit: float = LIMIT) -> list[tuple[str, str]]:
    """Wait for processes and return their outputs; raise AssertionError with the outputs if the time is over."""
    end, results, late = time.monotonic() + limit, list[tuple[str, str]](), list[str]()
    for process in started:
        try:
            results.append(process.communicate(timeout=max(0.1, end - time.monotonic())))
        except subprocess.TimeoutExpired:
            late.append(abort(process))
            results.append(process.communicate())
    if late:
        raise AssertionError("\n".join([f"not ended within {limit:g} s: {late}", *map("".join, results)]))
    return results


@contextmanager
def start_some(
    body: str, ranks: Sequence[int], count: int, address: str | None = None, **more: str
) -> Iterator[list[subprocess.Popen[str]]]:
    """Run a body in processes with these ranks; those still running at the end of the block are killed."""
    address = free_address() if address is None else address
    command = [sys.executable, "-P", "-c", program(body)]
    started = [
        subprocess.Popen(
            [*command, str(rank), str(count), address],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(**more),
            start_new_session=True,
        )
        for rank in ranks
    ]
    try:
        yield started
    finally:
        for process in started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def start(body: str, ranks: Sequence[int], count: int, address: str | None = None, **more: str) -> list[Ended]:
    """Run a body in processes with these ranks, and wait for all of them."""
    with start_some(body, ranks, count, address, **more) as started:
        outputs = collect(started)
        return [Ended(p.returncode, quiet(out), err) for p, (out, err) in zip(started, outputs, strict=True)]


def quiet(text: str) -> str:
    """Return an output without the lines that Gloo writes about its connections."""
    return "".join(line for line in text.splitlines(keepends=True) if "[Gloo]" not in line)


def launch(arguments: Sequence[str], **more: str) -> Ended:
    """Run `python -m functorch_like.distributed.run` with these arguments."""
    command = [sys.executable, "-P", "-m", "functorch_like.distributed.run", *arguments]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(**more)
    )
    ((output, errors),) = collect([process])
    return Ended(process.returncode, output, errors)
