"""The keeper, a worker's process that computes nothing: it holds the state, and starts and ends the child.

It has one thread and has not started XLA, so that it can be forked. A child inherits what the script has loaded.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

from functorch_like.distributed.child_processes import end_with_parent, status_text
from functorch_like.distributed.elastic.generation import FAILED, LEFT, LOST, Place
from functorch_like.distributed.elastic.host_state import HostState
from functorch_like.distributed.running_clock import RunningClock
from functorch_like.distributed.wire import Closed, Connection, Message, split_address
from functorch_like.errors import DistributedError

#: Set by the launcher: its address, the number of this worker, a file to make once the worker has joined, and the
#: descriptor of one in memory for its state.
ADDRESS, WORKER, JOINED_FILE = "FT_ELASTIC_ADDRESS", "FT_ELASTIC_WORKER", "FT_ELASTIC_JOINED"
STATE_FILE = "FT_ELASTIC_STATE"
#: Exit status of a worker whose launcher is gone, or that came when the run was over.
LAUNCHER_GONE, TOO_LATE = 67, 0
_BEAT = 0.5


class Keeper:
    """One worker.

    Args:
        address: of the launcher.
        state: shared with the children.
        compute: the work of a child; returns its exit status.
        step_timeout: seconds without progress after which a child counts as frozen.
        connect_timeout: seconds to wait for the launcher.
    """

    def __init__(
        self,
        address: str,
        state: HostState,
        compute: Callable[[HostState, Place], int],
        *,
        step_timeout: float,
        connect_timeout: float = 60.0,
    ) -> None:
        self._state, self._compute, self._step_timeout = state, compute, step_timeout
        self._child = _Child()
        self._generation = 0
        self._heartbeat_timeout = 100.0
        self._clock = RunningClock(2 * _BEAT)
        self._heard, self._beat_at = self._clock.read(), time.monotonic()
        self._connection = _connect(address, connect_timeout)
        hello = {"op": "hello", "worker": int(os.environ.get(WORKER, "0")), "host": socket.gethostname()}
        self._connection.send({**hello, "pid": os.getpid(), "step": state.step, "layout": state.description()})

    def run(self) -> None:
        """Take part in generations until the launcher ends the run; the state is then the last one.

        Raises:
            DistributedError: where the launcher refuses this worker.
        """
        try:
            while self._once():
                pass
        finally:
            self._child.kill()
            self._connection.close()

    def _once(self) -> bool:
        waits: list[Any] = [self._connection, *([self._child] if self._child.is_running else [])]
        ready, _, _ = select.select(waits, [], [], _BEAT)
        self._beat()
        if self._child in ready:
            self._report_end()
        if self._child.is_running:
            self._watch()
        if self._connection not in ready:
            return True
        try:
            header, _ = self._connection.receive(30.0)
        except Closed:
            self._give_up("the launcher is gone")
        self._heard = self._clock.read()
        return self._handle(header)

    def _handle(self, header: Message) -> bool:
        op = header["op"]
        if op == "generation":
            self._start(header)
        elif op == "stop":
            self._child.kill()
            self._ready("stopped")
        elif op == "join":
            self._state.someone_waits = True
        elif op == "end":
            return False
        elif op == "over":
            print("functorch_like: this worker came when the run was over", file=sys.stderr)
            sys.exit(TOO_LATE)
        elif op == "refused":
            raise DistributedError(header["reason"], fix="start all workers with the same script and arguments")
        return True

    def _start(self, header: Message) -> None:
        self._child.kill()
        self._generation, self._state.someone_waits = header["number"], False
        self._heartbeat_timeout = header["heartbeat_timeout"]
        if JOINED_FILE in os.environ:
            open(os.environ[JOINED_FILE], "w").close()
        place = Place(header["rank"], header["count"], header["address"], header["heartbeat_timeout"])
        self._state.enter("starting", self._state.step)
        self._child.start(lambda: self._in_child(place))
        self._connection.send({"op": "computing", "generation": self._generation, "pid": self._child.pid})

    def _in_child(self, place: Place) -> int:
        self._connection.release()
        return self._compute(self._state, place)

    def _report_end(self) -> None:
        status = self._child.wait()
        if status == 0:
            self._ready("finished")
        elif status == LEFT:
            self._ready("left")
        elif status == FAILED:
            self._ready("failed")
        elif status == LOST:
            self._ready("follows", "it lost another worker")
        else:
            self._ready("lost", f"its process {status_text(status)}")

    def _ready(self, why: str, reason: str = "") -> None:
        step = self._state.step
        digest = self._state.digest() if why == "finished" else ""
        message = {"op": "ready", "generation": self._generation, "step": step, "why": why}
        self._connection.send({**message, "reason": reason, "digest": digest})

    def _watch(self) -> None:
        """End a child that makes no progress. A phase that waits for other workers may take twice the time."""
        now = self._state.progress()
        waits_for_others = now.phase in ("starting", "waiting for a state", "compiling", "in a step", "ending")
        limit = self._step_timeout * (2 if waits_for_others else 1)
        if now.seconds > limit:
            # Reported first: the others lose this worker as it is killed, and report that at once.
            self._ready("lost", f"it was {now.phase} (step {now.step}) for {limit:g} s")
            self._child.kill()

    def _beat(self) -> None:
        now = time.monotonic()
        if now - self._beat_at >= _BEAT:
            self._beat_at = now
            self._connection.send({"op": "beat", "step": self._state.step})
            if self._clock.read() - self._heard > self._heartbeat_timeout + _BEAT:
                self._give_up(f"the launcher was silent for {self._heartbeat_timeout:g} s")

    def _give_up(self, reason: str) -> None:
        self._child.kill()
        print(f"functorch_like: {reason}; this worker ends at step {self._state.step}", file=sys.stderr)
        sys.exit(LAUNCHER_GONE)


class _Child:
    """The process that computes; at most one at a time."""

    def __init__(self) -> None:
        self.pid = 0
        self._handle = -1

    @property
    def is_running(self) -> bool:
        """True from `start` until `kill` or `wait`."""
        return self._handle >= 0

    def fileno(self) -> int:
        """Return the pidfd, which is readable when the child has ended."""
        return self._handle

    def start(self, work: Callable[[], int]) -> None:
        """Fork, and run `work` in the child."""
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # other threads: NumPy's, which expect forks
            pid = os.fork()
        if pid == 0:
            _run_child(work, parent)
        self.pid = pid
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)  # here and in the child: whichever is first
        self._handle = os.pidfd_open(pid)

    def wait(self) -> int:
        """Return the exit status, negative for a signal."""
        os.close(self._handle)
        self._handle = -1
        _, status = os.waitpid(self.pid, 0)
        self._kill_group()  # what it started
        return os.waitstatus_to_exitcode(status)

    def kill(self) -> None:
        """End the child, if there is one, and what it has started."""
        if self.is_running:
            self._kill_group()
            self.wait()

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)


def _run_child(work: Callable[[], int], parent: int) -> None:
    status = FAILED
    try:
        end_with_parent()
        if os.getppid() == parent:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            os.setpgid(0, 0)
            status = work()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(status)


def _connect(address: str, timeout: float) -> Connection:
    deadline = time.monotonic() + timeout
    while True:
        try:
            return Connection(socket.create_connection(split_address(address), timeout=timeout))
        except OSError as error:
            if time.monotonic() > deadline:
                raise DistributedError(
                    f"the launcher could not be reached at {address} within {timeout:g} s: {error}",
                    fix="check that the launcher of machine 0 runs, and the address",
                ) from None
            time.sleep(0.1)
