"""Progress with the time left: a bar of rich on a terminal, one redrawn line without rich, a few lines elsewhere."""

from __future__ import annotations

import os
import shutil
import sys
import time
from typing import Any, Protocol, TextIO

from functorch_like.debug.progress import Meter, duration

#: Seconds between two drawings of a terminal.
REDRAW = 0.1
#: Away from a terminal, one line is written at each of these shares.
MILESTONES = (0.25, 0.5, 0.75, 1.0)
BAR_WIDTH = 24


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


def rich_console(stream: TextIO) -> Any:
    """Return a console of the rich library on a terminal that can show it, else None."""
    if not is_terminal(stream) or not encodes(stream, "━"):
        return None
    try:
        from rich.console import Console
    except ImportError:  # an extra, which plain text replaces
        return None
    return Console(file=stream, highlight=False)


class Progress:
    """Counter up to `total`, shown on a stream. Use it in a `with` block, which ends the line even after an error.

    >>> import io
    >>> with Progress("train", 4, io.StringIO()) as bar:
    ...     for done in range(1, 5):
    ...         bar.update(done, f"loss {1 / done:.2f}")
    >>> print(bar.stream.getvalue(), end="")
    train  25%  loss 1.00  0.0 s left
    train  50%  loss 0.50  0.0 s left
    train  75%  loss 0.33  0.0 s left
    train 100%  loss 0.25
    """

    def __init__(self, label: str, total: int, stream: TextIO | None = None) -> None:
        self.label, self.total, self.stream = label, total, stream or sys.stdout
        self._display: _Display | None = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._display is not None:
            self._display.close()

    def update(self, done: int, note: str = "") -> None:
        """Report that `done` of `total` are done, with a short note."""
        if self._display is None:
            self._display = _display(self.label, self.total, self.stream)
        self._display.update(done, note)


class _Display(Protocol):
    def update(self, done: int, note: str) -> None: ...

    def close(self) -> None: ...


def _display(label: str, total: int, stream: TextIO) -> _Display:
    console = rich_console(stream)
    if console is not None:
        return _RichBar(label, total, console)
    return _RedrawnLine(label, total, stream) if is_terminal(stream) else _Milestones(label, total, stream)


class _RichBar:
    """A bar of the rich library. It is redrawn by updates: a thread that redraws takes time from the work."""

    def __init__(self, label: str, total: int, console: Any) -> None:
        from rich import progress
        from rich.table import Column

        self._bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(BAR_WIDTH),
            progress.TaskProgressColumn(),
            progress.TimeRemainingColumn(),
            progress.TextColumn("{task.fields[note]}", table_column=Column(no_wrap=True)),
            console=console,
            auto_refresh=False,
        )
        self._task = self._bar.add_task(label, total=total, note="")
        self._drawn = -REDRAW
        self._bar.start()

    def update(self, done: int, note: str) -> None:
        now = time.monotonic()
        due = now - self._drawn >= REDRAW
        self._bar.update(self._task, completed=done, note=note, refresh=due)
        if due:
            self._drawn = now

    def close(self) -> None:
        self._bar.refresh()
        self._bar.stop()


class _RedrawnLine:
    """The line of `ft.progress` with a note, on a terminal."""

    def __init__(self, label: str, total: int, stream: TextIO) -> None:
        self._meter, self._stream = Meter(label, total), stream
        self._started = time.monotonic()
        self._drawn, self._text = -REDRAW, ""

    def update(self, done: int, note: str) -> None:
        now = time.monotonic()
        # One column less than there are: a full last column wraps on some terminals.
        columns = max(shutil.get_terminal_size().columns - 1, 0)
        text = f"{self._meter.line(done, now - self._started)}  {note}".rstrip()[:columns]
        blank = " " * max(0, min(len(self._text), columns) - len(text))
        self._text = text
        if now - self._drawn >= REDRAW:
            self._drawn = now
            self._write(f"\r{text}{blank}")

    def close(self) -> None:
        self._write(f"\r{self._text}\n")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


class _Milestones:
    """Whole lines at a few shares of the work, for pipes and files."""

    def __init__(self, label: str, total: int, stream: TextIO) -> None:
        self._label, self._total, self._stream = label, total, stream
        self._started, self._left = time.monotonic(), list(MILESTONES)

    def update(self, done: int, note: str) -> None:
        if not self._left or done < self._left[0] * self._total:
            return
        self._left = [share for share in self._left if done < share * self._total]
        seconds = (time.monotonic() - self._started) * (self._total - done) / max(done, 1)
        parts = (f"{self._label} {100 * done // self._total if self._total else 100:3d}%", note)
        rest = f"{duration(seconds)} left" if done < self._total else ""
        print("  ".join(part for part in (*parts, rest) if part), file=self._stream, flush=True)

    def close(self) -> None:
        pass
