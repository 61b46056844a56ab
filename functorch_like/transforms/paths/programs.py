"""Programs of paths: of one path, checked by the values of its guards, and of the graph of all paths."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.compiler.fingerprint import fingerprint
from functorch_like.compiler.placement import device_for
from functorch_like.compiler.program import Program
from functorch_like.core import EVALUATE, ArrayImpl, aval_of
from functorch_like.ir.jaxpr import Jaxpr
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.higher_order.call import CallSpec
from functorch_like.transforms.paths.control import INDEX, Values
from functorch_like.transforms.paths.graph import DEEPEST, Graph
from functorch_like.transforms.paths.graph_program import DONE, GraphProgram
from functorch_like.transforms.paths.play import Env, play, read
from functorch_like.transforms.paths.rolled import Loop
from functorch_like.transforms.paths.tree import Node, Tree
from functorch_like.transforms.paths.words import INT64, Words, constant_words, staged_words

_SERIAL = itertools.count(1)
_CAP = ShapedArray((), INDEX)


class PathProgram:
    """A program: the results, and then, unless every path is in it, the words of its guards.

    The first word is the program's number, so that the words of all programs of a function make one set.

    Attributes:
        kind: "straight", of one path; "rolled", of one path but for the number of steps of its loop; or "merged".
        guarded: whether its results are only valid for known words.
        known: the words, as bytes, with which they are.
        leaf: the end of the path of a straight one.
        loops: whether there are loops over places.
        inside: whether conditions were followed in a body inside, such as a mapped function.
        fast: the C++ function that runs it after a wrong guess.
        loop, traced: of a rolled one, the loop of the path traced last, and the most steps that were traced.
    """

    def __init__(
        self,
        tree: Tree,
        kind: str,
        make: Callable[..., list[Any]],
        out_tree: Any,
        guarded: bool,
        first: Sequence[Any] = (),
    ) -> None:
        self.tree, self.kind, self.out_tree, self.guarded = tree, kind, out_tree, guarded
        self.number = next(_SERIAL)
        self.leaf: Node | None = None
        self.fast: Any = None
        self.loops = self.inside = False
        self.known: set[bytes] = set()
        self.loop: Loop | None = None
        self.traced, self.changed = 0, False
        avals = [*(ShapedArray(x.shape, x.dtype) for x in first), *(v.aval for v in tree.all_inputs())]
        self.consts = [*first, *tree.consts]
        fun = lambda *xs: make(self.number, *xs)
        self.jaxpr: Jaxpr = stage(fun, avals, name=tree.name, origin="traced by jit", parent=EVALUATE, chain="")[0]
        self.programs: dict[Any, Program] = {}

    def take(self, leaf: Node, loop: Loop) -> None:
        """Record the path of another number of steps, which has been traced."""
        words, self.leaf, self.loop = leaf.decisions(), leaf, loop
        self.traced = max(self.traced, loop.steps)
        tail = words[loop.last + 1 :]
        self.note([w for group in (*words[: loop.first], (loop.steps,), loop.leave, *tail) for w in group])
        if loop.leave == loop.stay and self.consts[0] != loop.steps:  # Python's own bound
            self.consts[0] = np.array(loop.steps, INDEX)
            for program in self.programs.values():
                program.consts[0] = self.consts[0]
            self.changed = True

    def steps_decided(self, got: Sequence[int]) -> tuple[list[Words], bool]:
        """Return the values of guards that a rolled program decides, and whether they reach the end of its loop."""
        assert self.leaf is not None and self.loop is not None
        at, loop = 1, self.loop
        for k, value in enumerate(self.leaf.decisions()[: loop.first]):
            word = tuple(got[at : at + len(value)])
            if word != value:
                return [*self.leaf.decisions()[:k], word], False
            at += len(value)
        before = self.leaf.decisions()[: loop.first]
        return [*before, *[loop.stay] * got[at], (got[at + 1],)], True

    def note(self, words: Sequence[int]) -> None:
        """Record words with which the results are valid."""
        self.known.add(np.array([self.number, *words], INT64).tobytes())

    def compiled(self, leaves: Sequence[Any], spec: CallSpec, donated: Sequence[bool]) -> Program:
        """Return the executable for arguments like these."""
        device = device_for(leaves)
        kinds = tuple(ArrayImpl if type(a) is ArrayImpl else type(a) for a in leaves)
        key = (device, kinds, any(type(a) is ArrayImpl and a._committed for a in leaves))
        result = self.programs.get(key)
        if result is None:
            result = self.programs[key] = Program(
                self.jaxpr,
                self.consts,
                leaves,
                name=self.tree.name,
                donated=None if self.guarded else donated or None,  # another program may need the arguments
                options=dict(spec.options) or None,
                mode=spec.mode,
                device=device,
            )
        return result

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


def weak_results(leaves: Sequence[Node]) -> list[bool]:
    """Return for each result if its type is weak at the end of all these paths."""
    return [all(a.aval.weak_type for a in ends) for ends in zip(*(n.outputs or () for n in leaves), strict=True)]


def weakened(values: Values, weak: Sequence[bool]) -> Values:
    """Return values, some of them with a weak type: guards and loops are computed with strong ones."""
    return [
        structural.convert_element_type(x, new_dtype=aval_of(x).dtype, weak_type=True) if w else x
        for x, w in zip(values, weak, strict=True)
    ]


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
        outputs = weakened([read(a, env) for a in leaf.outputs or ()], weak_results([leaf]))
        return [*outputs, structural.concatenate(constant_words([number]), *words, dimension=0)]

    made = PathProgram(tree, "straight", make, leaf.out_tree, True)
    made.leaf = leaf
    made.note([w for words in leaf.decisions() for w in words])
    return made


def rolled(leaf: Node, tree: Tree, loop: Loop, cache: dict[bytes, PathProgram]) -> PathProgram | None:
    """Return the program of a path whose loop is rolled; one for all numbers of steps. None for too many steps.

    Args:
        leaf: the end of the path.
        tree: the paths.
        loop: of the path.
        cache: programs of other numbers of steps, by fingerprint.
    """
    if loop.steps > loop.reach():
        return None
    path = leaf.path()

    def make(number: int, cap: Any, *xs: Any) -> list[Any]:
        env: Env = dict(zip(tree.all_inputs(), xs, strict=True))
        words: list[Any] = []
        for k, node in enumerate(path):
            if loop.first < k <= loop.last:
                continue
            play(node.equations, env)
            if k == loop.first:
                steps, flag = loop.play(env, cap)
                words += [staged_words(steps), staged_words(flag)]
            elif node.guard is not None:
                words.append(staged_words(read(node.guard.var, env)))
        outputs = weakened([read(a, env) for a in leaf.outputs or ()], weak_results([leaf]))
        return [*outputs, structural.concatenate(constant_words([number]), *words, dimension=0)]

    avals = [_CAP, *(v.aval for v in tree.all_inputs())]
    same = stage(lambda *xs: make(0, *xs), avals, name=tree.name, parent=EVALUATE, chain="")[0]
    key = fingerprint(same, str(leaf.out_tree), loop.first, loop.stay)
    result = cache.get(key) if key is not None else None
    if result is None:
        result = PathProgram(tree, "rolled", make, leaf.out_tree, True, [np.array(loop.reach(), INDEX)])
        result.loops = True
        if key is not None:
            cache[key] = result
    result.take(leaf, loop)
    return result


def common_results(leaves: Sequence[Node], convert: bool = True) -> list[ShapedArray] | None:
    """Return the avals of the results of all paths; None where their structures, shapes or dtypes differ.

    Args:
        leaves: the ends of the paths.
        convert: whether numbers of Python take the dtype that other paths return, as in `lax.cond`.
    """
    if len({n.out_tree for n in leaves}) != 1:
        return None
    results: list[ShapedArray] = []
    for ends in zip(*(n.outputs or () for n in leaves), strict=True):
        avals = list(dict.fromkeys(a.aval for a in ends))
        if len({a.strong() for a in avals}) == 1:
            results.append(avals[0])
            continue
        kinds = {a.dtype for a in avals if not a.weak_type}
        if not convert or len(kinds) > 1 or any(a.shape != avals[0].shape for a in avals):
            return None
        dtype, _ = dtypes.promote(*avals)
        if kinds - {dtype}:  # a Python float beside an array of integers
            return None
        results.append(ShapedArray(avals[0].shape, dtype))
    return results


def merged(tree: Tree, shared: bool = True, convert: bool = False) -> PathProgram | None:
    """Return the program of all paths; None where their results differ in structure or aval, or nest too deep.

    Args:
        tree: the paths.
        shared: whether paths that meet again go on together; otherwise there are no loops.
        convert: whether numbers of Python take the dtype that other paths return.
    """
    results = common_results(tree.leaves, convert)
    if results is None:
        return None
    graph = Graph(tree, shared)
    if graph.depth > DEEPEST:
        return None
    try:
        return _merged(tree, graph, results)
    except KeyError:  # a value that no name holds, and that is used later
        return merged(tree, False, convert) if shared else None


def _merged(tree: Tree, graph: Graph, results: Sequence[ShapedArray]) -> PathProgram:
    weak = weak_results(tree.leaves)

    def make(number: int, *xs: Any) -> list[Any]:
        position, outputs = GraphProgram(graph, results).stage(xs)
        outputs = weakened(outputs, weak)
        if graph.total:
            return outputs
        missed = elementwise.ne(position, np.array(DONE, np.int32))
        missed = structural.convert_element_type(missed, new_dtype=INT64, weak_type=False)
        words = structural.concatenate(constant_words([number]), structural.reshape(missed, shape=(1,)), dimension=0)
        return [*outputs, words]

    made = PathProgram(tree, "merged", make, tree.leaves[0].out_tree, not graph.total)
    made.loops = graph.cyclic
    made.note([0])
    return made
