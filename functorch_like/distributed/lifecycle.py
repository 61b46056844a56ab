"""Joining the processes of a program, and leaving them."""

from __future__ import annotations

import atexit
import faulthandler
import functools
import importlib.metadata
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

from functorch_like.backends import xla
from functorch_like.backends.xla import processes
from functorch_like.distributed import environment
from functorch_like.distributed.coordinator import Coordinator, listen
from functorch_like.distributed.member import Member
from functorch_like.distributed.wire import split_address
from functorch_like.errors import DistributedError

#: Environment variable of a launcher that runs the coordinator itself, so that process 0 may end first.
LAUNCHER_HAS_COORDINATOR = "FT_LAUNCHER_HAS_COORDINATOR"
#: Seconds that a process without the coordinator waits for the others when Python ends.
_EXIT_WAIT = 10.0
#: Seconds that a process with the coordinator gives the others to end by its error.
_FAILURE_WAIT = 3.0


class Joined(NamedTuple):
    """State of a process in the program that it joined.

    Attributes:
        member: its connection to the coordinator.
        coordinator: where it runs in this process; else None.
        shutdown_timeout: seconds that leaving takes at most.
        agreement_timeout: seconds that the processes wait for each other before a program is compiled.
    """

    member: Member
    coordinator: Coordinator | None
    shutdown_timeout: float
    agreement_timeout: float


_joined: Joined | None = None
_agreed: set[tuple[bytes, frozenset[int]]] = set()  # programs and values that were compared before


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: float = 300,
    heartbeat_timeout_seconds: float = 100,
    shutdown_timeout_seconds: float = 300,
    coordinator_bind_address: str | None = None,
    agreement_timeout_seconds: float = 600,
) -> None:
    """Join the processes that compute together; `ft.devices()` then lists the devices of all of them.

    Call it once in each process, before the first array is made. All processes then run the same program: they call
    the same compiled functions over several processes in the same order. Arguments that are left out are read from the
    environment of `functorch_like.distributed.run`, SLURM (srun), Open MPI (mpirun) or PyTorch's launcher.

    Args:
        coordinator_address: "host:port" of process 0, where the processes meet.
        num_processes: how many processes there are.
        process_id: the number of this one, from 0.
        local_device_ids: the GPUs that this process uses. None: the GPU with the process's number on its machine, where
            the environment gives that number, and all GPUs elsewhere. FT_CPU_DEVICES is the number of CPU devices.
        cluster_detection_method: "plain", "slurm" or "openmpi": read the environment in this way alone.
        initialization_timeout: seconds to wait for all processes.
        heartbeat_timeout_seconds: seconds of silence after which a process counts as gone. After a loss, the others
            have as many seconds to save their state before they are ended.
        shutdown_timeout_seconds: seconds to wait for the others in `shutdown`.
        coordinator_bind_address: "host:port" where process 0 listens, if it differs from what the others connect to.
        agreement_timeout_seconds: seconds to wait for the others before a program over several processes is compiled.

    Raises:
        DistributedError: where a process does not come in time (the message names it), the port is in use, processes
            do not fit together, devices have been used already, or a number is missing.

    Example:
        A process alone; `python -m functorch_like.distributed.run --nproc 4 script.py` starts several.

        >>> import functorch_like as ft
        >>> ft.distributed.is_initialized()
        False
    """
    global _joined
    _check_first()
    place = environment.detect(cluster_detection_method)
    address, count, rank = _settle(place, coordinator_address, num_processes, process_id)
    launcher = coordinator_address is None and os.environ.get(LAUNCHER_HAS_COORDINATOR) == "1"
    version = _version()
    coordinator = None
    if rank == 0 and not launcher:
        coordinator = Coordinator(
            listen(coordinator_bind_address or address),
            coordinator_bind_address or address,
            count,
            lambda at: processes.start_service(at, count, _whole(initialization_timeout)),
            join_timeout=initialization_timeout,
            heartbeat_timeout=heartbeat_timeout_seconds,
        )
    try:
        member = Member(
            address,
            rank,
            count,
            version,
            join_timeout=initialization_timeout,
            heartbeat_timeout=heartbeat_timeout_seconds,
            host_process=None if launcher else 0,
        )
    except DistributedError:
        if coordinator is not None:
            coordinator.close(0.0)
        raise
    runtime = processes.connect(address, rank, _whole(initialization_timeout))
    local = _local_devices(local_device_ids, place, process_id)
    processes.join(processes.Membership(rank, count, runtime, member.hostname, local))
    _joined = Joined(member, coordinator, shutdown_timeout_seconds, agreement_timeout_seconds)
    atexit.register(_leave_at_exit)
    xla.devices()  # making the clients needs all processes, and here all are


