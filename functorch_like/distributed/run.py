"""Start the processes of a program: `python -m functorch_like.distributed.run --nproc 4 script.py [arguments]`.

On several machines, once on each:

    python -m functorch_like.distributed.run --nproc 8 --nnodes 2 --node-rank 0 --coordinator HOST:PORT script.py

The script calls `ft.distributed.initialize()` without arguments. Each line that a process prints is marked with the
number of the process. When one fails, the others are ended, and the exit status is that of the first that failed.
SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are passed on to all processes.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from types import FrameType
from typing import IO, Any

from functorch_like.backends.xla import processes
from functorch_like.distributed.coordinator import Coordinator, free_address, listen
from functorch_like.distributed.lifecycle import LAUNCHER_HAS_COORDINATOR
from functorch_like.distributed.wire import split_address
from functorch_like.errors import DistributedError

_PASSED_ON = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2") if hasattr(signal, name)
)
_PR_SET_PDEATHSIG = 1


class Launch:
    """The processes of one machine.

    Args:
        command: of each process.
        nproc: how many there are on this machine.
        count: how many there are on all.
        first: the number of the first on this machine.
        environment: variables of all of them.
        grace: seconds between the request to end and the end by force.
        bare: print lines as they are, without numbers.
    """

    def __init__(
        self,
        command: Sequence[str],
        nproc: int,
        count: int,
        first: int,
        environment: dict[str, str],
        *,
        grace: float = 5.0,
        bare: bool = False,
    ) -> None:
        self._grace, self._bare = grace, bare
        self._width = len(str(count - 1))
        self._output = threading.Lock()
        self._ended = threading.Condition()
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._statuses: dict[int, int] = {}
        self._stopping = False
        self._forced_at = float("inf")
        self._threads: list[threading.Thread] = []
        for local in range(nproc):
            rank = first + local
            variables = {"FT_PROCESS_ID": str(rank), "FT_LOCAL_PROCESS_ID": str(local), "FT_NUM_PROCESSES": str(count)}
            self._start(rank, command, {**os.environ, "PYTHONUNBUFFERED": "1", **environment, **variables})

    def _start(self, rank: int, command: Sequence[str], environment: dict[str, str]) -> None:
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # so that what a process starts can be ended with it
            preexec_fn=_end_with_parent if sys.platform == "linux" else None,
        )
        self._processes[rank] = process
        for source, target in ((process.stdout, sys.stdout), (process.stderr, sys.stderr)):
            self._thread(self._copy, rank, source, target)
        self._thread(self._wait_for, rank, process)

    def _thread(self, work: Any, *args: Any) -> None:
        thread = threading.Thread(target=work, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _copy(self, rank: int, source: IO[bytes], target: IO[str]) -> None:
        """Print the lines of a process, each with its number."""
        mark = b"" if self._bare else f"[{rank:{self._width}}] ".encode()
        for line in source:
            with self._output, contextlib.suppress(OSError, ValueError):
                target.buffer.write(mark + line + (b"" if line.endswith(b"\n") else b"\n"))  # type: ignore[attr-defined]
                target.flush()

    def _wait_for(self, rank: int, process: subprocess.Popen[bytes]) -> None:
        if hasattr(os, "waitid"):  # before its number is free for others: end what it left running
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        status = process.wait()
        with self._ended:
            self._statuses[rank] = status
            self._ended.notify_all()

    def signal(self, number: int) -> None:
        """Send a signal to all processes, and to what they have started."""
        for rank, process in self._processes.items():
            if rank in self._statuses:
                continue
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, number)

    def end_by_force_in_a_while(self) -> None:
        """End the processes by force that are left after the time of grace."""
        self._stopping = True
        self._forced_at = min(self._forced_at, time.monotonic() + self._grace)

    def stop(self) -> None:
        """Ask all processes to end, and end them by force in a while."""
        if not self._stopping:
            self.end_by_force_in_a_while()
            self.signal(signal.SIGTERM)

    def wait(self) -> int:
        """Wait until all have ended; return the exit status for the launcher.

        Returns:
            0, or that of the first process that failed, as a shell gives it: 128 plus the number of a signal.
        """
        first_failure = None
        with self._ended:
            while len(self._statuses) < len(self._processes):
                self._ended.wait(0.2)
                if first_failure is None:
                    first_failure = next(((r, s) for r, s in self._statuses.items() if s), None)
                    if first_failure is not None and not self._stopping:
                        self._tell_failure(*first_failure)
                        self.stop()
                if time.monotonic() > self._forced_at:
                    self.signal(signal.SIGKILL)
        for thread in self._threads:
            thread.join(2.0)
        failed = first_failure or next(((r, s) for r, s in self._statuses.items() if s), None)
        return 0 if failed is None else failed[1] if failed[1] > 0 else 128 - failed[1]

    def _tell_failure(self, rank: int, status: int) -> None:
        others = "" if len(self._processes) == 1 else "; the others are ended"
        print(f"functorch_like: process {rank} {status_text(status)}{others}", file=sys.stderr, flush=True)


def status_text(status: int) -> str:
    """Return "failed with status 1" or "was ended by SIGKILL"."""
    if status >= 0:
        return f"failed with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"


_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def _end_with_parent() -> None:
    """Let the kernel end this process when the launcher dies, in whatever way."""
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m functorch_like.distributed.run", description="Start the processes of a program."
    )
    parser.add_argument("--nproc", type=int, default=1, help="processes on this machine")
    parser.add_argument("--nnodes", type=int, default=1, help="machines, each with as many processes")
    parser.add_argument("--node-rank", type=int, default=0, help="the number of this machine, from 0")
    parser.add_argument("--coordinator", metavar="HOST:PORT", help="an address of machine 0; needed for several")
    parser.add_argument("--cpu-devices", type=int, help="CPU devices of each process")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds to wait for all processes to start")
    parser.add_argument("--heartbeat-timeout", type=float, default=100.0, help="seconds of silence of a lost process")
    parser.add_argument("--grace", type=float, default=5.0, help="seconds for processes to end when one has failed")
    parser.add_argument("--bare", action="store_true", help="print lines without the number of the process")
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module")
    parser.add_argument("script", help="what each process runs")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="of the script")
    options = parser.parse_args(arguments)
    if options.nproc < 1 or options.nnodes < 1:
        parser.error("--nproc and --nnodes are at least 1")
    if not 0 <= options.node_rank < options.nnodes:
        parser.error(f"--node-rank {options.node_rank} is not below --nnodes {options.nnodes}")
    if options.nnodes > 1 and options.coordinator is None:
        parser.error("several machines need --coordinator HOST:PORT, an address of machine 0")
    if options.coordinator is not None:
        try:
            split_address(options.coordinator)
        except ValueError:
            parser.error(f"--coordinator {options.coordinator!r} is no address; write HOST:PORT")
    return options


def main(arguments: Sequence[str]) -> int:
    """Start the processes, wait for them, and return the exit status."""
    options = parse(arguments)
    address = options.coordinator or free_address()
    count = options.nproc * options.nnodes
    environment = {"FT_COORDINATOR_ADDRESS": address, LAUNCHER_HAS_COORDINATOR: "1"}
    if options.cpu_devices is not None:
        environment["FT_CPU_DEVICES"] = str(options.cpu_devices)
    coordinator = None
    if options.node_rank == 0:
        try:
            coordinator = _coordinator(address, count, options)
        except DistributedError as error:
            print(f"functorch_like: {error}", file=sys.stderr)
            return 1
    command = [sys.executable, *(["-m"] if options.module else []), options.script, *options.arguments]
    launch = Launch(
        command,
        options.nproc,
        count,
        options.node_rank * options.nproc,
        environment,
        grace=options.grace,
        bare=options.bare,
    )
    _pass_signals_on(launch)
    try:
        return launch.wait()
    finally:
        if coordinator is not None:
            coordinator.close(options.grace if options.nnodes > 1 else 1.0)


def _coordinator(address: str, count: int, options: argparse.Namespace) -> Coordinator:
    return Coordinator(
        listen(address),
        address,
        count,
        lambda at: processes.start_service(at, count, max(1, int(options.timeout))),
        join_timeout=options.timeout,
        heartbeat_timeout=options.heartbeat_timeout,
        host_process=None,
    )


def _pass_signals_on(launch: Launch) -> None:
    def pass_on(number: int, frame: FrameType | None) -> None:
        launch.signal(number)
        if number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            launch.end_by_force_in_a_while()

    for number in _PASSED_ON:
        signal.signal(number, pass_on)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
