"""Leaves that are Python's own values, as JSON data: exact, and of the same type when they are read."""

from __future__ import annotations

from typing import Any

from functorch_like.io.structure import malformed

_TO: dict[type, Any] = {
    bool: lambda x: ["bool", x],
    int: lambda x: ["int", hex(x)],
    float: lambda x: ["float", x.hex()],
    complex: lambda x: ["complex", x.real.hex(), x.imag.hex()],
    str: lambda x: ["str", x],
}
_FROM: dict[str, Any] = {
    "bool": bool,
    "int": lambda text: int(text, 16),
    "float": float.fromhex,
    "complex": lambda real, imag: complex(float.fromhex(real), float.fromhex(imag)),
    "str": str,
}


def is_plain(value: Any) -> bool:
    """Return True for the values that are saved as JSON data."""
    return type(value) in _TO


def encode(value: Any) -> list[Any]:
    """Return a value as JSON data."""
    return _TO[type(value)](value)


def decode(data: Any) -> Any:
    """Return the value of JSON data.

    Raises:
        CheckpointError: where it is none.
    """
    try:
        kind, *parts = data
        return _FROM[kind](*parts)
    except (TypeError, ValueError, KeyError, OverflowError) as e:
        raise malformed("a value of its manifest is none") from e
