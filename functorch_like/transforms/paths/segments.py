"""Running a path segment by segment, with Python between: nothing is guessed, and each effect happens once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like.backends import xla
from functorch_like.calling.traced_function import operands_of
from functorch_like.core import EVALUATE, ArrayImpl, set_current_trace
from functorch_like.ir.jaxpr import Jaxpr, Var
from functorch_like.primitives.higher_order.call import CallSpec, apply
from functorch_like.transforms.paths.path_trace import PathTrace
from functorch_like.transforms.paths.play import Env, read
from functorch_like.transforms.paths.programs import weak_results
from functorch_like.transforms.paths.tree import Node
from functorch_like.transforms.paths.words import words_of

if TYPE_CHECKING:
    from functorch_like.transforms.paths.calls import Branches, Paths


class Segment:
    """The equations of a node as a program: its operands, and the results that are used later."""

    def __init__(self, node: Node, name: str) -> None:
        made = dict.fromkeys(v for e in node.equations for v in e.outputs)
        self.taken = [
            a for a in dict.fromkeys(a for e in node.equations for a in e.inputs) if type(a) is Var and a not in made
        ]
        needed = [node.guard.var, *node.guard.alive] if node.guard is not None else node.outputs or []
        self.outputs = [v for v in dict.fromkeys(a for a in needed if type(a) is Var) if v in made]
        self.jaxpr = Jaxpr(self.taken, node.equations, list(self.outputs), name)

    def run(self, env: Env) -> None:
        if self.jaxpr.equations:
            with set_current_trace(EVALUATE):
                results = apply(self.jaxpr, [], [env[v] for v in self.taken], CallSpec(self.jaxpr.name))
            env.update(zip(self.outputs, results, strict=True))


def walk(paths: Paths, branches: Branches, leaves: Sequence[Any]) -> Any:
    """Return the results of a call; where its path is new, Python traces it from there on."""
    tree = branches.tree
    assert tree.root is not None
    env: Env = dict(zip(tree.inputs, operands_of(leaves, tree.call.avals), strict=True))
    node = tree.root
    while True:
        env.update((v, c) for v, c in zip(tree.const_vars, tree.consts, strict=True) if v not in env)
        segment = node.memo.get("segment")
        if segment is None:
            segment = node.memo["segment"] = Segment(node, tree.name)
        segment.run(env)
        if node.guard is None:
            return _results(node, [read(a, env) for a in node.outputs or ()])
        guarded = env[node.guard.var]  # an argument may be on the host
        words = words_of(xla.to_numpy(guarded) if type(guarded) is ArrayImpl else guarded)
        if words not in node.children:
            return _continue(paths, branches, leaves, node, words, env)
        node.latest = node = node.children[words]


def _continue(paths: Paths, branches: Branches, leaves: Sequence[Any], node: Node, words: Any, env: Env) -> Any:
    """Trace a new path from a guard on; the guard's value, and those computed before it, are known."""
    equations = [e for n in node.path() for e in n.equations]

    def adopt(trace: PathTrace) -> None:
        for e, twin in zip(trace.equations, equations, strict=False):
            trace.values.update((v, env[t]) for v, t in zip(e.outputs, twin.outputs, strict=False) if t in env)

    leaf, trace, jaxpr = branches.tree.trace(leaves, [*node.decisions(), words], exact=True, resume=adopt)
    out = finish(trace, jaxpr, leaf)
    paths.check_limit(branches.tree)
    return out


def finish(trace: PathTrace, jaxpr: Any, leaf: Node) -> Any:
    """Run the last segment of a path that has run up to its last guard, and return the results."""
    trace.run(jaxpr.outputs)
    return _results(leaf, [trace.value(a) for a in jaxpr.outputs])


def _results(leaf: Node, values: Sequence[Any]) -> Any:
    """Return the function's results. Arguments and constants that it returns as they are may be on the host."""
    weak = weak_results([leaf])
    arrays = [
        x if type(x) is ArrayImpl else xla.device_put(np.asarray(x, a.aval.dtype), weak_type=w)
        for x, a, w in zip(values, leaf.outputs or (), weak, strict=True)
    ]
    return leaf.out_tree.unflatten(arrays)
