"""Events of programs (traced, lowered, compiled, loaded, run), sent to listeners as they happen."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, NamedTuple

from functorch_like.backends.xla import configuration


class Event(NamedTuple):
    """One thing that happened.

    Attributes:
        kind: "trace", "derive", "lower", "compile", "load", "run" and others for listeners.
        name: name of the function or program.
        seconds: its duration.
        about: more, by name.
    """

    kind: str
    name: str
    seconds: float
    about: dict[str, Any]


class _Listeners(threading.local):
    all: tuple[Callable[[Event], Any], ...] = ()
    in_background = False


_listeners = _Listeners()


#: Setting: True if programs are written to the log as they are traced, lowered, compiled and loaded.
LOGGED = configuration.config("log_compiles", configuration.switched_on("FT_LOG_COMPILES"), in_jit_key=False)

#: Verbs of the log and reports for the kinds of events that make programs.
VERBS = {"trace": "traced", "lower": "lowered", "compile": "compiled", "load": "loaded"}
#: Text after the name of the program.
ORIGINS = {"load": " from the cache on disk"}


def has_listeners() -> bool:
    """Return True if a listener is set in this thread, so that an event is worth preparing."""
    return bool(_listeners.all) or LOGGED.value


def line(event: Event) -> str:
    """An event that makes a program, as a line of text."""
    why = f": {event.about['why']}" if event.about.get("why") else ""
    return f"{VERBS[event.kind]} {event.name}{ORIGINS.get(event.kind, '')} in {event.seconds * 1e3:.3g} ms{why}"


def emit(kind: str, name: str, seconds: float = 0.0, **about: Any) -> None:
    """Pass an event to all listeners of this thread."""
    if LOGGED.value and kind in VERBS:
        import logging  # takes 4 ms

        where = ", in the background" if _listeners.in_background else ""
        logging.getLogger("functorch_like").warning("%s%s", line(Event(kind, name, seconds, about)), where)
    for listener in _listeners.all:
        listener(Event(kind, name, seconds, about))


@contextmanager
def listening(listener: Callable[[Event], Any]) -> Generator[None]:
    """Within the block, in this thread, call `listener` with every event."""
    before = _listeners.all
    _listeners.all = (*before, listener)
    try:
        yield
    finally:
        _listeners.all = before


def is_in_background() -> bool:
    """Return True in a block of `in_background`."""
    return _listeners.in_background


@contextmanager
def in_background() -> Generator[None]:
    """Within the block, mark what is logged as work of a background thread, which this thread is."""
    _listeners.in_background = True
    try:
        yield
    finally:
        _listeners.in_background = False
