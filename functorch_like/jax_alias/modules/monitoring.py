"""`jax.monitoring`: events of programs, given to the listeners that programs register. The package records none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_LISTENERS: dict[str, list[Callable[..., Any]]] = {"event": [], "duration": [], "span": [], "scalar": []}


def _recorder(kind: str) -> Callable[..., None]:
    def record(event: str, *values: Any, **details: Any) -> None:
        """Give an event to the listeners of its kind."""
        for listener in _LISTENERS[kind]:
            listener(event, *values, **details)

    return record


def _register(kind: str) -> Callable[[Callable[..., Any]], None]:
    def register(callback: Callable[..., Any]) -> None:
        """Add a listener."""
        _LISTENERS[kind].append(callback)

    return register


def _unregister(kind: str) -> Callable[[Callable[..., Any]], None]:
    def unregister(callback: Callable[..., Any]) -> None:
        """Take a listener away."""
        _LISTENERS[kind].remove(callback)

    return unregister


record_event, record_event_duration_secs = _recorder("event"), _recorder("duration")
record_event_time_span, record_scalar = _recorder("span"), _recorder("scalar")
register_event_listener, register_event_duration_secs_listener = _register("event"), _register("duration")
register_event_time_span_listener, register_scalar_listener = _register("span"), _register("scalar")
unregister_event_listener, unregister_event_duration_listener = _unregister("event"), _unregister("duration")
unregister_event_time_span_listener, unregister_scalar_listener = _unregister("span"), _unregister("scalar")


def clear_event_listeners() -> None:
    """Take all listeners away."""
    for listeners in _LISTENERS.values():
        listeners.clear()
