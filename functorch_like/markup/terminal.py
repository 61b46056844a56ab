"""Text for terminals: colours where they are shown, lines that end at words, columns that fit."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import Any, TextIO

#: No line of a display is longer than this.
WIDEST = 100

#: Gives a text a style: "head", or the name of a hue.
Paint = Callable[[str, str], str]

_CODES = {"head": "1", "blue": "34", "green": "32", "orange": "33", "purple": "35", "red": "31", "grey": "2"}
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def plain(text: str, style: str) -> str:
    """Return the text as it is."""
    return text


def ansi(text: str, style: str) -> str:
    """Return the text between the codes of a terminal.

    >>> ansi("x", "blue")
    '\\x1b[34mx\\x1b[0m'
    """
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if text else text


def has_colours(stream: TextIO | Any) -> bool:
    """Return True for a terminal that shows colours: not where NO_COLOR is set, or where TERM is "dumb"."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):  # none, or closed
        return False


def paint_for(stream: TextIO | Any) -> Paint:
    """Return the styles for text written to a stream."""
    return ansi if has_colours(stream) else plain


def width() -> int:
    """Return the number of columns to fill: those of the terminal, and no more than `WIDEST`."""
    import shutil  # with the modules that it imports, it takes long

    return max(min(shutil.get_terminal_size((WIDEST, 24)).columns, WIDEST), 40)


def wrapped(text: str, first: str = "", rest: str | None = None, columns: int = WIDEST) -> list[str]:
    """Return lines that end at words; line breaks in the text are kept.

    Args:
        text: any.
        first: stands before the first line.
        rest: stands before the others; as many blanks as `first` is long, if None.
        columns: length of a line. A longer word, such as a path, stays whole.

    >>> wrapped("one two three", "x: ", columns=11)
    ['x: one two', '   three']
    """
    import textwrap

    rest = " " * len(first) if rest is None else rest
    lines: list[str] = []
    for k, part in enumerate(text.split("\n")):
        lines += textwrap.wrap(
            part, columns, initial_indent=rest if k else first, subsequent_indent=rest, break_long_words=False,
            break_on_hyphens=False,
        ) or [(rest if k else first).rstrip()]  # fmt: skip
    return lines


def trimmed(text: str, most: int) -> str:
    """Return the text, or its beginning and its end where it is longer than `most`.

    >>> trimmed("abcdefghij", 8)
    'abc...ij'
    """
    if len(text) <= most:
        return text
    end = (most - 3) // 2
    return f"{text[: most - 3 - end]}...{text[len(text) - end :]}" if end > 0 else text[:most]


def columns(rows: Sequence[Sequence[str]], *, numbers: Sequence[int] = ()) -> list[str]:
    """Return rows as lines, with columns as wide as their cells.

    Args:
        rows: cells of each row; they may be coloured.
        numbers: columns that are aligned to the right.

    >>> columns([("a", "1"), ("bcd", "20")], numbers=[1])
    ['a     1', 'bcd  20']
    """
    count = max(map(len, rows), default=0)
    widths = [max(length(row[k]) for row in rows if k < len(row)) for k in range(count)]
    return ["  ".join(_padded(cell, widths[k], k in numbers) for k, cell in enumerate(row)).rstrip() for row in rows]


def length(text: str) -> int:
    """Return the number of characters that are seen."""
    return len(_ESCAPES.sub("", text))


def bar(share: float, most: int = 20) -> str:
    """Return a bar as long as a share (0 to 1) of `most` characters.

    >>> bar(0.5, 6)
    '###'
    """
    return "#" * max(round(max(0.0, min(share, 1.0)) * most), 0)


def _padded(text: str, to: int, right: bool) -> str:
    blanks = " " * (to - length(text))
    return blanks + text if right else text + blanks
