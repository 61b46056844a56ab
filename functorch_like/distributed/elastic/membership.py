"""The workers of an elastic run, and the begin and end of its generations. Runs in the launcher.

All events, from every connection, go through one queue and are handled by one thread.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from functorch_like.backends.xla import processes
from functorch_like.distributed.coordinator import Coordinator, free_address, listen
from functorch_like.distributed.running_clock import RunningClock
from functorch_like.distributed.wire import Closed, Connection, Message
from functorch_like.errors import DistributedError

_TICK = 0.25
#: Seconds to wait for a worker that is being replaced, if its memory has a newer state than all others. At the end of
#: the run, also the seconds to wait for a lost worker of another machine.
_PATIENCE = 30.0
#: Seconds to wait for news of the cause after a worker has reported that it failed because another one was lost.
_NEWS_TIMEOUT = 1.0
#: Seconds within which the children of a generation must meet, at least and at most. On a loaded machine the first may
#: be too few: it doubles with each generation that ends without a step.
_MEETING_TIMEOUT, _LONGEST_MEETING = 10.0, 600.0
#: How often to choose a port for a generation, since another program may take it first.
_ATTEMPTS = 10


class Worker:
    """The launcher's record of a worker.

    Attributes:
        number: for messages; given by its launcher.
        step: the number of steps that led to its state.
        is_member: True if it belongs to the present generation.
        is_ready: True if it computes nothing, and waits for the next generation.
        heard: the time of its last message, by the membership's clock.
    """

    def __init__(self, connection: Connection, hello: Message, now: float) -> None:
        self.connection, self.number = connection, int(hello["worker"])
        self.host, self.pid, self.layout = hello["host"], int(hello["pid"]), hello["layout"]
        self.step = int(hello["step"])
        self.child = 0
        self.is_member, self.is_ready, self.is_finished = False, True, False
        self.digest = ""
        self.heard = now


class Membership:
    """The workers of a run.

    Args:
        address: where workers connect, "host:port".
        expected: how many workers the first generation waits for.
        minimum: how many are needed to go on.
        start_timeout: seconds to wait for `expected`; `minimum` is enough afterwards.
        heartbeat_timeout: seconds of silence after which a worker counts as frozen.
        max_stalls: how many generations in a row may end without a step.
        newest: returns the number of steps of the newest state in this machine's memory, including that of workers
            that are being replaced.
        running: returns the numbers of this machine's workers that run or are being replaced.
        tell: takes lines for the user.
    """

    def __init__(
        self,
        address: str,
        expected: int,
        minimum: int,
        *,
        start_timeout: float,
        heartbeat_timeout: float,
        max_stalls: int,
        newest: Callable[[], int],
        running: Callable[[], set[int]],
        tell: Callable[[str], None],
    ) -> None:
        self._listener = listen(address)
        self._host = address.rpartition(":")[0]
        self._expected, self._minimum = expected, minimum
        self._start_timeout, self._deadline = start_timeout, time.monotonic() + start_timeout
        self._heartbeat_timeout, self._max_stalls, self._tell = heartbeat_timeout, max_stalls, tell
        self._clock = RunningClock(max(_TICK, heartbeat_timeout / 4))
        self._events: queue.Queue[tuple[Any, ...]] = queue.Queue()
        self._workers: list[Worker] = []
        self._newest, self._waits_until = newest, 0.0
        self._running, self._ends_at = running, 0.0
        self._returns: dict[int, float] = {}  # workers of other machines that were lost, and when to give them up
        self._number = 0
        self._is_running = False  # a generation computes
        self._best, self._stalls = -1, 0
        self._suspicion: tuple[float, str] | None = None  # when to end the generation at the latest, and why
        self._reason = ""  # of the end of the last generation
        self._coordinator: Coordinator | None = None
        self._over = threading.Event()
        self.failure = ""
        for work in (self._accept, self._work):
            threading.Thread(target=work, name="ft-elastic", daemon=True).start()

    # --------------------------------------------------------------------------------------------------------- threads
    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                if self._over.is_set():
                    return
                time.sleep(_TICK)  # e.g. too many open files
                continue
            with contextlib.suppress(OSError):  # the other side may have ended meanwhile
                threading.Thread(target=self._listen, args=(Connection(sock),), name="ft-elastic", daemon=True).start()

    def _listen(self, connection: Connection) -> None:
        worker = None
        try:
            header, _ = connection.receive(30.0)
            if self._over.is_set():
                connection.send({"op": "over"})
                return
            worker = Worker(connection, header, self._clock.read())
            self._events.put((self._take_in, worker))
            while True:
                header, _ = connection.receive()
                worker.heard = self._clock.read()
                if header["op"] != "beat":
                    self._events.put((self._handle, worker, header))
                connection.send({"op": "beat"})
        except (Closed, KeyError, TypeError, ValueError):  # closed, or no worker of this program
            connection.close()
        if worker is not None:
            self._events.put((self._remove, worker, "its connection closed, as when a process is killed"))

    def _work(self) -> None:
        while not self._over.is_set():
            try:
                with contextlib.suppress(queue.Empty):
                    event = self._events.get(timeout=_TICK)
                    event[0](*event[1:])
                self._watch()
                self._advance()
            except Exception as error:  # else the workers would wait for ever
                self._fail(f"the launcher failed: {type(error).__name__}: {error}")

    # ---------------------------------------------------------------------------------------------------------- events
    def _take_in(self, worker: Worker) -> None:
        if self._workers and self._workers[0].layout != worker.layout:
            worker.connection.send({"op": "refused", "reason": "its state has another structure than the others'"})
            return
        self._workers.append(worker)
        self._returns.pop(worker.number, None)
        if self._is_running:
            self._tell(f"worker {worker.number} joins with the next generation")
            for other in self._members():
                other.connection.send({"op": "join"})

    def _handle(self, worker: Worker, header: Message) -> None:
        if worker not in self._workers or header.get("generation") != self._number:
            return
        if header["op"] == "computing":
            worker.child = header["pid"]
        elif header["op"] == "ready":
            worker.is_ready, worker.step = True, header["step"]
            worker.is_finished, worker.digest = header["why"] == "finished", header["digest"]
            if header["why"] == "failed":
                self._fail(f"worker {worker.number} failed")
            elif header["why"] == "lost":
                self._disturb(f"worker {worker.number}: {header['reason']}")
            elif header["why"] == "follows" and self._suspicion is None:  # news of the cause may follow
                self._suspicion = time.monotonic() + _NEWS_TIMEOUT, f"worker {worker.number}: {header['reason']}"

    def _remove(self, worker: Worker, reason: str) -> None:
        if worker not in self._workers:
            return
        self._workers.remove(worker)
        worker.connection.close()
        self._kill(worker)
        if worker.host != socket.gethostname():
            self._returns[worker.number] = time.monotonic() + _PATIENCE
        if worker.is_member:
            self._disturb(f"worker {worker.number} is gone: {reason}")

    def _kill(self, worker: Worker) -> None:
        """End what may be left of a worker on this machine: a frozen one, or its child."""
        if worker.host == socket.gethostname():
            for group in (worker.pid, worker.child):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    if group:
                        os.killpg(group, signal.SIGKILL)

    def _lose(self, number: int, rank: int, reason: str) -> None:
        """Handle a frozen child, which the coordinator of its generation has noticed; its keeper does not."""
        if number == self._number and self._is_running:
            members = self._members()
            if rank < len(members) and not members[rank].is_ready:
                self._disturb(f"worker {members[rank].number}: {reason}")

    def _refused(self, number: int, reason: str) -> None:
        """Handle a generation that cannot begin. Members that have yet to reach its coordinator get no notice of it."""
        if number == self._number:
            self._disturb(reason)

    def _watch(self) -> None:
        if self._suspicion is not None and time.monotonic() > self._suspicion[0]:
            self._disturb(self._suspicion[1])
        now = self._clock.read()
        for worker in list(self._workers):
            if now - worker.heard > self._heartbeat_timeout:
                self._remove(worker, f"it was silent for {self._heartbeat_timeout:g} s: frozen, or its machine is lost")

    # ----------------------------------------------------------------------------------------------------- generations
    def _members(self) -> list[Worker]:
        return [worker for worker in self._workers if worker.is_member]

    def _disturb(self, reason: str) -> None:
        """End the present generation."""
        self._suspicion = None
        if self._is_running:
            self._is_running, self._reason = False, reason
            self._tell(f"generation {self._number} ends: {reason}")
            for worker in self._members():
                if not worker.is_ready:
                    worker.connection.send({"op": "stop"})

    def _advance(self) -> None:
        """Begin the next generation, or end the run, if the time has come."""
        members = self._members()
        if self._over.is_set() or not all(worker.is_ready for worker in members):
            return
        if members and all(worker.is_finished for worker in members):
            if not self._awaits_others():
                if len(members) == len(self._workers):
                    self._finish(members)
                else:  # a generation without a step: the others get the state
                    self._begin()
            return
        early = self._number == 0 and time.monotonic() < self._deadline
        if len(self._workers) >= (self._expected if early else max(1, self._minimum)) and not self._must_wait():
            self._begin()

    def _awaits_others(self) -> bool:
        """Return True while a lost worker is being replaced, after all steps have been taken: it gets the state.

        Without this wait, a worker that starts too late would not run the script's code after the loop.
        """
        now, here = time.monotonic(), {worker.number for worker in self._workers}
        coming = (self._running() | {number for number, until in self._returns.items() if now < until}) - here
        if coming and not self._ends_at:
            self._ends_at = now + self._start_timeout
            self._tell(f"all steps have been taken; waits for workers that get the state: {_names(sorted(coming))}")
        return bool(coming) and now < self._ends_at

    def _must_wait(self) -> bool:
        """Return True while the worker with the newest state is being replaced."""
        now = time.monotonic()
        if max(worker.step for worker in self._workers) >= self._newest():
            self._waits_until = 0.0
            return False
        self._waits_until = self._waits_until or now + _PATIENCE
        return now < self._waits_until

    def _begin(self) -> None:
        best = max(worker.step for worker in self._workers)
        self._stalls = self._stalls + 1 if best <= self._best and self._number else 0
        if best < self._best:
            self._tell(f"the state of step {self._best} is lost with the machines that had it; the newest is of {best}")
        self._best = max(self._best, best)
        if self._stalls > self._max_stalls:
            self._fail(f"{self._stalls} generations ended without a step; the last one: {self._reason}")
            return
        self._number += 1
        self._is_running, self._suspicion, self._ends_at = True, None, 0.0
        number, count = self._number, len(self._workers)
        listener, address = self._listen_somewhere()
        old, self._coordinator = self._coordinator, self._start_coordinator(listener, address, count, number)
        if old is not None:  # its clients have ended
            threading.Thread(target=old.close, args=(0.0,), daemon=True).start()
        names = _names(worker.number for worker in self._workers)
        self._tell(f"generation {number} begins at step {best} with {count} workers: {names}")
        header = {"op": "generation", "number": number, "count": count, "address": address}
        for rank, worker in enumerate(self._workers):
            worker.is_member, worker.is_ready, worker.is_finished, worker.child = True, False, False, 0
            worker.connection.send({**header, "rank": rank, "heartbeat_timeout": self._heartbeat_timeout})

    def _listen_somewhere(self) -> tuple[socket.socket, str]:
        for _ in range(_ATTEMPTS - 1):
            address = free_address(self._host)
            with contextlib.suppress(DistributedError):
                return listen(address), address
        address = free_address(self._host)
        return listen(address), address

    def _start_coordinator(self, listener: socket.socket, address: str, count: int, number: int) -> Coordinator:
        timeout = max(_MEETING_TIMEOUT, self._heartbeat_timeout)
        timeout = max(timeout, min(timeout * 2.0 ** min(self._stalls, 10), _LONGEST_MEETING))
        return Coordinator(
            listener,
            address,
            count,
            lambda at: processes.start_service(at, count, int(timeout)),
            join_timeout=timeout,
            heartbeat_timeout=self._heartbeat_timeout,
            host_process=None,
            on_silence=lambda rank, reason: self._events.put((self._lose, number, rank, reason)),
            on_refusal=lambda reason: self._events.put((self._refused, number, reason)),
        )

    # --------------------------------------------------------------------------------------------------------- the end
    def _finish(self, members: list[Worker]) -> None:
        if len({worker.digest for worker in members}) > 1:
            different = ", ".join(f"{worker.number}: {worker.digest[:12]}" for worker in members)
            self._fail(f"the workers have different states at the end: {different}")
            return
        self._tell(f"all {len(members)} workers have the same state after step {members[0].step}")
        for worker in self._workers:
            worker.connection.send({"op": "end" if worker.is_member else "over"})
        self._over.set()

    def _fail(self, reason: str) -> None:
        self.failure = self.failure or reason
        self._tell(reason)
        self._over.set()

    @property
    def is_over(self) -> bool:
        """True when the run has ended, well or not."""
        return self._over.is_set()

    def close(self) -> None:
        """Stop listening."""
        self._over.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def _names(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
