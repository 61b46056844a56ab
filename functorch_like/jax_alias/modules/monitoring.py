"""`jax.monitoring`: events that programs record, passed to registered listeners. The package itself records none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_LISTENERS: dict[str, list[Callable[..., Any]]] = {"event": [], "duration": [], "span": [], "scalar": []}


def _recorder(kind: str) -> Callable[..., None]:
    def record(event: str, *values: Any, **details: Any) -> None:
        """Pass an event to the listeners of its kind."""
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
        """Remove a listener."""
        _LISTENERS[kind].remove(callback)

    return unregister


record_event, record_event_duration_secs = _recorder("event"), _recorder("duration")
record_event_time_span, record_scalar = _recorder("span"), _recorder("scalar")
register_event_listener, register_event_duration_secs_listener = _register("event"), _register("duration")
register_event_time_span_listener, register_scalar_listener = _register("span"), _register("scalar")
unregister_event_listener, unregister_event_duration_listener = _unregister("event"), _unregister("duration")
unregister_event_time_span_listener, unregister_scalar_listener = _unregister("span"), _unregister("scalar")


def clear_event_listeners() -> None:
    """Remove all listeners."""
    for listeners in _LISTENERS.values():
        listeners.clear()
