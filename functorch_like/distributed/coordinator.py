"""Coordinator of a program's processes: it connects them, exchanges small values, and reports ends of processes.

It runs on threads of process 0, or in the launcher. Each process keeps one TCP connection to it. A death closes
that connection; a frozen process or lost machine stops its heartbeats.
"""

from __future__ import annotations

import errno
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from functorch_like.distributed.running_clock import RunningClock
from functorch_like.distributed.wire import Closed, Connection, Message, join_address, pack, split_address
from functorch_like.errors import DistributedError


def listen(address: str) -> socket.socket:
    """Listen at an address.

    Raises:
        DistributedError: where the port is in use, or the address is not this machine's.
    """
    host, port = split_address(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise DistributedError(
            f"the coordinator cannot listen at {address}: {error.strerror}", fix=_fix(error)
        ) from None


def _fix(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "choose another port, or end the program that has this one"
    if error.errno in (errno.EADDRNOTAVAIL, socket.EAI_NONAME):
        return "give coordinator_address of the machine of process 0, or coordinator_bind_address='0.0.0.0:PORT' there"
    return "check coordinator_address"


class Coordinator:
    """Server for the processes of one program.

    Args:
        listener: from `listen`.
        address: the one that processes connect to.
        count: number of processes.
        start_service: starts jaxlib's service at an address, when all processes have connected.
        join_timeout: seconds within which all processes must connect.
        heartbeat_timeout: seconds of silence after which a process counts as gone.
        host_process: the number of the process that it runs in; None for a launcher.
        on_silence: called with the number of a process that is silent, and a text about it.
        on_refusal: called with the reason, where the program cannot begin.
    """

    def __init__(
        self,
        listener: socket.socket,
        address: str,
        count: int,
        start_service: Callable[[str], Any],
        *,
        join_timeout: float,
        heartbeat_timeout: float,
        host_process: int | None = 0,
        on_silence: Callable[[int, str], None] | None = None,
        on_refusal: Callable[[str], None] | None = None,
    ) -> None:
        self._on_silence, self._on_refusal = on_silence, on_refusal
        self._listener, self._address, self._count = listener, address, count
        self._start_service, self._host_process = start_service, host_process
        self._join_timeout, self._heartbeat_timeout = join_timeout, heartbeat_timeout
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._all_left = threading.Event()
        self._connections: dict[int, Connection] = {}
        self._failing: set[int] = set()  # processes that reported why they end
        self._hellos: dict[int, Message] = {}
        self._clock = RunningClock(heartbeat_timeout / 4)
        self._heard: dict[int, float] = {}  # time of the last message of each process, by that clock
        self._left: set[int] = set()
        self._gone: dict[int, str] = {}
        self._disconnected: set[int] = set()
        self._exchanges: dict[str, dict[int, bytes]] = {}
        self._service: Any = None
        self._complete = False  # all processes have connected
        self._started = False
        self._refused = False
        for target in (self._accept, self._watch):
            threading.Thread(target=target, name="ft-coordinator", daemon=True).start()

    # --------------------------------------------------------------------------------------------------- the beginning
    def _accept(self) -> None:
        deadline = time.monotonic() + self._join_timeout
        while not (self._complete or self._refused or self._ended.is_set()):
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                self._refuse(self._missing_text())
                break
            try:
                self._listener.settimeout(min(remaining, 0.2))
                connection = Connection(self._listener.accept()[0])
            except OSError:
                continue
            threading.Thread(target=self._serve, args=(connection,), name="ft-coordinator", daemon=True).start()
        self._listener.close()
        if self._complete:
            self._begin()

    def _missing_text(self) -> str:
        with self._lock:
            missing = [rank for rank in range(self._count) if rank not in self._hellos]
        return (
            f"{name_ranks(missing)} of {self._count} did not come to {self._address} within {self._join_timeout:g} s; "
            f"{len(self._hellos)} came"
        )

    def _refuse(self, reason: str) -> None:
        """Refuse all processes, because the program cannot begin."""
        with self._lock:
            if self._started or self._refused:
                return
            self._refused = True
            for connection in self._connections.values():
                connection.send({"op": "refused", "reason": reason})
        if self._on_refusal is not None:
            self._on_refusal(reason)

    def _serve(self, connection: Connection) -> None:
        rank = None
        try:
            hello, _ = connection.receive()
            rank = self._greet(connection, hello)
            while rank is not None:
                header, payload = connection.receive()
                self._handle(rank, connection, header, payload)
        except (Closed, KeyError, TypeError, ValueError):  # closed, or no process of this program
            pass
        connection.close()
        if rank is not None:
            self._lost(rank, "its connection closed, as when a process is killed or crashes")
            with self._lock:
                self._disconnected.add(rank)
                self._check_all_left()

    def _greet(self, connection: Connection, hello: Message) -> int | None:
        """Accept a process; refuse all processes where it does not fit."""
        rank = int(hello["rank"])
        with self._lock:
            if self._refused or self._complete:
                connection.send({"op": "refused", "reason": "the program has started without this process"})
                return None
            reason = self._misfit(rank, hello)
            if reason:
                connection.send({"op": "refused", "reason": reason})
                self._refuse(reason)
                return None
            self._connections[rank], self._hellos[rank] = connection, hello
            if len(self._hellos) == self._count:
                self._complete = True
                self._wake_accept()
        return rank

    def _misfit(self, rank: int, hello: Message) -> str:
        if hello["count"] != self._count:
            return f"process {rank} expects {hello['count']} processes, and the coordinator {self._count}"
        if not 0 <= rank < self._count:
            return f"process_id={rank} is not below num_processes={self._count}"
        if rank in self._hellos:
            first, second = self._hellos[rank], hello
            return f"two processes have process_id={rank}: {_where(first)} and {_where(second)}"
        for other, known in self._hellos.items():
            if known["version"] != hello["version"]:
                return f"process {other} runs {known['version']}, and process {rank} runs {hello['version']}"
        return ""

    def _wake_accept(self) -> None:
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # `accept` then ends by its timeout

    def _begin(self) -> None:
        """Start jaxlib's service, which takes the port over, and let all processes begin."""
        try:
            service = self._start_service(self._address)
        except Exception as error:  # else the processes would wait for an answer until their time is over
            self._refuse(error.reason if isinstance(error, DistributedError) else f"{type(error).__name__}: {error}")
            return
        with self._lock:
            if self._ended.is_set():  # closed meanwhile
                service.shutdown()
                return
            # Processes send heartbeats from now on: how long they have waited for the others does not count.
            self._heard = dict.fromkeys(self._hellos, self._clock.read())
            self._service, self._started = service, True
            for connection in self._connections.values():
                connection.send({"op": "go"})

    # ------------------------------------------------------------------------------------------------------- messages
    def _handle(self, rank: int, connection: Connection, header: Message, payload: bytes) -> None:
        self._heard[rank] = self._clock.read()
        op = header["op"]
        if op == "beat":
            connection.send({"op": "beat"})
        elif op == "give":
            self._give(rank, header["key"], header["ranks"], payload)
        elif op == "missing":
            self._tell_missing(connection, header["key"], header["ranks"])
        elif op == "failed":
            self._failing.add(rank)
            self._lost(rank, header["reason"])
        elif op == "bye":
            with self._lock:
                self._left.add(rank)
                self._tell_others(rank, {"op": "left", "rank": rank})
                self._check_all_left()

    def _give(self, rank: int, key: str, ranks: list[int], payload: bytes) -> None:
        with self._lock:
            values = self._exchanges.setdefault(key, {})
            values[rank] = payload
            if not set(ranks) <= values.keys():
                return
            del self._exchanges[key]
            table, joined = pack({r: values[r] for r in ranks})
            for r in ranks:
                self._connections[r].send({"op": "all", "key": key, "table": table}, joined)

    def _tell_missing(self, connection: Connection, key: str, ranks: list[int]) -> None:
        with self._lock:
            missing = sorted(set(ranks) - self._exchanges.get(key, {}).keys())
            waiting = {k: sorted(v) for k, v in self._exchanges.items() if k != key}
        connection.send({"op": "missing", "key": key, "ranks": missing, "waiting": waiting})

    # --------------------------------------------------------------------------------------------------------- the end
    def _lost(self, rank: int, reason: str) -> None:
        with self._lock:
            if rank in self._gone or rank in self._left:
                return
            self._gone[rank] = reason
            if not self._started:
                self._refuse(f"process {rank} ended before the program began: {reason}")
                return
            self._tell_others(rank, {"op": "gone", "rank": rank, "reason": reason})
            self._check_all_left()

    def _tell_others(self, rank: int, message: Message) -> None:
        for other, connection in self._connections.items():
            if other != rank:
                connection.send(message)

    def _check_all_left(self) -> None:
        if len(self._left | self._gone.keys()) == self._count and not self._all_left.is_set():
            for connection in self._connections.values():
                connection.send({"op": "closed"})
            self._all_left.set()

    def _watch(self) -> None:
        """Notice processes whose heartbeats have stopped."""
        while not self._ended.wait(min(1.0, self._heartbeat_timeout / 4)):
            now = self._clock.read()
            for rank, heard in list(self._heard.items()):
                if self._started and now - heard > self._heartbeat_timeout and rank != self._host_process:
                    reason = f"it was silent for {self._heartbeat_timeout:g} s: frozen, or its machine is lost"
                    if self._on_silence is not None and rank not in self._gone and rank not in self._left:
                        self._on_silence(rank, reason)
                    self._lost(rank, reason)

    def fail(self, reason: str, timeout: float) -> None:
        """Notify every process that the coordinator's own process ends, and why; wait until the others have ended.

        Args:
            reason: cause of the end, for messages.
            timeout: seconds to wait at most.
        """
        if self._host_process is not None:
            self._lost(self._host_process, reason)
            self._await_others(timeout)

    def _await_others(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        others = set(range(self._count)) - {self._host_process}
        # A process that reported why it ends is still there, and jaxlib would abort it if its service went first.
        ended = lambda: self._disconnected | (self._gone.keys() - self._failing)
        while self._started and time.monotonic() < deadline and not others <= ended():
            time.sleep(0.01)

    def close(self, timeout: float) -> None:
        """Wait at most `timeout` seconds for the others to disconnect, and stop."""
        self._await_others(timeout)
        self._ended.set()
        with self._lock:
            for connection in self._connections.values():
                connection.close()
            if self._service is not None:
                self._service.shutdown()
                self._service = None


def name_ranks(ranks: list[int]) -> str:
    """Return "process 3" or "processes 1, 2 and 3"."""
    if len(ranks) == 1:
        return f"process {ranks[0]}"
    return f"processes {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"


def _where(hello: Message) -> str:
    return f"{hello['host']}, pid {hello['pid']}"


def free_address(host: str = "127.0.0.1") -> str:
    """Return an address of a port that is free at the moment."""
    with socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        return join_address(host, probe.getsockname()[1])
