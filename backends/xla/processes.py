"""Several processes: jaxlib's coordination service and client, and the options of device clients that belong to it.

TRAP: a client that cannot connect, or whose service goes away, aborts the process (SIGABRT). So `connect` comes after
all processes have met (`functorch_like.distributed` ensures it), and the service is the last to stop. It is
"recoverable": then jaxlib aborts no process for the death of a peer, and leaving waits for none. The package itself
watches for deaths.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from functorch_like.backends.xla.jaxlib_api import FULL_VERSION, JaxRuntimeError, _jax, xc
from functorch_like.errors import DistributedError

#: Version of jaxlib, which all processes must share.
JAXLIB = FULL_VERSION
if TYPE_CHECKING:
    from typing import Protocol

    class Peers(Protocol):
        """Exchange of programs between this process and the others."""

        def agree(self, digest: bytes, name: str, ranks: frozenset[int], about: bytes) -> dict[int, bytes] | None:
            """Compare digests of a program; return `about` of each process, None if they agreed on it before.

            Raises:
                DistributedError: where digests differ.
            """
            ...

        def compare(self, what: str, value: str, ranks: frozenset[int], fix: str, *, once: bool) -> None:
            """Compare a value that all of these processes give; with `once`, skip a value that they agreed on before.

            Raises:
                DistributedError: where they differ.
            """
            ...

        def wait(self, key: str, ranks: frozenset[int]) -> None:
            """Wait until all of these processes call this."""
            ...


_WARNINGS, _ERRORS = 1, 2


class Membership:
    """The place of this process among others.

    Attributes:
        index: its number.
        count: number of processes.
        runtime: jaxlib's client of the coordination service.
        hostname: the address by which the others reach this machine.
        local_device_ids: numbers of the GPUs of this machine that it uses; None for all.
    """

    __slots__ = ("count", "hostname", "index", "local_device_ids", "runtime")

    def __init__(
        self, index: int, count: int, runtime: Any, hostname: str, local_device_ids: tuple[int, ...] | None
    ) -> None:
        self.index, self.count, self.runtime = index, count, runtime
        self.hostname, self.local_device_ids = hostname, local_device_ids


_membership: Membership | None = None
_lost_peers: Callable[[], str] = lambda: ""
_peers: Peers | None = None


def start_service(address: str, count: int, timeout: int) -> Any:
    """Start the coordination service.

    Args:
        address: the address at which it listens, "host:port".
        count: number of processes.
        timeout: seconds within which all of them connect.

    Raises:
        DistributedError: where it cannot listen.
    """
    _log_from(_ERRORS)  # it warns that such a service is experimental, when processes connect
    try:
        return _jax.get_distributed_runtime_service(
            address, count, cluster_register_timeout=timeout, shutdown_timeout=5, recoverable=True
        )
    except JaxRuntimeError as error:
        raise DistributedError(
            f"the coordination service cannot listen at {address}: {error}", fix="choose another port"
        ) from error


def connect(address: str, index: int, timeout: int) -> Any:
    """Connect to the service at `address` as the process of this number."""
    runtime = _jax.get_distributed_runtime_client(
        address, index, init_timeout=timeout, shutdown_timeout=5, shutdown_on_destruction=False, use_compression=True
    )
    runtime.connect()
    _log_from(int(os.environ.get("TF_CPP_MIN_LOG_LEVEL", _WARNINGS)))
    return runtime


def _log_from(level: int) -> None:
    utils: Any = importlib.import_module("jaxlib.utils")
    utils.absl_set_min_log_level(level)


def join(membership: Membership | None) -> None:
    """Set the membership that device clients are made with; None for a process alone."""
    global _membership
    _membership = membership


def membership() -> Membership | None:
    """Return the membership of this process; None for a process alone."""
    return _membership


def cpu_client_options() -> dict[str, Any]:
    """Return the options of the CPU's client: Gloo carries its collectives."""
    if _membership is None:
        return {}
    m = _membership
    collectives = _jax.make_gloo_tcp_collectives(m.runtime, hostname=m.hostname)
    return {
        "distributed_client": m.runtime,
        "node_id": m.index,
        "num_nodes": m.count,
        "collectives": collectives,
    }


def gpu_client_options() -> tuple[dict[str, Any], Any]:
    """Return the options of the GPU's client and its key-value store, by which NCCL starts.

    UNTESTED with several processes.
    """
    if _membership is None:
        return {}, None
    m = _membership
    options: dict[str, Any] = {"node_id": m.index, "num_nodes": m.count}
    if m.local_device_ids is not None:
        options["visible_devices"] = list(m.local_device_ids)
    return options, m.runtime


def on_failure(lost_peers: Callable[[], str]) -> None:
    """Register a function that returns a text about processes that ended, for errors of collectives."""
    global _lost_peers
    _lost_peers = lost_peers


def collective_failure(what: str, error: BaseException) -> DistributedError | None:
    """Return the error to raise for one of Gloo's; None for another."""
    text = str(error)
    if _membership is None or "gloo" not in text.lower():
        return None
    lost = _lost_peers()
    reason = f"{what} cannot be finished: {lost}" if lost else f"{what} failed between processes: {text}"
    return DistributedError(reason, fix="start all processes again, from the last checkpoint")


def on_program(peers: Peers) -> None:
    """Register the exchange with other processes."""
    global _peers
    _peers = peers


def spanned(place: Any) -> frozenset[int]:
    """Return the processes of a mesh's devices, where this process is one of several; else nothing."""
    if _membership is None or isinstance(place, xc.Device):
        return frozenset()
    result = frozenset(device.process_index for device in place.devices.flat)
    return result if len(result) > 1 else frozenset()


def compare(what: str, value: str, place: Any, fix: str, *, once: bool = True) -> None:
    """Compare a value that the processes of a mesh give.

    Args:
        what: the kind of value, for messages.
        value: of this process.
        place: the mesh.
        fix: for the error.
        once: processes that agreed on it before do not meet again.

    Raises:
        DistributedError: where values differ, or a process does not come.
    """
    ranks = spanned(place)
    if ranks and _peers is not None:
        _peers.compare(what, value, ranks, fix, once=once)


@contextmanager
def one_compiles(digest: bytes, name: str, processes: frozenset[int], home: str, present: bool) -> Generator[None]:
    """Compile a program within the block, as one of several processes.

    The processes first compare the program. Of those that keep it in the same place, one compiles it, and the others
    enter the block when it has left: then they can load it.

    Args:
        digest: of the program.
        name: for messages.
        processes: that run it.
        home: where compiled programs are kept on this machine, and the program's name there; "" if it is not kept.
        present: whether it is there.

    Raises:
        DistributedError: where the processes are about to compile different programs.
    """
    if _membership is None or _peers is None:
        yield
        return
    import json  # for programs of several processes alone

    answers = _peers.agree(digest, name, processes, json.dumps([home, present]).encode())
    group = frozenset[int]()
    if answers is not None and home:
        replies = {rank: json.loads(answer) for rank, answer in answers.items()}
        has_it = {rank: there for rank, (place, there) in replies.items() if place == home}
        if not has_it[min(has_it)]:  # each of these finds the same group, and waits or compiles
            group = frozenset(rank for rank, there in has_it.items() if not there)
    key = f"compiled/{digest.hex()}"
    leads = _membership.index == min(group, default=-1)
    if len(group) > 1 and not leads:
        _peers.wait(key, group)
    try:
        yield
    finally:
        if len(group) > 1 and leads:
            _peers.wait(key, group)
