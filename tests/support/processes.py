"""Programs of several processes on this machine: started, waited for within a limit, and never left running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from functorch_like.distributed.coordinator import free_address

#: Seconds that a program of a test may take on a busy machine.
LIMIT = 90.0


class Ended(NamedTuple):
    """A process that has ended: its exit status, and what it printed."""

    status: int
    output: str
    errors: str


def program(body: str) -> str:
    """A script: the usual imports, `RANK`, `COUNT`, `ADDRESS`, and a body."""
    head = """
        import os, signal, sys, time
        RANK, COUNT, ADDRESS = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
        import numpy as np
        import functorch_like as ft, functorch_like.numpy as fnp
        def initialize(**options):
            limits = dict(initialization_timeout=60, heartbeat_timeout_seconds=60, shutdown_timeout_seconds=10)
            ft.distributed.initialize(ADDRESS, COUNT, RANK, **{**limits, **options})
    """
    return textwrap.dedent(head) + textwrap.dedent(body)


def environment(**more: str) -> dict[str, str]:
    """The variables of the processes: those of this one without what a launcher has set."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("FT_", "SLURM_", "OMPI_"))}
    return {**kept, "FT_PLATFORM": "cpu", "FT_CACHE": "0", **more}


@contextmanager
def start_some(
    body: str, ranks: Sequence[int], count: int, address: str | None = None, **more: str
) -> Iterator[list[subprocess.Popen[str]]]:
    """Run a body in processes with these numbers; those that run when the block ends are killed."""
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
    """Run a body in processes with these numbers, and wait for all of them."""
    with start_some(body, ranks, count, address, **more) as started:
        outputs = [process.communicate(timeout=LIMIT) for process in started]
        return [Ended(p.returncode, quiet(out), err) for p, (out, err) in zip(started, outputs, strict=True)]


def quiet(text: str) -> str:
    """What was printed, without the lines that Gloo writes about its connections."""
    return "".join(line for line in text.splitlines(keepends=True) if "[Gloo]" not in line)


def launch(arguments: Sequence[str], **more: str) -> Ended:
    """Run `python -m functorch_like.distributed.run` with these arguments."""
    command = [sys.executable, "-P", "-m", "functorch_like.distributed.run", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(**more), timeout=LIMIT, check=False)
    return Ended(done.returncode, done.stdout, done.stderr)
