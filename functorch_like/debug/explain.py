"""`explain`: a record of what a call traced, compiled or loaded, with reasons and times."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from functorch_like.backends.xla import events
from functorch_like.calling import api_boundary
from functorch_like.calling.traced_function import check_callable
from functorch_like.markup import elements, terminal
from functorch_like.markup.display import Display
from functorch_like.source_info import name_of

if TYPE_CHECKING:
    from functorch_like.backends.xla.mesh import AbstractMesh, Mesh


class Explanation(Display):
    """Record of a call; prints as text.

    Attributes:
        result: the result of the call.
        events: in the order in which they happened: kind, name, seconds, about.
        seconds: time of the whole call.
    """

    def __init__(self, name: str, result: Any, happened: list[events.Event], seconds: float) -> None:
        self.name, self.result, self.events, self.seconds = name, result, happened, seconds

    def count(self, kind: str) -> int:
        """Return the number of events of a kind: "trace", "derive", "lower", "compile", "load", ..."""
        return sum(event.kind == kind for event in self.events)

    def layout(self, paint: terminal.Paint = terminal.plain) -> str:
        """Return a line for each event, with its time and its reason."""
        lines = [paint(self._head(), "head")]
        if self._ran_only():
            lines.append(f"  {_RAN_ONLY}")
        for event in self._shown():
            verb = _VERBS[event.kind]
            first, *rest = terminal.wrapped(_line(event), "  ", "      ")
            lines += [first.replace(verb, paint(verb, _STYLES.get(event.kind, "blue")), 1), *rest]
        return "\n".join(lines)

    def markup(self) -> elements.Markup:
        """Return a table of the events, with bars as long as they took."""
        longest = max((event.seconds for event in self._shown()), default=0.0) or 1.0
        rows = [
            (
                elements.span(_VERBS[event.kind] + _AFTER.get(event.kind, ""), _STYLES.get(event.kind, "blue")),
                elements.element("code", elements.breakable(event.name)),
                _duration(event.seconds) if event.seconds else "",
                elements.bar(event.seconds / longest) if event.seconds else "",
                _reasons(event),
            )
            for event in self._shown()
        ]
        head = elements.element("div", self._head(), cls="head")
        table = elements.table(("event", "program", "time", "", "why"), rows, numbers=[2]) if rows else None
        return elements.join([head, elements.element("div", _RAN_ONLY) if self._ran_only() else None, table])

    def _head(self) -> str:
        return f"{self.name}: {_duration(self.seconds)} in all"

    def _ran_only(self) -> bool:
        return not any(self.count(kind) for kind in ("trace", "lower", "compile", "load", "numpy"))

    def _shown(self) -> list[events.Event]:
        return [event for event in self.events if event.kind in _VERBS]


_RAN_ONLY = "ran what was compiled before: nothing was traced, lowered, compiled or loaded"
#: Work that a second call does not repeat has another colour.
_STYLES = {"trace": "orange", "lower": "orange", "compile": "red", "load": "green", "run": "green"}

_VERBS: dict[str, str] = {
    **events.VERBS,
    "derive": "derived",
    "widen": "widened",
    "path": "followed a path of",
    "guess": "ran the program of another path of",
    "roll": "rolled a loop of",
    "merge": "merged the paths of",
    "program": "needed another program of",
    "partition": "split",
    "tune": "tuned",
    "numpy": "let NumPy compute",
    "tier": "ran",
    "exchange": "exchanged",
    "run": "ran",
    "einsum": "chose a path for einsum",
}
#: Text after the name of the program.
_AFTER = {**events.ORIGINS, "exchange": " for its optimised form"}


def _line(event: events.Event) -> str:
    took = f" in {_duration(event.seconds)}" if event.seconds else ""
    what, about = f"{_VERBS[event.kind]} {event.name}{_AFTER.get(event.kind, '')}{took}", _reasons(event)
    return f"{what}: {about}" if about else what


def _reasons(event: events.Event) -> str:
    return "; ".join(str(event.about[key]) for key in ("why", "how", "size") if event.about.get(key))


def _duration(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


@api_boundary.public
def explain(
    fun: Callable[..., object],
    *,
    mesh: AbstractMesh | Mesh | None = None,
    target: str = "cpu",
    rates: Mapping[str, object] | None = None,
) -> Callable[..., Any]:
    """Return a function that calls `fun` and returns a record of what was traced, compiled and loaded, and why.

    With a mesh nothing runs: `fun` is compiled for the mesh, whose devices need not be there, and a plan is returned.
    It has the memory on each device, the collectives with their bytes, and an estimate of time (docs/distributed.md).

    Args:
        fun: any function, usually a jitted one.
        mesh: for a plan, an `AbstractMesh` or `Mesh` of up to some hundred devices. Arguments of the function are then
            arrays or `ShapeDtypeStruct`, with a sharding where they are split.
        target: for a plan, "cpu" or the name of a GPU such as "h200", which needs the CUDA plugin.
        rates: for a plan, rates of a device per second: {"flops": 4e14, "memory": 4e12, "links": 5e10}. "memory" and
            "links" are in bytes; "links", to other devices, is a number or a dict by axis. "latency" is optional, in
            seconds.

    Returns:
        A function of `fun`'s arguments that gives an `Explanation`, with the call's result in it; or a plan.

    Raises:
        ArgumentError: for anything but a function, and for an unknown mesh, target or rates.

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
    >>> mesh = ft.sharding.AbstractMesh((4,), ("data",))
    >>> x = ft.ShapeDtypeStruct((8,), "float32", sharding=ft.sharding.NamedSharding(mesh, ft.sharding.P("data")))
    >>> ft.explain(fnp.sum, mesh=mesh)(x).exchanges[0].kind
    'all-reduce'
    """
    check_callable(fun, "explain")
    if mesh is not None:
        from functorch_like.debug import plan

        return plan.plan(fun, mesh, target=target, rates=plan.rates_from(rates))
    name = name_of(fun)

    @api_boundary.public
    def explained(*args: Any, **kwargs: Any) -> Explanation:
        happened: list[events.Event] = []
        started = time.perf_counter()
        with events.listening(happened.append):
            result = fun(*args, **kwargs)
        return Explanation(name, result, happened, time.perf_counter() - started)

    return explained