def _check_first() -> None:
    if _joined is not None:
        raise DistributedError("initialize was called before in this process", fix="call it once")
    if xla.started():
        raise DistributedError(
            "initialize comes too late: this process has used its devices",
            fix="call it before the first array is made and before ft.devices()",
        )


def _settle(place: environment.Place, address: str | None, count: int | None, rank: int | None) -> tuple[str, int, int]:
    """Combine arguments and environment, and check them."""
    address = place.coordinator_address if address is None else address
    count = place.num_processes if count is None else count
    rank = place.process_id if rank is None else rank
    parts = {"coordinator_address": address, "num_processes": count, "process_id": rank}
    missing = [name for name, value in parts.items() if value is None]
    if address is None or count is None or rank is None:
        raise DistributedError(
            f"{', '.join(missing)}: neither given nor found in the environment",
            fix="pass them, or start the processes with python -m functorch_like.distributed.run, srun or mpirun",
        )
    try:
        split_address(address)
    except ValueError:
        raise DistributedError(
            f"coordinator_address={address!r} is not an address", fix='write "host:port", or "[host]:port" for IPv6'
        ) from None
    if count < 1 or not 0 <= rank < count:
        raise DistributedError(
            f"process_id={rank} does not fit num_processes={count}", fix="number the processes 0, 1, ..., n - 1"
        )
    return address, count, rank


def _local_devices(
    given: int | Sequence[int] | None, place: environment.Place, process_id: int | None
) -> tuple[int, ...] | None:
    if given is not None:
        return (given,) if isinstance(given, int) else tuple(given)
    if process_id is None and place.local_process_id is not None:
        return (place.local_process_id,)
    return None


def _whole(seconds: float) -> int:
    return max(1, int(seconds))


def _version() -> str:
    try:
        own = importlib.metadata.version("functorch_like")
    except importlib.metadata.PackageNotFoundError:
        own = "of a source tree"
    return f"functorch_like {own} with jaxlib {processes.JAXLIB}"


def shutdown() -> None:
    """Leave the program: wait until all processes call it, and disconnect.

    Called when Python ends, if it was not called before. Compiled functions over several processes fail afterwards.
    Without `initialize` before it does nothing.

    Raises:
        DistributedError: where other processes do not leave within `shutdown_timeout_seconds`; the message names them.
    """
    trouble = _leave(_joined.shutdown_timeout if _joined is not None else 0.0)
    if trouble:
        raise DistributedError(f"shutdown: {trouble}", fix="let every process end, or call shutdown")


def is_initialized() -> bool:
    """Return True between `initialize` and `shutdown`.

    >>> import functorch_like as ft
    >>> ft.distributed.is_initialized()
    False
    """
    return _joined is not None


def joined() -> Joined | None:
    """Return the connections of this process; None for a process alone."""
    return _joined


def _leave(timeout: float) -> str:
    global _joined
    if _joined is None:
        return ""
    left, _joined = _joined, None
    atexit.unregister(_leave_at_exit)
    trouble = left.member.leave(timeout)
    membership = processes.membership()
    processes.join(None)
    if membership is not None:
        membership.runtime.shutdown()
    left.member.disconnect()
    if left.coordinator is not None:
        left.coordinator.close(min(timeout, _EXIT_WAIT))
    return trouble


