"""Transfer of the newest state to the other workers: over TCP, from memory to memory."""

from __future__ import annotations

import json
import socket
import threading

from functorch_like.distributed.elastic.host_state import HostState
from functorch_like.distributed.member import Member
from functorch_like.distributed.wire import Closed, Connection, join_address, split_address
from functorch_like.errors import DistributedError

_PART = 1 << 26


def share(state: HostState, member: Member, timeout: float) -> int:
    """Give all workers of a generation the state with most steps; return the number of the worker that had it.

    Args:
        state: of this process; replaced where it differs.
        member: the connection of this process to the others.
        timeout: seconds to wait for the others.

    Raises:
        DistributedError: where one of the others ends meanwhile.
        ValueError: where states differ in structure.
    """
    listener = socket.create_server((member.hostname, 0), family=_family(member.hostname))
    try:
        # Before others get the address. The thread ends with the listener.
        threading.Thread(target=_serve, args=(listener, state), name="ft-elastic-state", daemon=True).start()
        own = {
            "step": state.step,
            "digest": state.digest(),
            "address": join_address(member.hostname, listener.getsockname()[1]),
            "layout": state.description(),
        }
        what = "the state of the workers"
        answers = member.exchange("elastic/state", json.dumps(own).encode(), timeout, what=what)
        every = {rank: json.loads(answer) for rank, answer in answers.items()}
        root = max(every, key=lambda rank: (every[rank]["step"], -rank))
        for rank, other in every.items():
            if other["layout"] != own["layout"]:
                raise ValueError(f"the states of worker {member.rank} and worker {rank} differ in structure")
        if every[root]["digest"] != own["digest"] or every[root]["step"] != own["step"]:
            _fetch(state, every[root]["address"], timeout)
        member.exchange("elastic/shared", b"", timeout, what=what)  # the listener stays until all have it
    finally:
        listener.shutdown(socket.SHUT_RDWR)  # else the thread goes on waiting
        listener.close()
    return root


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _serve(listener: socket.socket, state: HostState) -> None:
    while True:
        try:
            sock, _ = listener.accept()
        except OSError:
            return
        connection = Connection(sock)
        payload = state.payload()
        connection.send({"step": state.step, "size": len(payload)})
        for start in range(0, len(payload), _PART):
            connection.send({}, payload[start : start + _PART])
        connection.close()


def _fetch(state: HostState, address: str, timeout: float) -> None:
    try:
        connection = Connection(socket.create_connection(split_address(address), timeout=timeout))
        header, _ = connection.receive(timeout)
        payload = bytearray()
        while len(payload) < header["size"]:
            payload += connection.receive(timeout)[1]
        connection.close()
    except (OSError, Closed) as error:
        raise DistributedError(f"the state could not be fetched from {address}: {error}") from None
    state.write_payload(header["step"], bytes(payload))
