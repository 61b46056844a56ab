"""Tracing of paths that no call has taken yet: conditions are answered the other way, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from functorch_like.calling.call_signature import FlatCall
from functorch_like.errors import FtError
from functorch_like.transforms.paths.following import TooManyGuards
from functorch_like.transforms.paths.graph import Graph
from functorch_like.transforms.paths.tree import Node
from functorch_like.transforms.paths.words import Words

if TYPE_CHECKING:
    from functorch_like.transforms.paths.calls import Branches, Paths

_SIDES: tuple[Words, ...] = ((0,), (1,))


def learn(paths: Paths, call: FlatCall) -> None:
    """Trace the path of a call, and then those beyond conditions that have only been true, or only false.

    A path on which the function raises is left out: it has no program.
    """
    key = paths.jitted.key(call)
    if key in paths.jitted.traces:
        return
    branches = paths.branches.get(key)
    if branches is None:
        branches, _ = paths.begin(call, key)
        if branches is None:
            return
    with branches.lock:
        paths.discover(branches, call, [])
        failed: set[Any] = set()
        while (side := _unknown_side(branches, failed)) is not None:
            node, words = side
            failed.add((node, words))
            try:
                paths.discover(branches, call, [*node.decisions(), words])
            except TooManyGuards:  # a loop that does not end with these values
                continue
            except FtError:
                raise
            except Exception:
                continue


def _unknown_side(branches: Branches, failed: set[Any]) -> tuple[Node, Words] | None:
    """Return a node and the value of its condition that no path has."""
    for place in Graph(branches.tree, True).places():
        guard = place.members[0].guard
        if guard is None or guard.var.aval.dtype != bool or guard.var.aval.size != 1:
            continue
        for words in _SIDES:
            if words not in place.edges and not any((m, words) in failed for m in place.members):
                return place.members[0], words
    return None
