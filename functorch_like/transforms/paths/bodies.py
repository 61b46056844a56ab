"""Tracing of both sides of every condition, where values are unknown: bodies of loops, rules, jitted functions.

A body is traced along one path after the other, until each condition has been answered both ways. A path ends where
Python is in a state that another path has passed: the rest is the same. The result is one jaxpr, with `cond` for
branches and `while` for loops. Conversions with more than two values are refused, such as `int(n)`; and so are an
`assert` and a loop that counts in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from functorch_like.avals import ShapedArray
from functorch_like.core import EVALUATE, Trace, transform_stack
from functorch_like.errors import ConcretizationError, FtError
from functorch_like.ir.jaxpr import Jaxpr, Var
from functorch_like.ir.trace_to_jaxpr import StageTracer, stage
from functorch_like.transforms.paths import report
from functorch_like.transforms.paths.following import FollowingTrace, TooManyGuards
from functorch_like.transforms.paths.graph import Graph, covers
from functorch_like.transforms.paths.path_trace import PathTrace
from functorch_like.transforms.paths.programs import PathProgram, common_results, merged
from functorch_like.transforms.paths.python_state import PythonState
from functorch_like.transforms.paths.tree import Tree
from functorch_like.transforms.paths.words import Words

_MOST_CONDITIONS = 200  # on one path
_MOST_TRACES = 64
SIDES: tuple[Words, ...] = ((0,), (1,))
_FIX = "choose with fnp.where or lax.cond; or move the condition out of the body, to where values are known"


class _Signature(NamedTuple):
    avals: Sequence[ShapedArray]


class _Met(BaseException):
    """Signal that a path has reached a state of another path; users' `except Exception` does not catch it."""


class BodyTrace(FollowingTrace):
    """Trace of one path of a function whose values are unknown.

    Args:
        name: its name in errors.
        parent: the trace around it.
        forced: the answers to the first conditions; the others are False.
        known: returns whether a path has passed a state.
    """

    __slots__ = ("_forced", "_known", "met")

    def __init__(self, name: str, parent: Trace, forced: Sequence[Words], known: Callable[[PythonState], bool]) -> None:
        super().__init__(name, parent)
        self._forced, self._known, self.met = list(forced), known, False

    def guard(self, tracer: StageTracer, what: str) -> Any:
        if not self.met:
            value = super().guard(tracer, what)
            if not self.met:
                return value
        raise _Met

    def guards_on(self, tracer: StageTracer, what: str) -> bool:
        return what == "bool" and tracer.aval.size == 1

    def decide(self, var: Var, state: PythonState | None) -> Words:
        at = len(self.guards)
        if at < len(self._forced):
            return self._forced[at]
        self.met = state is not None and self._known(state)
        if at >= _MOST_CONDITIONS and not self.met:
            raise TooManyGuards(f"a path of {self.name} has asked for {at} values, and goes on", fix=report.LOOP)
        return SIDES[0]