def _leave_at_exit() -> None:
    if _joined is None:
        return
    left = _joined
    _leave_or_fail(left)
    if getattr(sys, "last_value", None) is not None or left.member.has_losses:
        _end_within(_EXIT_WAIT)


def _end_within(seconds: float) -> None:
    """End the process if Python has not ended in time: C++ may wait for a collective that never completes.

    TRAP: while Python ends, its threads no longer run. The watchdog of faulthandler is a thread of C.
    """
    faulthandler.dump_traceback_later(seconds, exit=True, file=_nowhere())


@functools.cache
def _nowhere() -> Any:
    return open(os.devnull, "w")  # until the process ends


def _leave_or_fail(left: Joined) -> None:
    error = getattr(sys, "last_value", None)
    if error is not None:  # Python ends because of it
        lines = str(error).splitlines()
        reason = f"it ended with {type(error).__name__}: {lines[0] if lines else ''}"
        left.member.fail(reason)
        if left.coordinator is not None:
            left.coordinator.fail(reason, _FAILURE_WAIT)
        return
    hosting = left.coordinator is not None
    trouble = _leave(left.shutdown_timeout if hosting else min(left.shutdown_timeout, _EXIT_WAIT))
    if trouble and hosting:
        warnings.warn(f"process 0 ends, and with it the coordinator: {trouble}", stacklevel=1)


def _lost_peers() -> str:
    return _joined.member.loss(wait=2.0) if _joined is not None else ""


class _Peers:
    """Exchange between the compilers of all processes."""

    def agree(self, digest: bytes, name: str, ranks: frozenset[int], about: bytes) -> dict[int, bytes] | None:
        """Compare digests of the program that all processes of `ranks` are about to compile."""
        if _joined is None or (digest, ranks) in _agreed:
            return None
        member = _joined.member
        what = f"compiling {name!r} over {len(ranks)} processes"
        value = b"\0".join([digest.hex().encode(), name.encode(), about])
        values = member.exchange(_key("program", ranks), value, _joined.agreement_timeout, sorted(ranks), what)
        answers: dict[int, bytes] = {}
        for rank, answer in sorted(values.items()):
            their_digest, their_name, answers[rank] = answer.split(b"\0", 2)
            if their_digest != digest.hex().encode():
                raise _different_programs(member.rank, name, rank, their_name.decode(errors="replace"))
        _agreed.add((digest, ranks))
        return answers

    def compare(self, what: str, value: str, ranks: frozenset[int], fix: str, *, once: bool) -> None:
        """Raise where processes of `ranks` give different values; with `once`, each value is compared only once."""
        about = (f"{what}\0{value}".encode(), ranks)
        if _joined is None or (once and about in _agreed):
            return
        member = _joined.member
        values = member.exchange(
            _key(what, ranks), value.encode(), _joined.agreement_timeout, sorted(ranks), f"comparing {what}"
        )
        if set(values.values()) != {value.encode()}:
            listed = "; ".join(f"process {rank}: {v.decode(errors='replace')}" for rank, v in sorted(values.items()))
            raise DistributedError(f"{what} differ between processes: {listed}", fix=fix)
        if once:
            _agreed.add(about)

    def wait(self, key: str, ranks: frozenset[int]) -> None:
        """Wait until all processes of `ranks` call this."""
        if _joined is not None:
            _joined.member.exchange(
                _key(key, ranks), b"", _joined.agreement_timeout, sorted(ranks), "a compiled program"
            )


def _key(what: str, ranks: frozenset[int]) -> str:
    return f"{what}/{','.join(map(str, sorted(ranks)))}"


def _different_programs(rank: int, name: str, other: int, their_name: str) -> DistributedError:
    about = f"{their_name!r}" if their_name != name else f"another version of {name!r}"
    return DistributedError(
        f"the programs differ: process {rank} compiles {name!r}, and process {other} compiles {about}",
        fix="run the same code with the same shapes, dtypes and constants in every process, in the same order",
    )


processes.on_failure(_lost_peers)
processes.on_program(_Peers())
