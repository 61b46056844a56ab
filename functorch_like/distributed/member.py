"""A process's connection to the coordinator: exchanges of values, and the watch for processes that end.

TRAP: a collective that waits for a process that has ended may wait for ever, in C++, where no exception reaches it.
So the watch ends this process some time after it is notified of a loss, unless the process ends by itself before.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

from functorch_like.distributed.coordinator import name_ranks
from functorch_like.distributed.running_clock import RunningClock
from functorch_like.distributed.wire import Closed, Connection, Message, split_address, unpack
from functorch_like.errors import DistributedError

_RESTART = "start all processes again, from the last checkpoint; the other process's own output says why it ended"


class Member:
    """A process that joined a program.

    Args:
        address: the coordinator's.
        rank: the number of this process.
        count: number of processes.
        version: of the packages; all processes must have the same.
        join_timeout: seconds to wait for the others.
        heartbeat_timeout: seconds of silence after which the coordinator counts as gone, and for which this process
            may go on after another is gone.
        host_process: the process that the coordinator runs in; None for a launcher.

    Raises:
        DistributedError: where not all processes connected, or they do not fit together.
    """

    def __init__(
        self,
        address: str,
        rank: int,
        count: int,
        version: str,
        *,
        join_timeout: float,
        heartbeat_timeout: float,
        host_process: int | None = 0,
    ) -> None:
        self.rank, self.count = rank, count
        self._heartbeat_timeout, self._host_process = heartbeat_timeout, host_process
        self._news = threading.Condition()
        self._gone: dict[int, str] = {}
        self._left: set[int] = set()
        self._answers: dict[str, dict[int, bytes]] = {}
        self._missing: dict[str, Message] = {}
        self._coordinator_lost = ""
        self._closed = False  # set when all processes have left
        self._quit = threading.Event()  # set when this process leaves
        self._rounds: dict[str, int] = {}
        self._clock = RunningClock(heartbeat_timeout / 4)
        deadline = time.monotonic() + join_timeout
        self._connection = _reach(address, deadline, join_timeout)
        hello = {"rank": rank, "count": count, "version": version, "host": socket.gethostname(), "pid": os.getpid()}
        self._connection.send(hello)
        try:
            self._await_go(address, join_timeout)
        except BaseException:
            self._connection.close()
            raise
        self._heard = self._clock.read()  # how long the others took to come does not count
        # TRAP: no thread can be started while Python ends, so the thread of `_end_after_a_loss` starts now, and waits.
        for target in (self._listen, self._beat, self._end_after_a_loss):
            threading.Thread(target=target, name="ft-member", daemon=True).start()

    @property
    def hostname(self) -> str:
        """The address of this machine on the way to the coordinator."""
        return self._connection.local_host

    def _await_go(self, address: str, timeout: float) -> None:
        try:
            # The coordinator's own timeout began later if this process came first, so its answer may take longer.
            header, _ = self._connection.receive(2 * timeout)
        except Closed as error:
            raise DistributedError(
                f"process {self.rank} lost the coordinator at {address} before all processes had come: {error}",
                fix="look at the output of process 0",
            ) from None
        if header["op"] == "refused":
            raise DistributedError(
                header["reason"],
                fix="start every process with the same coordinator_address and num_processes, each with a process_id "
                "of its own; a longer initialization_timeout waits longer",
            )

    # ------------------------------------------------------------------------------------------------------- the watch
    def _listen(self) -> None:
        while True:
            try:
                header, payload = self._connection.receive()
            except Closed as error:
                self._connection.close()
                self._lose_coordinator(f"the connection to the coordinator ended: {error}")
                return
            self._heard = self._clock.read()
            self._take(header, payload)

    def _take(self, header: Message, payload: bytes) -> None:
        op = header["op"]
        with self._news:
            if op == "all":
                self._answers[header["key"]] = unpack(header["table"], payload)
            elif op == "missing":
                self._missing[header["key"]] = header
            elif op == "left":
                self._left.add(header["rank"])
            elif op == "closed":
                self._closed = True
            elif op == "gone":
                self._gone[header["rank"]] = header["reason"]
                if len(self._gone) == 1:  # within the lock: an error because of it is then written behind this text
                    _announce(f"process {self.rank}: {self.loss()}")
            self._news.notify_all()

    def _lose_coordinator(self, reason: str) -> None:
        with self._news:
            if self._quit.is_set() or self._closed:
                return
            self._coordinator_lost = reason
            # jaxlib would abort this process, with a longer message.
            _announce(f"process {self.rank}: {self.loss()}", "without the coordinator this process ends now")
            self._news.notify_all()
        _end_process()

    def _end_after_a_loss(self) -> None:
        """End this process some time after another is gone, unless it leaves before."""
        seconds = self._heartbeat_timeout
        with self._news:
            while not (self._gone or self._quit.is_set()):
                self._news.wait()
            deadline = time.monotonic() + seconds
            while not self._quit.is_set() and time.monotonic() < deadline:
                self._news.wait(deadline - time.monotonic())
            if self._quit.is_set():
                return
        _announce(f"process {self.rank}: {self.loss()}", f"ends, after {seconds:g} s in which it did not end by itself")
        _end_process()

    def _beat(self) -> None:
        interval = min(10.0, self._heartbeat_timeout / 4)
        while not self._quit.wait(interval):
            self._connection.send({"op": "beat"})
            if (
                self._clock.read() - self._heard > self._heartbeat_timeout + interval
                and self._host_process != self.rank
            ):
                self._lose_coordinator(f"the coordinator was silent for {self._heartbeat_timeout:g} s")
                return

    def loss(self, wait: float = 0.0) -> str:
        """Return a text about the first process that ended, "" where none did.

        Args:
            wait: seconds to wait for such news: an error of a collective may arrive before them.
        """
        deadline = time.monotonic() + wait
        with self._news:
            while not self.has_losses and time.monotonic() < deadline:
                self._news.wait(deadline - time.monotonic())
            for rank, reason in self._gone.items():  # the first process; the others ended because of it
                return f"process {rank} of {self.count} is gone: {reason}"
            return self._coordinator_lost or self._left_text()

    @property
    def has_losses(self) -> bool:
        """True if a process, or the coordinator, ended without leaving."""
        return bool(self._gone or self._coordinator_lost)

    def _left_text(self) -> str:
        left = sorted(self._left)
        return f"{name_ranks(left)} of {self.count} left the program before" if left else ""

    # ------------------------------------------------------------------------------------------------------- exchanges
    def exchange(
        self, key: str, value: bytes, timeout: float, ranks: Sequence[int] | None = None, what: str = ""
    ) -> dict[int, bytes]:
        """Give a value and return those of all processes of `ranks`, once all have given one.

        Args:
            key: the same in all processes; each use of a key is a round of its own.
            value: of this process.
            timeout: seconds to wait for the others.
            ranks: the processes that take part; all if None.
            what: the name of the exchange in messages.

        Raises:
            DistributedError: where a process is gone, has ended, or does not come in time.
        """
        if self.count == 1:
            return {self.rank: value}
        ranks = sorted(range(self.count) if ranks is None else ranks)
        what = what or key
        with self._news:
            self._rounds[key] = self._rounds.get(key, 0) + 1
            key = f"{key}#{self._rounds[key]}"
        self._connection.send({"op": "give", "key": key, "ranks": ranks}, value)
        deadline = time.monotonic() + timeout
        with self._news:
            while key not in self._answers:
                self._check_alive(ranks, what)
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    break
                self._news.wait(min(remaining, 1.0))
            else:
                return self._answers.pop(key)
        raise self._late(key, ranks, what, timeout)

    def _check_alive(self, ranks: Sequence[int], what: str) -> None:
        gone = [rank for rank in ranks if rank in self._gone]
        left = [rank for rank in ranks if rank in self._left]
        if gone or self._coordinator_lost:
            raise DistributedError(f"{what} waits for all processes, and {self.loss()}", fix=_RESTART)
        if left:
            raise DistributedError(
                f"{what} waits for {name_ranks(left)}, which left the program before",
                fix="let every process call the same functions in the same order, until it calls shutdown",
            )

    def _late(self, key: str, ranks: Sequence[int], what: str, timeout: float) -> DistributedError:
        self._connection.send({"op": "missing", "key": key, "ranks": list(ranks)})
        deadline = time.monotonic() + 5.0
        with self._news:
            while key not in self._missing and time.monotonic() < deadline:
                self._news.wait(0.2)
            report = self._missing.pop(key, {"ranks": [], "waiting": {}})
        late = name_ranks(report["ranks"]) if report["ranks"] else "another process"
        elsewhere = [f"{other.partition('#')[0]!r} ({name_ranks(w)})" for other, w in report["waiting"].items() if w]
        hint = f"; waited for elsewhere: {', '.join(elsewhere)}" if elsewhere else ""
        return DistributedError(
            f"{what}: {late} did not come within {timeout:g} s{hint}",
            fix="let every process call the same functions in the same order",
        )

    # --------------------------------------------------------------------------------------------------------- the end
    def leave(self, timeout: float) -> str:
        """Leave in order, and wait for the others to.

        Returns:
            Why not all of them left, "" if they did.
        """
        self._connection.send({"op": "bye"})
        deadline = time.monotonic() + timeout
        with self._news:
            while not (self._closed or self._coordinator_lost) and time.monotonic() < deadline:
                self._news.wait(min(1.0, max(0.0, deadline - time.monotonic())))
            self._quit.set()
            self._news.notify_all()
            if self._closed or self._coordinator_lost:
                return self.loss() if self.has_losses else ""
            staying = sorted(set(range(self.count)) - self._left - self._gone.keys() - {self.rank})
        return f"{name_ranks(staying)} did not leave within {timeout:g} s" if staying else ""

    def fail(self, reason: str) -> None:
        """Notify the others that this process ends with an error."""
        self._quit_now()
        self._connection.send({"op": "failed", "reason": reason})

    def disconnect(self) -> None:
        """Close the connection."""
        self._quit_now()
        self._connection.close()

    def _quit_now(self) -> None:
        with self._news:
            self._quit.set()
            self._news.notify_all()


def _reach(address: str, deadline: float, timeout: float) -> Connection:
    """Connect to the coordinator, which may not have started yet."""
    host, port = split_address(address)
    while True:
        remaining = deadline - time.monotonic()
        try:
            return Connection(socket.create_connection((host, port), timeout=max(0.1, remaining)))
        except OSError as error:
            if remaining <= 0.1:
                raise DistributedError(
                    f"process 0, which has the coordinator, could not be reached at {address} within {timeout:g} s: "
                    f"{error.strerror or error}",
                    fix="check that process 0 runs, and that coordinator_address is the same in all processes",
                ) from None
            time.sleep(min(0.05, remaining))


def _announce(text: str, consequence: str = "") -> None:
    sys.stderr.write(f"functorch_like: {text}" + (f"; {consequence}" if consequence else "") + "\n")
    sys.stderr.flush()


def _end_process() -> Any:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue
    os._exit(1)
