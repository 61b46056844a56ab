"""Programs of paths: of one path, checked by the values of its guards, and of the graph of all paths."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like.avals import ShapedArray
from functorch_like.core import EVALUATE, ArrayImpl
from functorch_like.interpreters.evaluate import Program, device_for
from functorch_like.ir.jaxpr import Jaxpr
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.higher_order.call import CallSpec
from functorch_like.transforms.paths.graph import Graph
from functorch_like.transforms.paths.graph_program import DONE, GraphProgram
from functorch_like.transforms.paths.play import Env, play, read
from functorch_like.transforms.paths.tree import Node, Tree
from functorch_like.transforms.paths.words import INT64, Words, staged_words

_SERIAL = itertools.count(1)
#: Guards on one path, up to which a graph without joints is one program: each is a `cond` inside of the one before.
_DEEPEST = 40


class PathProgram:
    """A program: the results, and then, unless every path is in it, the words of what its guards were.

    The first word is the program's number, so that the words of all programs of a function make one set.

    Attributes:
        kind: "straight", of one path, or "merged".
        guarded: whether its results are only valid for known words.
        known: the words, as bytes, with which they are.
        leaf: the end of the path of a straight one.
        loops: whether there are loops over places.
    """

    def __init__(self, tree: Tree, kind: str, make: Callable[..., list[Any]], out_tree: Any, guarded: bool) -> None:
        self.tree, self.kind, self.out_tree, self.guarded = tree, kind, out_tree, guarded
        self.number = next(_SERIAL)
        self.leaf: Node | None = None
        self.loops = False
        self.known: set[bytes] = set()
        avals = [v.aval for v in tree.all_inputs()]
        self.consts = list(tree.consts)
        fun = lambda *xs: make(self.number, *xs)
        self.jaxpr: Jaxpr = stage(fun, avals, name=tree.name, origin="traced by jit", parent=EVALUATE, chain="")[0]
        self.programs: dict[Any, Program] = {}

    def note(self, words: Sequence[int]) -> None:
        """Record words with which the results are valid."""
        self.known.add(np.array([self.number, *words], INT64).tobytes())

    def compiled(self, leaves: Sequence[Any], spec: CallSpec, donated: Sequence[bool]) -> Program:
        """Return the executable for arguments like these."""
        device = device_for(leaves)
        kinds = tuple(ArrayImpl if type(a) is ArrayImpl else type(a) for a in leaves)
        key = (device, kinds, any(type(a) is ArrayImpl and a._committed for a in leaves))
        found = self.programs.get(key)
        if found is None:
            found = self.programs[key] = Program(
                self.jaxpr,
                self.consts,
                leaves,
                name=self.tree.name,
                donated=None if self.guarded else donated or None,  # another program may need the arguments
                options=dict(spec.options) or None,
                mode=spec.mode,
                device=device,
            )
        return found

    def decided(self, got: Sequence[int], already: int) -> list[Words]:
        """Return the values of guards that the words of a straight program decide.

        The first ones, `already` many, were decided before; after one that differs from the path, nothing counts.
        """
        assert self.leaf is not None
        values, at = self.leaf.decisions(), 1
        for k, value in enumerate(values):
            word = tuple(got[at : at + len(value)])
            if k >= already and word != value:
                return [*values[:k], word]
            at += len(value)
        return values


def straight(leaf: Node, tree: Tree) -> PathProgram:
    """Return the program of the path to a leaf."""
    path = leaf.path()

    def make(number: int, *xs: Any) -> list[Any]:
        env: Env = dict(zip(tree.all_inputs(), xs, strict=True))
        words: list[Any] = []
        for node in path:
            play(node.equations, env)
            if node.guard is not None:
                words.append(staged_words(read(node.guard.var, env)))
        outputs = [read(a, env) for a in leaf.outputs or ()]
        return [*outputs, structural.concatenate(np.array([number], INT64), *words, dimension=0)]

    made = PathProgram(tree, "straight", make, leaf.out_tree, True)
    made.leaf = leaf
    made.note([w for words in leaf.decisions() for w in words])
    return made


def merged(tree: Tree, shared: bool = True) -> PathProgram | None:
    """Return the program of all paths; None where their results differ in structure or aval, or nest too deep.

    Args:
        tree: the paths.
        shared: whether paths that meet again go on together; otherwise there are no loops.
    """
    kinds = {(n.out_tree, tuple(a.aval.strong() for a in n.outputs or ())) for n in tree.leaves}
    if len(kinds) != 1:
        return None
    if shared:
        try:
            return _merged(tree, Graph(tree, True))
        except KeyError:  # a value that no name holds, and that is used later
            pass
    if max(len(n.path()) for n in tree.leaves) > _DEEPEST:
        return None
    return _merged(tree, Graph(tree, False))


def _merged(tree: Tree, graph: Graph) -> PathProgram:
    results: list[ShapedArray] = [a.aval for a in tree.leaves[0].outputs or ()]

    def make(number: int, *xs: Any) -> list[Any]:
        position, outputs = GraphProgram(graph, results).stage(xs)
        outputs = [
            structural.convert_element_type(o, new_dtype=a.dtype, weak_type=True) if a.weak_type else o
            for o, a in zip(outputs, results, strict=True)
        ]
        if graph.total:
            return outputs
        missed = elementwise.ne(position, np.array(DONE, np.int32))
        missed = structural.convert_element_type(missed, new_dtype=INT64, weak_type=False)
        words = structural.concatenate(np.array([number], INT64), structural.reshape(missed, shape=(1,)), dimension=0)
        return [*outputs, words]

    made = PathProgram(tree, "merged", make, tree.leaves[0].out_tree, not graph.total)
    made.loops = graph.cyclic
    made.note([0])
    return made
