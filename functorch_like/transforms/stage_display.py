"""Traced, lowered and compiled functions to look at: time of each stage, cost and memory. Nothing is compiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from functorch_like.errors import bytes_text
from functorch_like.ir.jaxpr import Jaxpr, count_equations, display
from functorch_like.markup import elements, terminal
from functorch_like.markup.display import Display

#: XLA's names of costs, in this order, with their names in displays.
_COSTS = {"flops": "operations", "transcendentals": "transcendental functions", "bytes accessed": "bytes accessed"}
_MEMORY = {
    "argument": "arguments", "output": "results", "temp": "temporaries", "alias": "results in place of arguments",
    "code": "code",
}  # fmt: skip


class Stage(NamedTuple):
    """One stage of a function.

    Attributes:
        name: "tracing", "lowering" or "compiling".
        seconds: time it took.
    """

    name: str
    seconds: float


class StageDisplay(Display):
    """A function at one of its stages.

    Args:
        kind: "traced", "lowered" or "compiled".
        jaxpr: the function's jaxpr.
        stages: the stages that it went through.
        place: the device or mesh that it is for, as text.
        executable: the executable of a compiled function.
    """

    def __init__(self, kind: str, jaxpr: Jaxpr, stages: Sequence[Stage], place: str = "", executable: Any = None):
        self._kind, self._jaxpr, self._stages, self._place = kind, jaxpr, stages, place
        self._executable = executable

    def layout(self, paint: terminal.Paint = terminal.plain) -> str:
        """Return the signature, the time of each stage, and cost and memory of a compiled function."""
        lines = terminal.wrapped(f"{self._signature()}", f"{self._kind} ", "    ")
        lines[0] = paint(lines[0][: len(self._kind)], "head") + lines[0][len(self._kind) :]
        longest = max(stage.seconds for stage in self._stages) or 1.0
        times = [
            (f"  {stage.name}", seconds_text(stage.seconds), paint(terminal.bar(stage.seconds / longest), "blue"))
            for stage in self._stages
        ]
        facts = [line for name, value in self._facts() for line in terminal.wrapped(value, f"  {name:<9}  ")]
        return "\n".join([*lines, *terminal.columns(times, numbers=[1]), *facts])

    def markup(self) -> elements.Markup:
        """Return the same as tables, with the jaxpr in a part that folds."""
        longest = max(stage.seconds for stage in self._stages) or 1.0
        times = [
            (stage.name, seconds_text(stage.seconds), elements.bar(stage.seconds / longest)) for stage in self._stages
        ]
        head = elements.join([elements.span(f"{self._kind} ", "head"), elements.element("code", self._signature())])
        return elements.join(
            [
                elements.element("div", head),
                elements.table((), times, numbers=[1]),
                elements.facts(self._facts()),
                elements.details("jaxpr", display(self._jaxpr).markup()),
            ]
        )

    def _signature(self) -> str:
        operands = ", ".join(map(repr, self._jaxpr.in_avals))
        results = ", ".join(map(repr, self._jaxpr.out_avals))
        return terminal.trimmed(f"{self._jaxpr.name}({operands}) -> {results or '()'}", 600)

    def _facts(self) -> list[tuple[str, str]]:
        count = count_equations(self._jaxpr)
        facts = [("jaxpr", f"{count} equation{'' if count == 1 else 's'}")]
        if self._place:
            facts.append(("for", terminal.trimmed(self._place, 200)))
        if self._executable is not None:
            facts += [("cost", _cost(self._executable)), ("memory", _memory(self._executable))]
        return facts


def _cost(executable: Any) -> str:
    """XLA's estimate as text."""
    try:
        cost = executable.cost_analysis()
    except Exception as error:  # not every platform estimates
        return f"unknown: {str(error).splitlines()[0]}" if str(error) else "unknown"
    shown = [
        f"{bytes_text(int(cost[name]))} accessed" if name == "bytes accessed" else f"{cost[name]:.4g} {called}"
        for name, called in _COSTS.items()
        if cost.get(name)
    ]
    return ", ".join(shown) or "none"


def _memory(executable: Any) -> str:
    try:
        memory = dict(executable.memory_analysis())
    except Exception as error:
        return f"unknown: {str(error).splitlines()[0]}" if str(error) else "unknown"
    shown = [f"{_MEMORY.get(name, name)} {bytes_text(int(size))}" for name, size in memory.items() if size]
    return ", ".join(shown) or "none"


def seconds_text(seconds: float) -> str:
    """Return a time in a unit in which it has few digits.

    >>> seconds_text(0.0123)
    '12.3 ms'
    """
    for unit, factor in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"
