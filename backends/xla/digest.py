"""Digests of programs and of the facts about them, as keys and checksums."""

from __future__ import annotations

from typing import Any

try:
    from _blake2 import blake2b  # `hashlib` has the same function, but loads OpenSSL first, in 2 to 3 ms
except ImportError:
    from hashlib import blake2b

SIZE = 32


def digest(data: bytes = b"") -> Any:
    """Return a BLAKE2 hash object of `SIZE` bytes, with the methods of those of `hashlib`.

    >>> digest(b"program").hexdigest()[:8]
    '675d56b0'
    """
    return blake2b(data, digest_size=SIZE)
