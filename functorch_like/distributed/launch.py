"""Launcher of a program's processes on one machine: start them, mark their output, and end them together."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from types import FrameType
from typing import IO, Any

from functorch_like.distributed.child_processes import end_with_parent, exit_status, status_text

_ENDING = ("SIGINT", "SIGTERM", "SIGHUP")
_PASSED_ON = tuple(getattr(signal, name) for name in (*_ENDING, "SIGUSR1", "SIGUSR2") if hasattr(signal, name))


class Launch:
    """The processes of one machine, which `start` starts and `wait` waits for.

    Args:
        command: of each process.
        nproc: how many there are on this machine.
        count: how many there are on all.
        first: the number of the first on this machine.
        environment: variables of all of them.
        grace: seconds between the signal to end and SIGKILL.
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
        self._ended_by = 0
        self._forced_at = float("inf")
        self._threads: list[threading.Thread] = []
        self._to_start = [
            (first + local, command, {**os.environ, "PYTHONUNBUFFERED": "1", **environment, **variables})
            for local in range(nproc)
            for variables in [self._variables(first + local, local, count)]
        ]

    def start(self) -> None:
        """Start the processes. Call `pass_signals_on` before: a signal may come while they start."""
        for rank, command, environment in self._to_start:
            if not self._stopping:
                self._start(rank, command, environment)
        if self._stopping:  # a process may have been about to start when the signal came
            self.signal(signal.SIGTERM)

    def _variables(self, rank: int, local: int, count: int) -> dict[str, str]:
        """Return the variables of one process."""
        return {"FT_PROCESS_ID": str(rank), "FT_LOCAL_PROCESS_ID": str(local), "FT_NUM_PROCESSES": str(count)}

    def _start(self, rank: int, command: Sequence[str], environment: dict[str, str]) -> None:
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=self._inherited(),
            start_new_session=True,  # so that its own child processes can be ended with it
            preexec_fn=end_with_parent if sys.platform == "linux" else None,
        )
        self._processes[rank] = process
        for source, target in ((process.stdout, sys.stdout), (process.stderr, sys.stderr)):
            self._thread(self._copy, rank, source, target)
        self._thread(self._wait_for, rank, process)

    def _inherited(self) -> Sequence[int]:
        """Return the file descriptors that processes get."""
        return ()

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
        if hasattr(os, "waitid"):  # before its pid can be used again: end the processes that it left running
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

    def end_on(self, number: int) -> None:
        """Record the signal that ends the launch; processes that are left after the grace period are killed."""
        self._ended_by = number
        self._end_by_force_in_a_while()

    def _end_by_force_in_a_while(self) -> None:
        self._stopping = True
        self._forced_at = min(self._forced_at, time.monotonic() + self._grace)

    def stop(self) -> None:
        """Send all processes SIGTERM, and SIGKILL after the grace period."""
        if not self._stopping:
            self._end_by_force_in_a_while()
            self.signal(signal.SIGTERM)

    def wait(self) -> int:
        """Wait until all have ended; return the exit status for the launcher.

        Returns:
            0, or that of the first process that failed, as a shell gives it: 128 plus the number of a signal. Where a
            signal came before all processes were started, that of the signal.
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
                self._end_by_force()
        for thread in self._threads:
            thread.join(2.0)
        failed = first_failure or next(((r, s) for r, s in self._statuses.items() if s), None)
        return self._status_of_starts() if failed is None else exit_status(failed[1])

    def _status_of_starts(self) -> int:
        """Return the exit status of a launch none of whose processes failed."""
        return 0 if len(self._processes) == len(self._to_start) else exit_status(-self._ended_by)

    def _end_by_force(self) -> None:
        if time.monotonic() > self._forced_at:
            self.signal(signal.SIGKILL)

    def _tell_failure(self, rank: int, status: int) -> None:
        others = "" if len(self._processes) == 1 else "; the others are ended"
        print(f"functorch_like: process {rank} {status_text(status)}{others}", file=sys.stderr, flush=True)


def device_variables(options: argparse.Namespace) -> dict[str, str]:
    """Return the variables for the number of devices of a process."""
    return {} if options.cpu_devices is None else {"FT_CPU_DEVICES": str(options.cpu_devices)}


def command_of(options: argparse.Namespace) -> list[str]:
    """Return the command of each process."""
    return [sys.executable, *(["-m"] if options.module else []), options.script, *options.arguments]


def pass_signals_on(launch: Launch) -> None:
    """Send the signals that the launcher gets to all processes."""

    def pass_on(number: int, frame: FrameType | None) -> None:
        launch.signal(number)
        if signal.Signals(number).name in _ENDING:
            launch.end_on(number)

    for number in _PASSED_ON:
        signal.signal(number, pass_on)
