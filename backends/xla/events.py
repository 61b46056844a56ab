"""What happens to programs (traced, lowered, compiled, loaded, run), told to who listens while it happens."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple


class Event(NamedTuple):
    """One thing that happened.

    Attributes:
        kind: "trace", "derive", "lower", "compile", "load", "run" and others that listeners may know.
        name: of the function or program.
        seconds: what it took.
        about: more, by name.
    """

    kind: str
    name: str
    seconds: float
    about: dict[str, Any]


class _Listeners(threading.local):
    all: tuple[Callable[[Event], Any], ...] = ()


_listeners = _Listeners()


def heard() -> bool:
    """Whether anybody listens in this thread, so that an event is worth preparing."""
    return bool(_listeners.all)


def tell(kind: str, name: str, seconds: float = 0.0, **about: Any) -> None:
    """Tell an event to all who listen in this thread."""
    for listener in _listeners.all:
        listener(Event(kind, name, seconds, about))


@contextmanager
def listening(listener: Callable[[Event], Any]) -> Iterator[None]:
    """Within the block, in this thread, call `listener` with every event."""
    before = _listeners.all
    _listeners.all = (*before, listener)
    try:
        yield
    finally:
        _listeners.all = before
