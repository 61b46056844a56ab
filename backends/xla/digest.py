"""SHA-256 of programs. OpenSSL takes 2 ms to load, so this waits until there is something to compile."""

from __future__ import annotations

from typing import Any

SIZE = 32


def sha256(data: bytes = b"") -> Any:
    """Return the hash of `hashlib.sha256`."""
    import hashlib

    return hashlib.sha256(data)
