"""A progress bar: one line that is redrawn on a terminal, a few plain lines anywhere else."""

from __future__ import annotations

import os
import shutil
import sys
import time
from typing import TextIO

#: How often the line is redrawn, in seconds.
REDRAW = 0.05
#: Away from a terminal, one line is written at each of these shares.
MILESTONES = (0.25, 0.5, 0.75, 1.0)
NARROWEST_BAR, WIDEST_BAR = 8, 30


def is_terminal(stream: TextIO) -> bool:
    """Return True if a stream is a terminal that can go back to the start of its line."""
    return stream.isatty() and os.environ.get("TERM", "") != "dumb"


def encodes(stream: TextIO, text: str) -> bool:
    """Return True if a stream can write a text."""
    try:
        text.encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeError, LookupError):
        return False
    return True


def line(label: str, done: int, total: int, note: str, columns: int, marks: str = "█░") -> str:
    """One line no wider than `columns`: what does not fit goes, first the bar, then the note."""
    text = plain(label, done, total, note)
    room = columns - len(text) - 1
    if room >= NARROWEST_BAR:
        width = min(room, WIDEST_BAR)
        filled = width * done // total if total else width
        return f"{label} {marks[0] * filled}{marks[1] * (width - filled)}{text[len(label) :]}"
    return (text if len(text) <= columns else plain(label, done, total))[: max(columns, 0)]


def plain(label: str, done: int, total: int, note: str = "") -> str:
    """The line without a bar."""
    percent = 100 * done // total if total else 100
    return f"{label} {percent:3d}%" + (f"  {note}" if note else "")


class Progress:
    """Counts to `total` on a stream. Use it in a `with` block: whatever happens, the line is ended.

    >>> import io
    >>> with Progress("train", 4, io.StringIO()) as bar:
    ...     for done in range(1, 5):
    ...         bar.update(done, f"loss {1 / done:.2f}")
    >>> print(bar.stream.getvalue(), end="")
    train  25%  loss 1.00
    train  50%  loss 0.50
    train  75%  loss 0.33
    train 100%  loss 0.25
    """

    def __init__(self, label: str, total: int, stream: TextIO | None = None) -> None:
        self.label, self.total, self.stream = label, total, stream or sys.stdout
        self.terminal = is_terminal(self.stream)
        self.marks = "█░" if encodes(self.stream, "█░") else "#."
        self._milestones = list(MILESTONES)
        self._drawn, self._last = -1.0, ""

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self.terminal and self._drawn >= 0:
            self._write(f"\r{self._last}\n")

    def update(self, done: int, note: str = "") -> None:
        """Say that `done` of `total` are done, with a short note."""
        if self.terminal:
            self._redraw(done, note)
        elif self._milestones and done >= self._milestones[0] * self.total:
            while self._milestones and done >= self._milestones[0] * self.total:
                self._milestones.pop(0)
            self._write(plain(self.label, done, self.total, note) + "\n")

    def _redraw(self, done: int, note: str) -> None:
        # One column less than there are: a full last column wraps on some terminals.
        columns = shutil.get_terminal_size().columns - 1
        text = line(self.label, done, self.total, note, columns, self.marks)
        blank = " " * max(0, min(len(self._last), columns) - len(text))
        self._last = text
        now = time.monotonic()
        if done >= self.total or self._drawn < 0 or now - self._drawn >= REDRAW:
            self._drawn = now
            self._write(f"\r{text}{blank}")

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()
