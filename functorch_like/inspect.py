"""Looking inside: every stage a function goes through, and what transformations do to one value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from functorch_like.backends import xla
from functorch_like.backends.xla import events
from functorch_like.calling import api_boundary
from functorch_like.compiler.lower import lower
from functorch_like.core import ArrayImpl, Tracer, aval_of
from functorch_like.errors import ArgumentError
from functorch_like.ir import passes
from functorch_like.ir.jaxpr import Jaxpr
from functorch_like.primitives.effects.probe import probe as _probe
from functorch_like.transforms.jit import make_jaxpr


class Stage(NamedTuple):
    """One stage of a function.

    Attributes:
        name: of the stage.
        how: it was made from the one before.
        size: how much there is: equations, operations or instructions.
        text: all of it.
    """

    name: str
    how: str
    size: str
    text: str


class History:
    """The stages of a function, in order; prints as text, a long stage cut off.

    Attributes:
        stages: a list of `Stage`.
        memory: bytes of arguments, results and temporaries of the compiled program.
        cost: XLA's estimate of floating-point operations and bytes accessed.
    """

    #: Of each stage, so many lines are printed; `stages[i].text` has all of them.
    LINES = 40

    def __init__(self, stages: list[Stage], memory: dict[str, int], cost: dict[str, float]) -> None:
        self.stages, self.memory, self.cost = stages, memory, cost

    def __str__(self) -> str:
        parts = [self._part(number, stage) for number, stage in enumerate(self.stages, 1)]
        return "\n\n".join([*parts, "memory in bytes: " + ", ".join(f"{k} {v}" for k, v in self.memory.items())])

    __repr__ = __str__

    def _part(self, number: int, stage: Stage) -> str:
        lines = stage.text.strip().splitlines()
        more = len(lines) - self.LINES
        shown = lines if more <= 0 else [*lines[: self.LINES], f"... {more} more lines in stages[{number - 1}].text"]
        return "\n".join([f"{number}. {stage.name} ({stage.how}): {stage.size}", *(f"   {line}" for line in shown)])


@api_boundary.public
def history(fun: Callable[..., Any]) -> Callable[..., History]:
    """A function that shows every stage `fun` goes through for given arguments, and how each was made.

    Args:
        fun: any function of arrays, transformed or not, as one would give to `jit`.

    Returns:
        A function of `fun`'s arguments that gives a `History`: the jaxprs that transformations derived while it was
        traced, its jaxpr, what the passes leave of it, StableHLO, and what XLA made of that.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> stages = ft.inspect.history(ft.grad(ft.jit(fnp.tanh)))(1.0).stages
    >>> [stage.name for stage in stages][-4:]
    ['jaxpr', 'simplified jaxpr', 'StableHLO', 'optimized HLO']
    """
    if not callable(fun):
        raise ArgumentError(
            f"history takes a function, got {type(fun).__name__}", fix="history(f)(x), not history(f(x))"
        )

    @api_boundary.public
    def shown(*args: Any, **kwargs: Any) -> History:
        happened: list[events.Event] = []
        with events.listening(happened.append):
            jaxpr = make_jaxpr(fun)(*args, **kwargs)
        stages = [
            Stage(event.name, event.about["how"], _equations(event.about["jaxpr"]), str(event.about["jaxpr"]))
            for event in happened
            if event.kind == "derive"
        ]
        stages.append(Stage("jaxpr", jaxpr.origin, _equations(jaxpr), str(jaxpr)))
        live = passes.dead_code(jaxpr)
        folded = passes.fold_constants(live)
        simple = passes.common_subexpressions(folded)
        sizes = [len(j.equations) for j in (jaxpr, live, folded, simple)]
        how = f"equations {sizes[0]}, without dead code {sizes[1]}, constants folded {sizes[2]}, common ones shared"
        stages.append(Stage("simplified jaxpr", how, _equations(simple), str(simple)))
        device = xla.default_device()
        lowered = lower(jaxpr, name=jaxpr.name, platform=device.platform, keep_unused=True)
        text = xla.module_text(lowered.module)
        operations = sum(" = " in line for line in text.splitlines())
        stages.append(Stage("StableHLO", f"lowered for {device.platform}", f"{operations} operations", text))
        compiled = lowered.compile(device)
        optimized = compiled.as_text()
        instructions = sum(" = " in line for line in optimized.splitlines())
        stages.append(
            Stage("optimized HLO", f"compiled by XLA for {device}", f"{instructions} instructions", optimized)
        )
        return History(stages, compiled.memory_analysis(), compiled.cost_analysis())

    return shown


def _equations(jaxpr: Jaxpr) -> str:
    return f"{len(jaxpr.equations)} equations"


@api_boundary.public
def probe(x: Any, name: str, report: Callable[[str], Any] = print) -> Any:
    """`x` itself; from then on, each transformation reports what it does to the value.

    Computed at once, it reports the value; traced by jit, that it is lowered. To print values when a compiled
    program runs, use `ft.debug.print`.

    Args:
        x: an array or number.
        name: what the value is called in the reports.
        report: called with each line.

    Returns:
        `x`.

    >>> import functorch_like as ft
    >>> ft.vmap(lambda x: ft.inspect.probe(x, "x") * 2)(ft.numpy.arange(3)).tolist()
    x: is mapped over an axis of 3 at 0 of i32[3]
    x: is [0 1 2] i32[3]
    [0, 2, 4]
    """
    value = x if isinstance(x, (ArrayImpl, Tracer)) else np.asarray(x, aval_of(x).dtype)
    return _probe(value, name=str(name), report=report)


__all__ = ["History", "Stage", "history", "probe"]
