"""Traces that follow Python control flow: each conversion of a traced value to Python is a guard of the path."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from functorch_like import dtypes, source_info
from functorch_like.core import Primitive, Trace
from functorch_like.errors import ConcretizationError
from functorch_like.ir.jaxpr import Var
from functorch_like.ir.trace_to_jaxpr import StageTrace, StageTracer
from functorch_like.primitives.base.shapes import zeros
from functorch_like.primitives.elementwise.comparison import ne
from functorch_like.transforms.paths.global_state import GlobalState
from functorch_like.transforms.paths.python_state import PythonState, python_state
from functorch_like.transforms.paths.words import Words, value_of

#: Guards of one path: a loop that has more compiles for hours.
MOST_GUARDS = 5_000


class TooManyGuards(ConcretizationError):
    """Error of a path with too many guards."""


class Guard(NamedTuple):
    """A conversion of a traced value by Python, with the value it gave.

    Attributes:
        var: the traced value.
        words: its bits.
        what: the conversion: "bool", "int", ...
        line: the user's line.
        end: the number of equations before it.
        alive: the variables that Python still holds.
        state: the state of Python at this point, where it is known.
    """

    var: Var
    words: Words
    what: str
    line: source_info.Line | None
    end: int
    alive: list[Var]
    state: PythonState | None


class FollowingTrace(StageTrace):
    """Trace that records equations like its base, and a guard wherever Python converts a value.

    Attributes:
        guards: in the order of Python's conversions.
        base: Python's frames at the first guard.
        entered: for each of these frames, the `with` blocks open at that point that are in no loop.
        bottom: the frame below them.
        outside: the state of Python outside of frames.
        inside: whether conditions were followed in a body inside, such as a mapped function.
    """

    __slots__ = ("_born", "_truths", "base", "bottom", "entered", "guards", "inside", "outside")

    follows = True

    def __init__(self, name: str, parent: Trace) -> None:
        super().__init__(name, parent)
        self.broadcasts = None  # they would count as values that Python still holds
        self.guards: list[Guard] = []
        self.base: list[Any] = []
        self.entered: list[frozenset[Any]] = []
        self.bottom: Any = None
        self.outside: GlobalState | None = None
        self.inside = False
        self._born: list[tuple[Any, Var]] = []
        self._truths: dict[Var, StageTracer] = {}

    def process(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        out = super().process(prim, args, params)
        # By reference counts it is known at any time which values Python still holds: those whose tracer lives.
        self._born += [(weakref.ref(t), t._var) for t in (out if prim.multiple_results else (out,))]
        return out

    def alive(self) -> list[Var]:
        """Return the variables that Python still holds."""
        return [v for t, v in self._born if t() is not None]

    def guard(self, tracer: StageTracer, what: str) -> Any:
        if self.finished or not self.guards_on(tracer, what):
            return None
        if what == "bool" and tracer.aval.dtype != dtypes.bool_:  # any other number than zero is one path
            tracer = self.truth(tracer)
        var, aval = tracer._var, tracer.aval
        words = next((g.words for g in self.guards if g.var is var), None)
        if words is None:
            if len(self.guards) >= MOST_GUARDS:
                raise TooManyGuards(
                    f"{self.name} has asked for {MOST_GUARDS} values on one path",
                    fix="make its longest loop a lax.while_loop or lax.fori_loop",
                )
            line, state, alive = source_info.user_line(), python_state(self, tracer), self.alive()
            words = self.decide(var, state)
            self.guards.append(Guard(var, words, what, line, len(self.equations), alive, state))
        return value_of(words, aval)

    def forget(self, start: int) -> None:
        if not any(g.end > start for g in self.guards):  # others have been computed, or decide already
            super().forget(start)
            self._truths = {v: t for v, t in self._truths.items() if any(t._var in e.outputs for e in self.equations)}

    def guards_on(self, tracer: StageTracer, what: str) -> bool:
        """Return True where a conversion of a value can be a guard."""
        raise NotImplementedError

    def decide(self, var: Var, state: PythonState | None) -> Words:
        """Return the value of a guard on this path, in this state of Python."""
        raise NotImplementedError

    def truth(self, tracer: StageTracer) -> StageTracer:
        """Return whether a number is not zero, recorded once for each."""
        made = self._truths.get(tracer._var)
        if made is None:
            made = self._truths[tracer._var] = self.process(ne, [tracer, zeros(tracer.aval)], {})
        return made

    def framed(self, flat: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that marks where Python's frames of the traced function begin."""

        def run(*leaves: Any) -> Any:
            self.bottom = sys._getframe()
            try:
                return flat(*leaves)
            finally:
                self.bottom, self.base, self.entered, self.outside = None, [], [], None

        return run
