"""The collectives that a compiled program contains, read from its text."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

_KINDS = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute|collective-broadcast"
_LINE = re.compile(rf"= (.*?) (?:{_KINDS})(-start)?\(")
_KIND = re.compile(rf" ({_KINDS})(?:-start)?\(")
_SHAPE = re.compile(r"\b([a-z]+\d*\w*)\[([\d,]*)\]")
_BITS = {"pred": 8, "c64": 64, "c128": 128}


class Collective(NamedTuple):
    """The collectives of one kind in a program.

    Attributes:
        kind: "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute" or
            "collective-broadcast".
        count: number of them in the text; one inside of a loop counts once.
        bytes: total size of their results on one device.
    """

    kind: str
    count: int
    bytes: int


def collectives(inner: Any) -> list[Collective]:
    """Return the collectives of jaxlib's executable, by kind."""
    return in_text("\n".join(module.to_string() for module in inner.hlo_modules()))


def in_text(text: str) -> list[Collective]:
    """Return the collectives in optimised HLO text, by kind."""
    counts: dict[str, list[int]] = {}
    for line in text.splitlines():
        match = _LINE.search(line)
        kind = _KIND.search(line)
        if match is None or kind is None:
            continue
        total = sum(_bytes(element, sizes) for element, sizes in _SHAPE.findall(match[1]))
        entry = counts.setdefault(kind[1], [0, 0])
        entry[0] += 1
        entry[1] += total // 2 if match[2] else total  # the result of a start holds the operand, too
    return [Collective(kind, count, size) for kind, (count, size) in sorted(counts.items())]


def _bytes(element: str, sizes: str) -> int:
    count = int(np.prod([int(n) for n in sizes.split(",") if n], dtype=np.int64))
    return count * _bits(element) // 8


def _bits(element: str) -> int:
    if element in _BITS:
        return _BITS[element]
    digits = re.match(r"[a-z]+(\d+)", element)
    if digits is None:
        return 0  # a token
    return int(digits[1])
