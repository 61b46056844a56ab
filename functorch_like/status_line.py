"""Status line on a terminal or in a notebook: a stage that takes long and its progress, redrawn and then erased.

Nothing is written to logs, files and pipes. FT_PROGRESS=0 turns the line off everywhere; FT_PROGRESS=1 writes it to any
stderr.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TextIO

#: Seconds after which a stage is shown, and between redraws.
AFTER, REDRAW = 2.0, 0.5

_lock = threading.RLock()
_changed = threading.Condition(_lock)
_width = 0  # width of the line on the screen


# ---------------------------------------------------------------------------------------------------------- the line
def stream() -> TextIO | None:
    """Return the stream that the line is written to."""
    return sys.stderr


def is_shown() -> bool:
    """Return True if the line is to be shown: on a terminal or in a notebook, unless FT_PROGRESS says otherwise."""
    chosen = os.environ.get("FT_PROGRESS", "")
    if chosen in ("0", "1"):
        return chosen == "1"
    where = stream()
    if where is None:
        return False
    if type(where).__module__.startswith("ipykernel"):
        return True
    return where.isatty() and os.environ.get("TERM", "") != "dumb"


def show(text: str) -> None:
    """Put a text in place of the line."""
    global _width
    import shutil  # late: with its own imports it takes longer than this file

    with _lock:
        # One column less than there are: a full last column wraps on some terminals.
        text = text[: max(shutil.get_terminal_size().columns - 1, 10)]
        _write(f"\r{text}{' ' * (_width - len(text))}")
        _width = len(text)


def clear() -> None:
    """Erase the line."""
    global _width
    with _lock:
        if _width:
            _write(f"\r{' ' * _width}\r")
        _width = 0


def end(text: str) -> None:
    """Replace the line by a text that stays, and begin a new line."""
    global _width
    with _lock:
        show(text)
        _write("\n")
        _width = 0


def _write(text: str) -> None:
    where = stream()
    if where is not None:
        with suppress(OSError, ValueError):  # the stream is closed, or cannot encode the text
            where.write(text)
            where.flush()


# ------------------------------------------------------------------------------------------------------------ stages
class stage:
    """Context manager for work that may take long: after two seconds the status line names it.

    It costs about 3 us if no line is shown.

    Args:
        what: the activity, such as "compiling".
        name: name of the function or program.
        more: function that returns a remark each time the line is drawn.
        after: seconds until the line shows the stage; `AFTER` if None.
    """

    __slots__ = ("_after", "_is_shown", "_more", "_started", "_text")

    def __init__(self, what: str, name: str, more: Callable[[], str] | None = None, after: float | None = None) -> None:
        self._text, self._more, self._after = f"{what} {name}", more, after

    def __enter__(self) -> None:
        self._is_shown = is_shown()
        if self._is_shown:
            self._started = time.monotonic()
            with _lock:
                _running.append(self)
                _watch()
                _changed.notify()

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: TracebackType | None) -> None:
        if self._is_shown:
            with _lock:
                _running.remove(self)
                if self in _drawn:
                    _drawn.clear()
                    clear()

    def line(self, now: float) -> str:
        """Return the text of the line at a time."""
        more = f" ({self._more()})" if self._more is not None else ""
        return f"{self._text}{more}: {now - self._started:.0f} s"

    def due(self) -> float:
        """Return the time at which the line begins to show the stage."""
        return self._started + (AFTER if self._after is None else self._after)


_running: list[stage] = []
_drawn: list[stage] = []  # the stage that is on the screen
_watcher: threading.Thread | None = None


def _watch() -> None:
    global _watcher
    if _watcher is None or not _watcher.is_alive():
        _watcher = threading.Thread(target=_draw, name="functorch_like.status_line", daemon=True)
        _watcher.start()


def _draw() -> None:
    """Draw the innermost stage that has run long enough; wait for the next change or redraw."""
    with _lock:
        while True:
            now = time.monotonic()
            due = [s for s in _running if s.due() <= now]
            if due:
                _drawn[:] = [due[-1]]
                show(due[-1].line(now))
                _changed.wait(REDRAW)
            elif _running:
                _changed.wait(max(min(s.due() for s in _running) - now, 0.01))
            else:
                _changed.wait()


def _after_fork() -> None:
    """Reset the state in the child of a fork: it has no watcher thread, and may have a lock that is never released."""
    global _lock, _changed, _watcher
    _lock = threading.RLock()
    _changed, _watcher = threading.Condition(_lock), None
    _running.clear()
    _drawn.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