class _Exploration:
    """The tree of all paths of a body.

    Args:
        fun: of flat arguments and results; `fun.traced_aux()` returns the structure of the results.
        avals: of the arguments.
        name, chain: names of the jaxpr, and of the transformation in errors.
        parent: the trace around it.
        ends: whether paths end at states that are known.
    """

    def __init__(
        self, fun: Any, avals: Sequence[ShapedArray], name: str, chain: str, parent: Trace, ends: bool
    ) -> None:
        self.fun, self.avals, self.name, self.chain, self.parent = fun, avals, name, chain, parent
        self.ends = ends
        self.tree = Tree(_Signature(avals), fun, name)  # type: ignore[arg-type]
        self.states: dict[Any, list[tuple[int, ...]]] = {}
        self.inside = False

    def run(self) -> Tree:
        self.trace([])
        while (side := self.unknown_side()) is not None:
            if self.tree.traces >= _MOST_TRACES:
                raise self.refused(
                    f"it has more than {_MOST_TRACES} paths, most at {report.widest(self.tree)}", report.LOOP
                )
            self.trace(side)
        return self.tree

    def known(self, state: PythonState) -> bool:
        """Return True where a path has passed a state; otherwise record that one has."""
        seen, pattern = self.states.setdefault(state.key, []), state.pattern()
        if self.ends and any(covers(general, pattern) for general in seen):
            return True
        seen.append(pattern)
        return False

    def trace(self, forced: Sequence[Words]) -> None:
        """Trace the path with these answers, and insert it."""
        trace = BodyTrace(self.chain, self.parent, forced, self.known)

        def ending(*leaves: Any) -> Any:
            try:
                results = self.fun(*leaves)
            except (_Met, Exception):  # a `finally` of the user may have raised something else
                if not trace.met:
                    raise
            return [] if trace.met else results

        try:
            jaxpr, _ = stage(trace.framed(ending), self.avals, name=self.name, trace=trace)
        except FtError:
            raise
        except Exception as e:
            if not trace.guards:
                raise
            last = trace.guards[-1]
            side = f"{last.line} is {bool(last.words[0])}" if last.line is not None else "a condition is met"
            raise self.refused(f"where {side}, it raises {type(e).__name__}: {e}") from e
        self.inside = self.inside or trace.inside
        self.tree.insert(trace, jaxpr, self.fun.traced_aux(), unfinished=trace.met)

    def unknown_side(self) -> list[Words] | None:
        """Return the answers that lead to a side of a condition that no path has taken."""
        for place in Graph(self.tree, True).places():
            for words in SIDES:
                if words not in place.edges:
                    return [*place.members[0].decisions(), words]
        return None

    def refused(self, why: str, fix: str = _FIX) -> ConcretizationError:
        return ConcretizationError(
            f"values are unknown in {self.name}, so both sides of its conditions are traced, and {why}",
            fix=fix,
            chain=f"{transform_stack(self.parent)} > {self.chain}".removeprefix(" > "),
        )


def total(fun: Any, avals: Sequence[ShapedArray], *, name: str, origin: str, chain: str, parent: Trace) -> PathProgram:
    """Return the program of all paths of a function.

    Args:
        fun: of flat arguments and results; `fun.traced_aux()` returns the structure of the results.
        avals: of the arguments.
        name, origin: of the jaxpr.
        chain: the name of the transformation in errors.
        parent: the trace around it.

    Raises:
        ConcretizationError: where a condition cannot be answered both ways, or where paths give different types.
    """
    exploration = _Exploration(fun, avals, name, chain, parent, True)
    form = merged(exploration.run(), convert=True)
    if form is None or form.guarded:  # some value has no name where paths meet
        exploration = _Exploration(fun, avals, name, chain, parent, False)
        form = merged(exploration.run(), convert=True)
    if form is None or form.guarded:
        if common_results(exploration.tree.leaves) is None:
            why = f"they give results of different structures or types:\n{report.tree_text(exploration.tree)}"
            raise exploration.refused(why)
        raise exploration.refused(f"they do not meet again in one program, most at {report.widest(exploration.tree)}")
    form.jaxpr.origin, form.inside = origin, exploration.inside
    return form


def _body(fun: Any, avals: Sequence[ShapedArray], *, chain: str, parent: Trace, **of: Any) -> tuple[Jaxpr, list[Any]]:
    """Return the jaxpr of a function that is staged inside of a trace that follows paths, and what it closes over."""
    around = parent
    while around is not EVALUATE:
        if isinstance(around, FollowingTrace):
            around.inside = True
        around = around.parent
    try:
        form = total(fun, avals, chain=chain, parent=parent, **of)
    except ConcretizationError as e:
        if chain.startswith("jit(") and type(parent) is PathTrace:  # where values are known
            e.fix = f"let {chain} follow paths, too: control_flow='paths'; or {e.fix}"
        raise
    return form.jaxpr, form.consts


FollowingTrace.body = staticmethod(_body)
