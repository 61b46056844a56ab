"""A policy of checkpoints that fits a budget of memory: the values to keep are a minimum cut of both halves' graph.

Where the budget allows it, nothing expensive is computed again. The policy keeps the fewest bytes from which cheap
operations can recompute everything that the linear half reads. (The min-cut partitioner of PyTorch's AOTAutograd; He
and Yu, "Transcending runtime-memory tradeoffs in checkpointing by being fusion aware", 2023.) For smaller budgets, the
front of the program is computed again in segments, and minimum cuts between them are kept. (Chen et al., "Training
deep nets with sublinear memory cost", 2016.)
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
from collections.abc import Iterable, Sequence

from functorch_like.ir.jaxpr import Equation, Var
from functorch_like.primitives.higher_order.checkpoint.mincut import INFINITE, Network
from functorch_like.primitives.higher_order.checkpoint.rematerialization import Graph

#: Kinds of primitives that cost about as much as reading their operands.
_CHEAP = ("elementwise", "movement", "reduction")
#: The cost of recomputing a value is its bytes divided by this, so that long chains of cheap primitives are not
#: recomputed.
_AGAIN = 16
#: Segments end where fewer bytes are alive than at this many places to either side.
_NEARBY = 8


def _bytes(v: Var) -> int:
    return v.aval.size * v.aval.dtype.itemsize


def _is_cheap(e: Equation) -> bool:
    return e.prim.kind in _CHEAP and e.prim.effects is None


@dataclasses.dataclass(frozen=True)
class Within:
    """The policy `checkpoint_policies.within(bytes)`.

    Args:
        bytes: how much may be alive at a time, of values kept and of those that one segment computes again.
    """

    bytes: int

    def __call__(self, prim: object, *avals: object, **params: object) -> bool:
        """Return False: the policy chooses from the whole graph, and keeps nothing if called for single equations."""
        return False

    def choose(self, graph: Graph) -> list[tuple[int, set[Var]]]:
        """Segments of the linear half, and the values kept."""
        if not graph.linear:
            return []
        return _Choice(graph).within(self.bytes)


class _Choice:
    """Plans that are possible for one graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.equations = graph.known.equations
        self.made_by = graph.made_by
        everything = graph.residuals(graph.linear)
        again, _ = graph.needed(everything, set())
        self.needed = {self.made_by[v] for e in again for v in e.outputs}
        # Where a linear equation stands among the known ones: after all that it reads.
        latest = (max((self.made_by.get(v, -1) for v in graph.residuals([e])), default=-1) for e in graph.linear)
        self.place = list(itertools.accumulate(latest, max))
        self.reads = self._reads()
        self.default = self._cut(everything, len(self.equations))
        self.ends = self._ends()

    def _reads(self) -> dict[Var, int]:
        """The last place at which each variable is read: by a known equation that is needed, or by a linear one."""
        last: dict[Var, int] = {}
        for k in self.needed:
            for a in self.equations[k].inputs:
                if type(a) is Var:
                    last[a] = max(last.get(a, -1), k)
        for e, place in zip(self.graph.linear, self.place, strict=True):
            for v in self.graph.residuals([e]):
                last[v] = max(last.get(v, -1), place)
        return last

    def _alive(self) -> list[int]:
        """Bytes that are alive after each known equation, inputs aside."""
        change = [0] * (len(self.equations) + 2)
        for v, last in self.reads.items():
            if v in self.made_by:
                change[self.made_by[v]] += _bytes(v)
                change[last] -= _bytes(v)
        return list(itertools.accumulate(change))

    def _ends(self) -> list[int]:
        """Places where segments may end: between expensive equations, where the least is alive."""
        alive = self._alive()
        costly = [k for k in sorted(self.needed) if not _is_cheap(self.equations[k])]
        places = [min(range(a, b), key=lambda k: (alive[k], k)) for a, b in itertools.pairwise(costly)]
        low = [
            p
            for i, p in enumerate(places)
            if alive[p] <= min(alive[q] for q in places[max(0, i - _NEARBY) : i + _NEARBY + 1])
        ]
        return [*low, len(self.equations)]

    def _cut(self, values: Iterable[Var], end: int) -> set[Var]:
        """The cheapest set to keep, so that variables can be computed again with nothing costly from before `end`."""
        net = Network()
        source, sink = net.node(), net.node()
        nodes: dict[Var, tuple[int, int]] = {}
        pending: list[Var] = []

        def ends(v: Var) -> tuple[int, int]:
            if v not in nodes:
                nodes[v] = net.node(), net.node()
                net.edge(*nodes[v], _bytes(v))
                pending.append(v)
            return nodes[v]

        inside = lambda v: v in self.made_by and self.made_by[v] < end
        for v in values:
            if inside(v):
                net.edge(ends(v)[1], sink, INFINITE)
        while pending:
            v = pending.pop()
            e = self.equations[self.made_by[v]]
            if not _is_cheap(e):
                net.edge(source, nodes[v][0], INFINITE)
                continue
            net.edge(source, nodes[v][0], _bytes(v) // _AGAIN)
            for a in e.inputs:
                if type(a) is Var and inside(a):
                    net.edge(ends(a)[1], nodes[v][0], INFINITE)
        before = net.cut(source, sink)
        return {v for v, (start, stop) in nodes.items() if start in before and stop not in before}

    def _across(self, end: int) -> set[Var]:
        """Values kept at the end of a segment for those after it."""
        crossing = [v for v, last in self.reads.items() if v in self.made_by and self.made_by[v] < end <= last]
        return self._cut(crossing, end)

    def within(self, most: int) -> list[tuple[int, set[Var]]]:
        """The plan that computes least again among those that fit; the smallest where none does.

        Units before `front` are computed again in segments of `group` units; those after it keep the default.
        """
        units = len(self.ends)
        across = [self._across(end + 1) for end in self.ends[:-1]]
        cost = [*(sum(map(_bytes, kept)) for kept in across), 0]
        default = [0] * units
        for v in self.default:
            default[self._unit(v)] += _bytes(v)

        def peak(front: int, group: int) -> int:
            kept = sum(cost[k - 1] for k in self._starts(front, group))
            segments = (sum(default[k : min(k + group, front)]) for k in range(0, front, group))
            return kept + max(sum(default[front:]), *segments, 0)

        smallest: tuple[int, int, int] | None = None
        for front in range(units + 1):
            candidate = min((peak(front, group), front, group) for group in range(1, max(front, 1) + 1))
            if smallest is None or candidate < smallest:
                smallest = candidate
            if candidate[0] <= most:
                smallest = candidate
                break
        assert smallest is not None
        return self._segments(*smallest[1:], across)

    def _unit(self, v: Var) -> int:
        return bisect.bisect_left(self.ends, self.made_by[v])

    def _starts(self, front: int, group: int) -> list[int]:
        """The units, but for the first, at which a segment starts: it reads values kept of the units before it."""
        return [*range(group, front, group), *([front] if 0 < front < len(self.ends) else [])]

    def _segments(self, front: int, group: int, across: Sequence[set[Var]]) -> list[tuple[int, set[Var]]]:
        starts = self._starts(front, group)
        kept = set[Var]().union(*(across[k - 1] for k in starts))
        kept |= {v for v in self.default if self._unit(v) >= front}
        stops = [*starts, *range(front + 1, len(self.ends)), len(self.ends)]
        # A linear equation belongs to the segment of the place where it stands.
        at = [bisect.bisect_right(self.place, self.ends[k - 1]) for k in stops]
        at[-1] = len(self.graph.linear)
        return [(end, kept) for end in at]
