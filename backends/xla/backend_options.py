"""Options of XLA's backends that have no field of their own: names and values in a map of texts.

`CompileOptions` takes options by name, but none of these: their field is a map. Its wire format is appended to that of
the other options, as protocol buffers merge messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Numbers of the fields: of `CompileOptionsProto`, of the `ExecutableBuildOptionsProto` in it, and of `DebugOptions`.
_BUILD_OPTIONS, _DEBUG_OPTIONS, _EXTRA_OPTIONS = 3, 3, 500
_KEY, _VALUE = 1, 2


def with_backend_options(options: Any, added: Mapping[str, str]) -> Any:
    """Return compile options with further options of a backend, except for those that the user has set by XLA_FLAGS.

    Args:
        options: jaxlib's CompileOptions.
        added: values by name.
    """
    known = options.SerializeAsString()
    more = b""
    for name, value in added.items():
        if name.encode() not in known:
            entry = _field(_KEY, name.encode()) + _field(_VALUE, value.encode())
            more += _field(_BUILD_OPTIONS, _field(_DEBUG_OPTIONS, _field(_EXTRA_OPTIONS, entry)))
    return type(options).ParseFromString(known + more) if more else options


def _field(number: int, content: bytes) -> bytes:
    """Return a field of bytes in the wire format: number and kind, length, content."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """Return an integer in groups of 7 bits, the lowest first; all but the last have the highest bit set."""
    groups = bytearray()
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    return bytes([*groups, value])
