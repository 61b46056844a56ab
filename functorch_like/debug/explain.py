"""`explain`: what a call traced, compiled or loaded, why, and how long that took."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from functorch_like.backends.xla import events
from functorch_like.calling import api_boundary as boundary
from functorch_like.errors import ArgumentError


class Explanation:
    """What happened during a call; prints as text.

    Attributes:
        result: what the call returned.
        events: in the order in which they happened: kind, name, seconds, about.
        seconds: of the whole call.
    """

    def __init__(self, name: str, result: Any, happened: list[events.Event], seconds: float) -> None:
        self.name, self.result, self.events, self.seconds = name, result, happened, seconds

    def count(self, kind: str) -> int:
        """How many events of a kind there were: "trace", "derive", "lower", "compile", "load", ..."""
        return sum(event.kind == kind for event in self.events)

    def __str__(self) -> str:
        lines = [f"{self.name}: {_milliseconds(self.seconds)} in all"]
        if not any(self.count(kind) for kind in ("trace", "lower", "compile", "load")):
            lines.append("  ran what was compiled before: nothing was traced, lowered, compiled or loaded")
        lines += [f"  {_line(event)}" for event in self.events if event.kind in _TOLD]
        return "\n".join(lines)

    __repr__ = __str__


_TOLD: dict[str, str] = {
    **events.VERBS,
    "derive": "derived",
    "widen": "widened",
    "program": "needed another program of",
    "partition": "split",
    "tune": "tuned",
    "run": "ran",
    "einsum": "chose a path for einsum",
}


def _line(event: events.Event) -> str:
    took = f" in {_milliseconds(event.seconds)}" if event.seconds else ""
    what = f"{_TOLD[event.kind]} {event.name}{took}"
    about = [str(event.about[key]) for key in ("why", "how", "size") if event.about.get(key)]
    return f"{what}: {'; '.join(about)}" if about else what


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"


@boundary.public
def explain(fun: Callable[..., Any]) -> Callable[..., Explanation]:
    """A function that calls `fun` and returns what happened: what was traced, compiled, loaded, and why.

    Args:
        fun: any function, jitted ones most of all.

    Returns:
        A function of `fun`'s arguments that gives an `Explanation`, with the call's result in it.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> f = ft.jit(fnp.tanh)
    >>> why = ft.explain(f)(fnp.ones(3))
    >>> why.count("trace")
    1
    >>> print(ft.explain(f)(fnp.ones(3)))  # doctest: +ELLIPSIS
    tanh: ... ms in all
      ran what was compiled before: nothing was traced, lowered, compiled or loaded
    >>> [event.about["why"] for event in ft.explain(f)(fnp.ones(4)).events if event.kind == "trace"]
    ['args[0]: shape (3,) before, (4,) now']
    """
    if not callable(fun):
        raise ArgumentError(
            f"explain takes a function, got {type(fun).__name__}", fix="explain(f)(x), not explain(f(x))"
        )
    name = getattr(fun, "__name__", type(fun).__name__)

    @boundary.public
    def explained(*args: Any, **kwargs: Any) -> Explanation:
        happened: list[events.Event] = []
        started = time.perf_counter()
        with events.listening(happened.append):
            result = fun(*args, **kwargs)
        return Explanation(name, result, happened, time.perf_counter() - started)

    return explained
