"""A program of a whole graph of paths: branches become `cond`, loops `while`, and branches that meet go on together.

Between places the program carries a *position*, the place that comes next, and *registers*, which hold the slots of
that place or the results.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from functorch_like.avals import ShapedArray
from functorch_like.primitives import elementwise, structural
from functorch_like.transforms.paths.control import INDEX, Values, choose, loop, strong, which
from functorch_like.transforms.paths.graph import Graph, Place
from functorch_like.transforms.paths.play import Env, play, read
from functorch_like.transforms.paths.tree import Node
from functorch_like.transforms.paths.words import Words

DONE, MISS = 0, 1
_FIRST = 2  # position of the first joint


class GraphProgram:
    """Staging of a graph.

    Args:
        graph: graph of paths whose results have the same structure and shapes.
        results: their avals, to which numbers of Python are converted.
    """

    def __init__(self, graph: Graph, results: Sequence[ShapedArray]) -> None:
        self.graph, self.name = graph, graph.tree.name
        self.registers: list[ShapedArray] = []
        self.results = self.allot(results)
        joints = [place for group in graph.joints for place in group]
        self.position = {place: _FIRST + k for k, place in enumerate(joints)}
        self.slots = {p: self.allot(v.aval for v in p.slots(p.members[0])) for p in joints}
        self.env: Env = {}

    def allot(self, avals: Iterable[ShapedArray]) -> list[int]:
        """Allot a register to each aval; registers are shared between places."""
        free = list(range(len(self.registers)))
        result: list[int] = []
        for aval in avals:
            k = next((k for k in free if self.registers[k] is aval.strong()), None)
            if k is None:
                self.registers.append(aval.strong())
                k = len(self.registers) - 1
            else:
                free.remove(k)
            result.append(k)
        return result

    def stage(self, values: Sequence[Any]) -> tuple[Any, Values]:
        """Apply the program to the inputs of the tree, under the current trace; return last position and results."""
        tree = self.graph.tree
        assert tree.root is not None
        self.env = dict(zip(tree.all_inputs(), values, strict=True))
        play(tree.root.equations, self.env)  # everything may refer to values computed before the first guard
        start = [structural.full(a.shape, 0, a.dtype) for a in self.registers]
        state = self.arrive(tree.root, self.env, start)
        ends = self.ends_at(tree.root)
        for group in self.graph.joints:
            run = self.once if len(group) == 1 and group[0] not in self.graph.jumps(group[0]) else self.repeat
            state = run(group, state, ends)
            ends = (ends - set(group)).union(*(self.ends_of(p) for p in group)) - set(group)
        position, *registers = state
        return position, [registers[k] for k in self.results]

    # ---------------------------------------------------------------------------------------------------- stretches
    def region(self, node: Node, env: Env, registers: Values) -> Values:
        """Compute from a node up to the next joint, or the results."""
        env = dict(env)
        play(node.equations, env)
        return self.arrive(node, env, registers)

    def arrive(self, node: Node, env: Env, registers: Values) -> Values:
        """Go on at the end of a node's equations."""
        if node.outputs is not None:
            return self.jump(DONE, [read(a, env) for a in node.outputs], self.results, registers)
        place = self.graph.place_of[node]
        values = [env[v] for v in place.slots(node)]
        if place in self.position:
            return self.jump(self.position[place], values, self.slots[place], registers)
        return self.decide(place, values, registers, env)

    def jump(self, position: int, values: Values, into: Sequence[int], registers: Values) -> Values:
        registers = list(registers)
        for k, value in zip(into, values, strict=True):
            registers[k] = strong(value, self.registers[k].dtype)
        return [np.array(position, INDEX), *registers]

    def bound(self, node: Node, values: Values, env: Env) -> Env:
        """Return an environment for a member of a place, whose slots have these values.

        Members may use one variable for different slots. So where there are several, only the values computed before
        the first guard are kept beside the slots.
        """
        place = self.graph.place_of[node]
        if self.graph.is_alone(place):
            return env
        return {**self.env, **dict(zip(place.slots(node), values, strict=True))}

    def decide(self, place: Place, values: Values, registers: Values, env: Env) -> Values:
        """Go on along the edge that the guard's value chooses."""
        branches: list[Callable[[], Values]] = [
            functools.partial(self.follow, child, values, registers, env) for child in place.edges.values()
        ]
        if not place.total:
            branches.append(lambda: [np.array(MISS, INDEX), *registers])
        return choose(which(self.guard_of(place, values, env), list(place.edges)), branches, self.name)

    def follow(self, child: Node, values: Values, registers: Values, env: Env) -> Values:
        """Go on to a child of a member of a place, whose slots have these values."""
        assert child.parent is not None
        return self.region(child, self.bound(child.parent, values, env), registers)

    def guard_of(self, place: Place, values: Values, env: Env) -> Any:
        node = place.members[0]
        assert node.guard is not None
        return self.bound(node, values, env)[node.guard.var]

    def slot_values(self, place: Place, registers: Sequence[Any]) -> Values:
        """Return the values of the slots of a joint."""
        return [registers[k] for k in self.slots[place]]

    # ------------------------------------------------------------------------------------------------------- joints
    def once(self, group: Sequence[Place], state: Values, ends: set[Any]) -> Values:
        """Go on from a place, if it is the position."""
        (place,) = group
        run = lambda: self.decide(place, self.slot_values(place, state[1:]), state[1:], self.env)
        if ends == {place}:
            return run()
        return choose(self.is_at(place, state), [lambda: state, run], self.name)

    def repeat(self, group: Sequence[Place], state: Values, ends: set[Any]) -> Values:
        """Go on for as long as the position is in a group."""
        stay = self.staying(group)
        if stay is not None:
            return self.rolled(group[0], stay, state, ends)
        first, last = self.position[group[0]], self.position[group[-1]]

        def more(position: Any, *_: Any) -> Any:
            after, before = np.array(first, INDEX), np.array(last, INDEX)
            return elementwise.and_(elementwise.ge(position, after), elementwise.le(position, before))

        def step(position: Any, *registers: Any) -> Values:
            at = list(registers)
            run = [lambda p=p: self.decide(p, self.slot_values(p, at), at, self.env) for p in group]
            return choose(elementwise.sub(position, np.array(first, INDEX)), run, self.name)

        return loop(more, step, state, self.name)

    def staying(self, group: Sequence[Place]) -> Words | None:
        """Return the truth value for which a loop of one place goes on, where it is the only one."""
        place = group[0]
        guard = place.members[0].guard
        assert guard is not None
        if len(group) > 1 or guard.var.aval.dtype != bool or guard.var.aval.shape:
            return None
        back = [words for words, child in place.edges.items() if place in self.ends_at(child)]
        return back[0] if len(back) == 1 else None

    def rolled(self, place: Place, stay: Words, state: Values, ends: set[Any]) -> Values:
        """Write the loop at one place, `while guard: ...`, and its continuation."""
        position, expected = np.array(self.position[place], INDEX), np.array(bool(stay[0]))

        def more(at: Any, *registers: Any) -> Any:
            on = elementwise.eq(self.guard_of(place, self.slot_values(place, registers), self.env), expected)
            return on if only else elementwise.and_(on, elementwise.eq(at, position))

        def step(_: Any, *registers: Any) -> Values:
            return self.follow(place.edges[stay], self.slot_values(place, registers), list(registers), self.env)

        only = ends == {place} and self.ends_at(place.edges[stay]) == {place}
        after = loop(more, step, state, self.name)
        rest = {words: child for words, child in place.edges.items() if words != stay}

        def leave() -> Values:
            if not rest:
                return [np.array(MISS, INDEX), *after[1:]]
            return self.follow(next(iter(rest.values())), self.slot_values(place, after[1:]), after[1:], self.env)

        if only:
            return leave()
        return choose(self.is_at(place, after), [lambda: after, leave], self.name)

    def is_at(self, place: Place, state: Values) -> Any:
        """Return 1 where the position is a place, and 0 elsewhere."""
        here = elementwise.eq(state[0], np.array(self.position[place], INDEX))
        return structural.convert_element_type(here, new_dtype=INDEX, weak_type=False)

    def ends_at(self, node: Node) -> set[Any]:
        """Return where a region may end: joints, DONE and MISS."""
        if node.outputs is not None:
            return {DONE}
        place = self.graph.place_of[node]
        return {place} if place in self.position else self.ends_of(place)

    def ends_of(self, place: Place) -> set[Any]:
        missing: set[Any] = set() if place.total else {MISS}
        return missing.union(*(self.ends_at(child) for child in place.edges.values()))
