"""The launcher of an elastic run: starts workers, replaces those that are killed, and runs the membership."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from functorch_like.distributed.child_processes import exit_status, status_text
from functorch_like.distributed.coordinator import free_address
from functorch_like.distributed.elastic.host_state import steps_in_memory
from functorch_like.distributed.elastic.keeper import ADDRESS, JOINED_FILE, STATE_FILE, WORKER
from functorch_like.distributed.elastic.membership import Membership
from functorch_like.distributed.launch import Launch, command_of, device_variables, pass_signals_on
from functorch_like.errors import DistributedError


class ElasticLaunch(Launch):
    """The workers of one machine.

    Args:
        command: of each worker.
        options: of the command line.
        environment: variables of all workers.
        membership: of the run; None on machines other than the first.
        memory: descriptor of a file in memory for each worker; its contents outlive the worker.
        folder: for files that name the workers that have joined.
    """

    def __init__(
        self,
        command: Sequence[str],
        options: argparse.Namespace,
        environment: dict[str, str],
        membership: Membership | None,
        memory: Sequence[int],
        folder: Path,
    ) -> None:
        self._membership, self._folder, self._memory = membership, folder, memory
        self._max_restarts = options.max_restarts
        self._restarts: dict[int, int] = {}
        self._starts: dict[int, tuple[Sequence[str], dict[str, str]]] = {}
        self._settled: set[int] = set()
        self._failed = 0
        first = options.node_rank * options.nproc
        count = options.nproc * options.nnodes
        super().__init__(command, options.nproc, count, first, environment, grace=options.grace, bare=options.bare)

    def _variables(self, rank: int, local: int, count: int) -> dict[str, str]:
        joined, memory = str(self._folder / str(rank)), str(self._memory[local])
        return {WORKER: str(rank), "FT_LOCAL_PROCESS_ID": str(local), JOINED_FILE: joined, STATE_FILE: memory}

    def _start(self, rank: int, command: Sequence[str], environment: dict[str, str]) -> None:
        self._starts[rank] = command, environment
        super()._start(rank, command, environment)

    def _inherited(self) -> Sequence[int]:
        return self._memory

    def running(self) -> set[int]:
        """Return the numbers of the workers that run, or have ended and are being replaced."""
        return set(self._processes) - self._settled

    def wait(self) -> int:
        """Wait until the run is over and all workers have ended; return the exit status for the launcher."""
        with self._ended:
            while len(self._settled) < len(self._processes):
                self._ended.wait(0.2)
                for rank, status in list(self._statuses.items()):
                    if rank not in self._settled:
                        self._settle(rank, status)
                if self._membership is not None and self._membership.failure:
                    self._fail(1)
                self._end_by_force()
        for thread in self._threads:
            thread.join(2.0)
        return self._failed or self._status_of_starts()

    def _settle(self, rank: int, status: int) -> None:
        """Handle the end of a worker: replace it, or not."""
        joined = self._folder / str(rank)
        self._restarts[rank] = 0 if joined.exists() else self._restarts.get(rank, 0) + 1
        joined.unlink(missing_ok=True)
        over = self._stopping or (self._membership is not None and self._membership.is_over)
        if status < 0 and not over and self._restarts[rank] <= self._max_restarts:
            del self._statuses[rank]
            super()._start(rank, *self._starts[rank])
            return
        self._settled.add(rank)
        if status:
            if not self._stopping:
                tell(f"worker {rank} {status_text(status)}; the others are ended")
            self._fail(exit_status(status))

    def _fail(self, status: int) -> None:
        self._failed = self._failed or status
        self.stop()


def tell(text: str) -> None:
    """Print a line of the launcher."""
    print(f"functorch_like: {text}", file=sys.stderr, flush=True)


def main(options: argparse.Namespace) -> int:
    """Start the workers of this machine, wait for them, and return the exit status."""
    address = options.coordinator or free_address()
    memory = [os.memfd_create(f"ft-elastic-state-{k}") for k in range(options.nproc)]
    membership = None
    if options.node_rank == 0:
        try:
            membership = _membership(address, options, memory, lambda: launch.running())
        except DistributedError as error:
            tell(str(error))
            return 1
    with tempfile.TemporaryDirectory(prefix="ft-elastic-") as folder:
        environment = {ADDRESS: address, **device_variables(options)}
        launch = ElasticLaunch(command_of(options), options, environment, membership, memory, Path(folder))
        if threading.current_thread() is threading.main_thread():
            pass_signals_on(launch)
        try:
            launch.start()
            return launch.wait()
        finally:
            if membership is not None:
                membership.close()


def _membership(
    address: str, options: argparse.Namespace, memory: Sequence[int], running: Callable[[], set[int]]
) -> Membership:
    return Membership(
        address,
        options.nproc * options.nnodes,
        options.min_workers,
        start_timeout=options.timeout,
        heartbeat_timeout=options.heartbeat_timeout,
        max_stalls=options.max_restarts,
        newest=lambda: max(map(steps_in_memory, memory)),
        running=running,
        tell=tell,
    )
