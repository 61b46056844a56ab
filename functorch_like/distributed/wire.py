"""Messages between a process and the coordinator: a JSON header and bytes, over TCP.

Nothing that arrives is executed or unpickled.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from typing import Any

_SIZES = struct.Struct("!4sIQ")
_MARK = b"ftd1"
_LARGEST_HEADER = 1 << 22
Message = dict[str, Any]


class Closed(Exception):
    """Error where the peer closed the connection, or sent bytes that are not a message."""


class Connection:
    """One side of a connection. `send` may be called from several threads, `receive` from one."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        # A frozen process reads nothing: what is sent to it must not block its peers for ever.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 30, 0))
        self._sock = sock
        self._lock = threading.Lock()

    @property
    def local_host(self) -> str:
        """Local address of the connection."""
        return str(self._sock.getsockname()[0])

    def fileno(self) -> int:
        """Return the file descriptor, for `select`."""
        return self._sock.fileno()

    def release(self) -> None:
        """Drop the connection in this process; another one that has it goes on."""
        self._sock.close()

    def send(self, header: Message, payload: bytes = b"") -> bool:
        """Send a message; return False if the peer is gone."""
        text = json.dumps(header).encode()
        try:
            with self._lock:
                self._sock.sendall(_SIZES.pack(_MARK, len(text), len(payload)) + text)
                if payload:
                    self._sock.sendall(payload)
        except OSError:
            return False
        return True

    def receive(self, timeout: float | None = None) -> tuple[Message, bytes]:
        """Wait for a message, at most `timeout` seconds for each part of it.

        Raises:
            Closed: where none will come.
        """
        mark, header_size, payload_size = _SIZES.unpack(self._read(_SIZES.size, timeout))
        if mark != _MARK or header_size > _LARGEST_HEADER:
            raise Closed("not a message of this protocol")
        try:
            header = json.loads(self._read(header_size, timeout))
        except ValueError as error:
            raise Closed("not a message of this protocol") from error
        return header, self._read(payload_size, timeout)

    def _read(self, size: int, timeout: float | None) -> bytes:
        parts: list[bytes] = []
        while size:
            try:
                self._sock.settimeout(timeout)
                part = self._sock.recv(min(size, 1 << 20))
            except OSError as error:
                raise Closed(str(error)) from error
            if not part:
                raise Closed("the connection was closed")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        """Close; a `receive` that waits in another thread ends."""
        for step in (lambda: self._sock.shutdown(socket.SHUT_RDWR), self._sock.close):
            try:
                step()
            except OSError:
                continue  # closed already, by the peer


def split_address(address: str) -> tuple[str, int]:
    """Split "host:port" or "[host]:port"; ValueError for anything else."""
    host, separator, port = address.rpartition(":")
    if not separator or not host or not port.isdecimal() or int(port) > 65535:
        raise ValueError(address)
    return host.removeprefix("[").removesuffix("]"), int(port)


def join_address(host: str, port: int) -> str:
    """Return "host:port", with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def pack(values: dict[int, bytes]) -> tuple[list[tuple[int, int]], bytes]:
    """Join values by process into one payload; returns its table of (process, size)."""
    ranks = sorted(values)
    return [(rank, len(values[rank])) for rank in ranks], b"".join(values[rank] for rank in ranks)


def unpack(table: list[tuple[int, int]], payload: bytes) -> dict[int, bytes]:
    """Split a payload that `pack` joined; returns values by process."""
    values, start = {}, 0
    for rank, size in table:
        values[rank] = payload[start : start + size]
        start += size
    return values
