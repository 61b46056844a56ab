"""The cheapest cut between two nodes of a directed graph: maximum flow by shortest augmenting paths (Dinic, 1970)."""

from __future__ import annotations

from collections import deque

#: The capacity of an edge that no cut may contain.
INFINITE = 1 << 62


class Network:
    """A directed graph with capacities, which grows edge by edge. Nodes are numbers from 0."""

    def __init__(self) -> None:
        self.heads: list[int] = []  # of each edge, whose reverse is the edge next to it
        self.room: list[int] = []
        self.out: list[list[int]] = []

    def node(self) -> int:
        """A new node."""
        self.out.append([])
        return len(self.out) - 1

    def edge(self, tail: int, head: int, capacity: int) -> None:
        """A new edge."""
        for a, b, room in ((tail, head, capacity), (head, tail, 0)):
            self.out[a].append(len(self.heads))
            self.heads.append(b)
            self.room.append(room)

    def cut(self, source: int, sink: int) -> set[int]:
        """The nodes on the source's side of the cheapest cut: those that can be reached when nothing more flows.

        Of several cheapest cuts it is the one nearest to the source.
        """
        while True:
            depth = self._depths(source)
            if sink not in depth:
                return set(depth)
            while self._augment(source, sink, depth):
                pass

    def _depths(self, source: int) -> dict[int, int]:
        depth, queue = {source: 0}, deque([source])
        while queue:
            tail = queue.popleft()
            for edge in self.out[tail]:
                head = self.heads[edge]
                if self.room[edge] and head not in depth:
                    depth[head] = depth[tail] + 1
                    queue.append(head)
        return depth

    def _augment(self, source: int, sink: int, depth: dict[int, int]) -> bool:
        """Send as much flow as fits along one shortest path; nodes from which none leads on lose their depth."""
        path: list[int] = []
        at = source
        while at != sink:
            step = next(
                (e for e in self.out[at] if self.room[e] and depth.get(self.heads[e], -1) == depth[at] + 1), None
            )
            if step is not None:
                path.append(step)
                at = self.heads[step]
            elif path:
                depth[at] = -1
                at = self.heads[path.pop() ^ 1]
            else:
                return False
        amount = min(self.room[e] for e in path)
        for e in path:
            self.room[e] -= amount
            self.room[e ^ 1] += amount
        return True
