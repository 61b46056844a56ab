"""Known values that a linear half needs: those kept from the forward run, and those computed again.

The linear half of a checkpointed jaxpr is cut into segments. Each becomes one equation, whose jaxpr first computes its
residuals again, from inputs and from the values kept, and then runs the linear equations. (Recomputation in segments:
Chen et al., "Training deep nets with sublinear memory cost", 2016.)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from functorch_like import core
from functorch_like.ir import passes
from functorch_like.ir.jaxpr import Equation, Jaxpr, Literal, Var, effects
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives.effects.memory_placement import memory_placement
from functorch_like.primitives.higher_order.call import call
from functorch_like.primitives.higher_order.partial_eval import PartialEval, places

#: A function that is called at least this often stays a call where no policy asks for its equations.
_OFTEN = 4


def inlined(jaxpr: Jaxpr, keep_repeated: bool) -> tuple[Jaxpr, list[Any]]:
    """A jaxpr with the bodies of its calls in place, so that each of their values is kept or not; and its consts.

    Args:
        jaxpr: the jaxpr.
        keep_repeated: leave calls of functions that it calls often as they are: an unrolled loop is as long as its
            body times its steps.
    """

    def make() -> tuple[Jaxpr, list[Any]]:
        calls = _number_of_calls(jaxpr)
        often = {body for body, number in calls.items() if number >= _OFTEN and not body.effects}  # these happen once
        kept = often if keep_repeated else set()
        if calls.keys() == kept:
            return jaxpr, []
        fun = lambda *xs: _evaluate_inlined(jaxpr, xs, kept)
        return stage(fun, jaxpr.in_avals, name=jaxpr.name, origin=jaxpr.origin, parent=core.EVALUATE, chain="")

    return jaxpr.memo(("inlined", keep_repeated), make)


def _number_of_calls(jaxpr: Jaxpr) -> dict[Jaxpr, int]:
    """Return how many equations call each jaxpr, also from those that are called."""
    number: dict[Jaxpr, int] = {}
    pending = [jaxpr]
    while pending:
        for e in pending.pop().equations:
            if e.prim is call:
                body = e.params["jaxpr"]
                if body not in number:
                    pending.append(body)
                number[body] = number.get(body, 0) + 1
    return number


def _evaluate_inlined(jaxpr: Jaxpr, args: Sequence[Any], kept: set[Jaxpr]) -> list[Any]:
    values: dict[Any, Any] = dict(zip(jaxpr.inputs, args, strict=True))
    read = lambda a: a.value if type(a) is Literal else values[a]
    carried = core.state.source
    try:
        for e in jaxpr.equations:
            core.state.source = e.source
            operands = [read(a) for a in e.inputs]
            inner = e.params["jaxpr"] if e.prim is call and e.params["jaxpr"] not in kept else None
            out = e.prim(*operands, **e.params) if inner is None else _evaluate_inlined(inner, operands, kept)
            values.update(zip(e.outputs, out if e.prim.multiple_results else (out,), strict=True))
    finally:
        core.state.source = carried
    return [read(a) for a in jaxpr.outputs]


class Graph:
    """Both halves as one graph: linear equations that read atoms of the known half.

    Attributes:
        halves: the partial evaluation it was made of.
        known: the known half.
        linear: the linear equations, in order; the values of the known half that they read are its variables.
        tangents: variables that the linear equations start from.
        outputs: the results of the linear equations.
        made_by: for each variable of the known half that is not an input, the position of its equation.
    """

    def __init__(self, parts: PartialEval) -> None:
        self.halves, self.known = parts, parts.known
        atoms = [(self.known.inputs if kind == "in" else self.known.outputs)[k] for kind, k in parts.residuals]
        n = len(atoms)
        of: dict[Any, Any] = dict(zip(parts.linear.inputs, atoms, strict=False))
        self.tangents = parts.linear.inputs[n:]
        read = lambda a: of.get(a, a) if type(a) is Var else a
        self.linear = [e.of([read(a) for a in e.inputs]) for e in parts.linear.equations]
        self.outputs = [read(a) for a in parts.linear.outputs]
        self.made_by = {v: k for k, e in enumerate(self.known.equations) for v in e.outputs}
        self._inputs = set(self.known.inputs)

    @property
    def results(self) -> list[Any]:
        """The known results of the whole; the residuals after them have no other use."""
        return self.known.outputs[: self.halves.unknown_out.count(False)]

    def residuals(self, equations: Iterable[Equation]) -> list[Var]:
        """Variables of the known half that linear equations read, each once."""
        is_known = lambda a: type(a) is Var and (a in self.made_by or a in self._inputs)
        return list(dict.fromkeys(a for e in equations for a in e.inputs if is_known(a)))

    def needed(self, values: Iterable[Var], kept: set[Var]) -> tuple[list[Equation], list[Var]]:
        """The equations that compute variables again, in order, and the variables they read: inputs and kept values."""
        again: set[int] = set()
        read: dict[Var, None] = {}
        pending = list(values)
        while pending:
            v = pending.pop()
            at = self.made_by.get(v)
            if at is None or v in kept or effects(self.known.equations[at]):  # effects do not happen again
                read[v] = None
            elif at not in again:
                again.add(at)
                pending.extend(a for a in self.known.equations[at].inputs if type(a) is Var)
        return [self.known.equations[k] for k in sorted(again)], list(read)

    def apart(self, kept: set[Var]) -> list[tuple[int, set[Var]]]:
        """Cut wherever no recomputed value is used on both sides, so that the fewest values are alive at a time.

        Args:
            kept: variables that are not computed again.
        """
        again, _ = self.needed(self.residuals(self.linear), kept)
        first: dict[Var, int] = {}
        last: dict[Var, int] = {}

        def used(v: Var, start: int, stop: int) -> None:
            first[v] = min(first.get(v, start), start)
            last[v] = max(last.get(v, stop), stop)

        for k, e in enumerate(self.linear):
            for v in self.residuals([e]):
                used(v, k, k)
        starts = [0] * (len(self.linear) + 1)  # by position: recomputed values whose first, or last, use is there
        stops = [0] * (len(self.linear) + 1)
        for e in reversed(again):
            outputs = [v for v in e.outputs if v in first]
            start, stop = min(first[v] for v in outputs), max(last[v] for v in outputs)
            starts[start] += 1
            stops[stop] += 1
            for a in e.inputs:
                if type(a) is Var:
                    used(a, start, stop)
        cuts: list[tuple[int, set[Var]]] = []
        alive = begun = 0
        for k in range(len(self.linear)):
            if starts[k] and begun and not alive:
                cuts.append((k, kept))
            alive += starts[k]
            begun += starts[k]
            alive -= stops[k]
        return [*cuts, (len(self.linear), kept)]


@dataclasses.dataclass(frozen=True)
class Segment:
    """One equation of the tape.

    Attributes:
        jaxpr: takes known values, then tangents; returns tangents.
        known: the values of the known half that it takes: ("in", k) an input, ("out", k) a result of `Plan.known`.
        again: whether it computes anything again.
        takes, gives: tangents, by number; the inputs of the whole come first.
    """

    jaxpr: Jaxpr
    known: list[tuple[str, int]]
    again: bool
    takes: list[int]
    gives: list[int]


@dataclasses.dataclass(frozen=True)
class Plan:
    """Equations to run now, and equations to record.

    Attributes:
        known: gives the known results, then the kept values.
        consts: the values of its first inputs.
        segments: in order.
        outputs: the numbers of the tangents that result.
        unknown_out: as of `PartialEval`.
    """

    known: Jaxpr
    consts: list[Any]
    segments: list[Segment]
    outputs: list[int]
    unknown_out: list[bool]


@dataclasses.dataclass(frozen=True)
class Offload:
    """Decision of a policy to keep a value in other memory until the derivative needs it.

    Attributes:
        source: the kind of memory that it is in, and comes back to.
        target: the kind of memory that it is kept in.
    """

    source: str
    target: str


class _Offloaded:
    """Values that are kept in other memory: equations that move them there, and back.

    Args:
        graph: both halves.
        which: variables of the known half.
    """

    def __init__(self, graph: Graph, which: Mapping[Var, Offload]) -> None:
        self._graph, self._which, self._moved = graph, which, dict[Var, Var]()
        self.equations: list[Equation] = []  # of the known half

    def there(self, v: Var) -> Var:
        """Return the variable that is kept for another."""
        if v not in self._which:
            return v
        if v not in self._moved:
            self._moved[v] = kept = Var(v.aval)
            self.equations.append(self._move(v, self._which[v].target, kept))
        return self._moved[v]

    def back(self, read: Iterable[Var]) -> list[Equation]:
        """Return the equations that make variables of those that were kept for them."""
        return [self._move(self.there(v), self._which[v].source, v) for v in read if v in self._which]

    def _move(self, operand: Var, kind: str, result: Var) -> Equation:
        named = result if result in self._graph.made_by else operand
        source = self._graph.known.equations[self._graph.made_by[named]].source
        return Equation(memory_placement, [operand], {"kind": kind}, [result], source)


def plan(graph: Graph, cuts: Sequence[tuple[int, set[Var]]], offload: Mapping[Var, Offload] | None = None) -> Plan:
    """Cut the linear half into segments.

    Args:
        graph: both halves.
        cuts: for each segment where it ends, as a position among the linear equations, and which variables it may
            read without computing them again.
        offload: variables of the known half that are kept in other memory.
    """
    moved = _Offloaded(graph, offload or {})
    results = graph.results
    outputs = list(results)
    position: dict[Any, int] = {a: k for k, a in enumerate(outputs) if type(a) is Var}
    inputs = {v: k for k, v in enumerate(graph.known.inputs)}
    number = {v: k for k, v in enumerate(graph.tangents)}
    ends = [end for end, _ in cuts]
    segments: list[Segment] = []
    for start, (end, kept) in zip([0, *ends], cuts, strict=False):
        equations = graph.linear[start:end]
        if not equations:
            continue
        again, read = graph.needed(graph.residuals(equations), kept)
        kept_as = [moved.there(v) for v in read]
        known = places(kept_as, inputs, outputs, position)
        takes = list(dict.fromkeys(a for e in equations for a in e.inputs if a in number))
        after = {a for e in graph.linear[end:] for a in e.inputs if type(a) is Var}.union(graph.outputs)
        gives = [v for e in equations for v in e.outputs if v in after]
        name = graph.halves.linear.name
        origin = graph.halves.linear.origin
        jaxpr = Jaxpr([*kept_as, *takes], [*moved.back(read), *again, *equations], list(gives), name, origin)
        taken = [number[v] for v in takes]
        for v in gives:
            number[v] = len(number)
        segments.append(Segment(jaxpr, known, bool(again), taken, [number[v] for v in gives]))
    known_equations = [*graph.known.equations, *moved.equations]
    known_half = Jaxpr(graph.known.inputs, known_equations, outputs, graph.known.name, graph.known.origin)
    return Plan(
        passes.dead_code(known_half),
        graph.halves.consts,
        segments,
        [number[v] for v in graph.outputs],
        graph.halves.unknown_out,
    )
