"""The graph of a tree of paths: nodes with equal states of Python are one place.

Where branches meet again, the tree has many nodes for one place; a loop comes back to its place. A program of the graph
computes all paths that lead through it, those never taken included.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from functorch_like.transforms.paths.tree import Node, Tree
from functorch_like.transforms.paths.words import Words

#: Guards that may nest in one program.
DEEPEST = 40


class Place:
    """A point at which the function has a guard: nodes of the tree with equal states.

    Attributes:
        members: the nodes whose equations follow.
        edges: for each value of the guard so far, a member at which it occurred.
        entries: number of edges that lead here.
        total: whether each value that the guard can have is among the edges.
    """

    def __init__(self) -> None:
        self.members: list[Node] = []
        self.edges: dict[Words, Node] = {}
        self.entries = 0

    @property
    def total(self) -> bool:
        guard = self.members[0].guard
        assert guard is not None
        return guard.var.aval.dtype == bool and guard.var.aval.size == 1 and len(self.edges) == 2

    def slots(self, node: Node) -> list[Any]:
        """Return the variables of a node's state."""
        guard = node.guard
        assert guard is not None
        return guard.state.slots if guard.state is not None else []


class Graph:
    """Places, and where each path leads.

    Args:
        tree: the paths.
        shared: whether nodes with equal states are one place; otherwise the graph is the tree.

    Attributes:
        depth: largest number of nested guards. If that is too many for a program, `joints` is empty.
        joints: the places at which paths meet, in an order in which each follows those that lead to it, except for
            loops; places of one loop are one group.
    """

    def __init__(self, tree: Tree, shared: bool) -> None:
        self.tree = tree
        nodes = list(_nodes(tree.root)) if tree.root is not None else []
        self.place_of: dict[Node, Place] = {}
        for alike in _alike(nodes, shared):
            self.gather(alike)
        if nodes:
            self.place_of[nodes[0]].entries += 1
        for place in self.places():
            for target in self.targets(place):
                target.entries += 1
        self.depth = self.deepest()
        self.joints: list[list[Place]] = []
        if self.depth <= DEEPEST:
            self.joints = _components({p: self.jumps(p) for p in self.places() if p.entries > 1})
        self.total = all(p.total for p in self.places())
        self.cyclic = any(len(group) > 1 or group[0] in self.jumps(group[0]) for group in self.joints)

    def gather(self, alike: list[Node]) -> None:
        """Make places of nodes with equal states.

        Where two slots of some of them hold one value, their equations are special: they may use one for the other. The
        others are general, and their place takes in the special ones, as far as it has all their edges.
        """
        places: dict[Any, Place] = {}
        for node in alike:
            place = places.setdefault(_pattern(node), Place())
            place.members.append(node)
            for words, child in node.children.items():
                if child.guard is not None or child.outputs is not None:
                    place.edges.setdefault(words, child)
        ordered = sorted(places, key=lambda pattern: -len(set(pattern)))
        for k, pattern in enumerate(ordered):
            place = places[pattern]
            for general in ordered[:k]:
                if covers(general, pattern) and places[pattern].edges.keys() <= places[general].edges.keys():
                    place = places[pattern] = places[general]
                    break
            self.place_of.update((n, place) for n in alike if _pattern(n) == pattern)

    def deepest(self) -> int:
        """Return how many guards nest: each inside of a branch of the one before, without a joint between."""
        root = [self.place_of[self.tree.root]] if self.tree.root in self.place_of else []
        todo = [(p, 1) for p in dict.fromkeys([*root, *(p for p in self.places() if p.entries > 1)])]
        deepest = 0
        while todo:
            place, depth = todo.pop()
            deepest = max(deepest, depth)
            todo += [(target, depth + 1) for target in self.targets(place) if target.entries == 1]
        return deepest

    def is_alone(self, place: Place) -> bool:
        """Return True where a place is one node of the tree."""
        return place.entries == 1 and sum(p is place for p in self.place_of.values()) == 1

    def places(self) -> list[Place]:
        return list(dict.fromkeys(self.place_of.values()))

    def targets(self, place: Place) -> list[Place]:
        """Return the places that the edges of a place lead to."""
        return [self.place_of[child] for child in place.edges.values() if child.guard is not None]

    def jumps(self, place: Place) -> list[Place]:
        """Return the joints that come next after a place."""
        result: list[Place] = []
        for target in self.targets(place):
            result += [target] if target.entries > 1 else self.jumps(target)
        return list(dict.fromkeys(result))


def _alike(nodes: list[Node], shared: bool) -> Iterable[list[Node]]:
    """Return the nodes in groups of equal states; each alone, where nothing is shared."""
    groups: dict[Any, list[Node]] = {}
    for node in nodes:
        state = node.guard.state if shared and node.guard is not None else None
        groups.setdefault(node if state is None else state.key, []).append(node)
    return groups.values()


def _pattern(node: Node) -> tuple[int, ...]:
    assert node.guard is not None
    return node.guard.state.pattern() if node.guard.state is not None else ()


def covers(general: tuple[int, ...], special: tuple[int, ...]) -> bool:
    """Return True where all slots that hold one value in the general state do in the special one."""
    return all(special[k] == special[first] for k, first in enumerate(general))


def _nodes(node: Node) -> Iterator[Node]:
    """Return the nodes with guards, parents first."""
    todo = [node]
    while todo:
        node = todo.pop()
        if node.guard is not None:
            yield node
            todo += node.children.values()


def _components(graph: dict[Place, list[Place]]) -> list[list[Place]]:
    """Return the strongly connected components, each after those that lead to it. (Tarjan, 1972.)"""
    index: dict[Place, int] = {}
    low: dict[Place, int] = {}
    stack: list[Place] = []
    result: list[list[Place]] = []

    def visit(v: Place) -> None:
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in graph[v]:
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            at = stack.index(v)
            result.append(stack[at:])
            del stack[at:]

    for v in graph:
        if v not in index:
            visit(v)
    return result[::-1]
