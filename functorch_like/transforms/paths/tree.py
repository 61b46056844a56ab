"""The tree of all paths of one signature: stretches of equations, with a guard or the results at the end of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like.calling.call_signature import FlatCall
from functorch_like.compiler.fingerprint import fingerprint
from functorch_like.core import ArrayImpl
from functorch_like.errors import ArgumentError
from functorch_like.ir.jaxpr import Equation, Jaxpr, Literal, Var, effects, inner_jaxprs
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives.higher_order.control_flow.while_loop import while_
from functorch_like.transforms.paths.following import FollowingTrace, Guard
from functorch_like.transforms.paths.path_trace import PathTrace
from functorch_like.transforms.paths.words import Words

_PLAIN = (int, float, complex, str, bytes, np.generic, np.dtype, type(None))


class Node:
    """A stretch of a path: equations, then results, or a guard with a child for each of its values so far.

    Attributes:
        parent, words: the node before it, and the value of that node's guard that leads here.
        equations: of the stretch.
        guard: at its end; None at the end of a path. Its field `end` is not used.
        children: by the words of the guard.
        latest: the child taken last.
        outputs, out_tree: the results, at the end of a path.
        memo: programs derived from the path that ends here.
    """

    def __init__(self, parent: Node | None = None, words: Words = ()) -> None:
        self.parent, self.words = parent, words
        self.equations: list[Equation] = []
        self.guard: Guard | None = None
        self.children: dict[Words, Node] = {}
        self.latest: Node | None = None
        self.outputs: list[Any] | None = None
        self.out_tree: Any = None
        self.memo: dict[str, Any] = {}

    def path(self) -> list[Node]:
        """Return the nodes from the root to this one."""
        nodes: list[Node] = []
        node: Node | None = self
        while node is not None:
            nodes.append(node)
            node = node.parent
        return nodes[::-1]

    def decisions(self) -> list[Words]:
        """Return the values of the guards on the way here."""
        return [n.words for n in self.path()[1:]]

    def mark_latest(self) -> None:
        """Record that the path to this node was taken last."""
        node = self
        while node.parent is not None:
            node.parent.latest = node
            node = node.parent

    def leaf(self) -> Node | None:
        """Return the end of the path taken last from here; None where none was finished."""
        node: Node | None = self
        while node is not None and node.outputs is None:
            node = node.latest
        return node


class Tree:
    """All paths of a function for one signature.

    Attributes:
        inputs: the variables of the arguments.
        const_vars, consts: the values that the function closes over, and their variables.
        leaves: the ends of the paths, in the order in which they were found.
        version: changes whenever the tree grows.
        wrong: number of runs of a program for another path than the one taken.
        acts: whether a path has effects.
    """

    def __init__(self, call: FlatCall, fun: Callable[..., Any], name: str) -> None:
        self.call, self.fun, self.name = call, fun, name
        self.inputs: list[Var] = []
        self.const_vars: list[Var] = []
        self.consts: list[Any] = []
        self.root: Node | None = None
        self.leaves: list[Node] = []
        self.version = self.wrong = self.traces = 0
        self.acts = False

    def all_inputs(self) -> list[Var]:
        return [*self.const_vars, *self.inputs]

    def trace(
        self,
        leaves: Sequence[Any],
        forced: Sequence[Words] = (),
        *,
        element: int = 0,
        exact: bool = False,
        resume: Callable[[Any], None] | None = None,
    ) -> tuple[Node, PathTrace, Jaxpr]:
        """Trace the path of these arguments, whose first guards are decided, and insert it."""
        trace = PathTrace(f"jit({self.name})", leaves, forced, element, exact)
        if resume is not None:
            trace.resume(resume)
        flat, trees = self.call.flatten_function(self.fun)
        jaxpr, _ = stage(trace.framed(flat), self.call.avals, name=self.name, trace=trace)
        return self.insert(trace, jaxpr, trees[0]), trace, jaxpr

    def insert(self, trace: FollowingTrace, jaxpr: Jaxpr, out_tree: Any, *, unfinished: bool = False) -> Node:
        """Insert a traced path.

        Args:
            trace: of the path.
            jaxpr: the recorded equations.
            out_tree: the structure of its results.
            unfinished: whether it ends at its last guard, because others have gone on from there.

        Returns:
            The node at which it ends.

        Raises:
            ArgumentError: where the stretch that it shares with other paths is not the same: the function is impure.
        """
        self.traces += 1
        return _Insertion(self, trace, jaxpr).run(out_tree, unfinished)


class _Insertion:
    """Insertion of a traced path, which renames the path's variables to the tree's."""

    def __init__(self, tree: Tree, trace: FollowingTrace, jaxpr: Jaxpr) -> None:
        self.tree, self.trace, self.jaxpr = tree, trace, jaxpr
        own = jaxpr.inputs[len(trace.consts) :]
        if tree.root is None:
            tree.root, tree.inputs = Node(), own
        self.names: dict[Any, Any] = dict(zip(own, tree.inputs, strict=True))
        self.consts = dict(zip(trace.const_vars, trace.consts, strict=True))

    def run(self, out_tree: Any, unfinished: bool) -> Node:
        tree, node, start = self.tree, self.tree.root, 0
        assert node is not None
        for k, guard in enumerate((*self.trace.guards, None)):
            end = len(self.jaxpr.equations) if guard is None else guard.end
            equations = self.jaxpr.equations[start:end]
            if node.guard is None and node.outputs is None:
                self.fill(node, equations, guard)
            else:
                self.compare(node, equations, guard)
            if guard is None:
                break
            if unfinished and k == len(self.trace.guards) - 1:
                return node
            child = node.children.get(guard.words)
            if child is None:
                child = node.children[guard.words] = Node(node, guard.words)
            node.latest = child
            node, start = child, end
        if node.outputs is None:
            node.outputs, node.out_tree = [self.name(a) for a in self.jaxpr.outputs], out_tree
            tree.leaves.append(node)
            tree.version += 1
        return node

    def name(self, atom: Any) -> Any:
        """Return the tree's atom for one of the path's."""
        if type(atom) is not Var:
            return atom
        if atom not in self.names:
            self.names[atom] = self.constant(atom)
        return self.names[atom]

    def constant(self, var: Var) -> Var:
        """Return the tree's variable for a value that the function closes over."""
        value = self.consts[var]
        for known, twin in zip(self.tree.consts, self.tree.const_vars, strict=True):
            if known is value:
                return twin
        self.tree.consts.append(value)
        self.tree.const_vars.append(var)
        return var

    def fill(self, node: Node, equations: Sequence[Equation], guard: Guard | None) -> None:
        for e in equations:
            self.names.update((v, v) for v in e.outputs)
            node.equations.append(Equation(e.prim, [self.name(a) for a in e.inputs], e.params, e.outputs, e.source))
        self.tree.acts = self.tree.acts or any(effects(e) for e in equations)
        if guard is not None:
            state = guard.state
            node.guard = guard._replace(
                var=self.name(guard.var),
                alive=[self.names[v] for v in guard.alive if v in self.names],
                state=None if state is None else state._replace(slots=[self.name(v) for v in state.slots]),
            )

    def compare(self, node: Node, equations: Sequence[Equation], guard: Guard | None) -> None:
        twins = node.equations
        same = len(equations) == len(twins) and (guard is None) == (node.guard is None)
        for e, twin in zip(equations, twins, strict=False):
            same = same and e.prim is twin.prim and len(e.inputs) == len(twin.inputs)
            same = same and all(map(self.alike, e.inputs, twin.inputs)) and _same_params(e.params, twin.params)
            if not same:
                raise self.impure(e)
            self.names.update(zip(e.outputs, twin.outputs, strict=True))
        if not same or (guard is not None and node.guard is not None and self.name(guard.var) is not node.guard.var):
            raise self.impure(equations[-1] if equations else None)

    def alike(self, atom: Any, twin: Any) -> bool:
        if type(atom) is Literal or type(twin) is Literal:
            both = type(atom) is Literal and type(twin) is Literal
            return both and atom.aval is twin.aval and atom.value.tobytes() == twin.value.tobytes()
        if atom not in self.names and twin in self.tree.const_vars:  # an equal array, made anew by each trace
            known = self.tree.consts[self.tree.const_vars.index(twin)]
            if known is self.consts[atom] or _same_array(known, self.consts[atom]):
                self.names[atom] = twin
        return self.name(atom) is twin

    def impure(self, equation: Equation | None) -> ArgumentError:
        from functorch_like import source_info

        line = source_info.user_line(equation.source) if equation is not None else None
        return ArgumentError(
            f"{self.tree.name} did not do the same again for the same values of its guards"
            + (f"; the difference is at {line}" if line else ""),
            fix="make the function pure: its results may depend on its arguments alone",
        )


def _same_params(a: dict[str, Any], b: dict[str, Any]) -> bool:
    """Return False where parameters differ. Functions and other objects, which traces make anew, count as equal."""

    def same(x: Any, y: Any) -> bool:
        if isinstance(x, tuple) and isinstance(y, tuple):
            return len(x) == len(y) and all(map(same, x, y))
        if isinstance(x, Jaxpr) and isinstance(y, Jaxpr):
            return x is y or (one := fingerprint(x)) is None or (other := fingerprint(y)) is None or one == other
        plain = isinstance(x, _PLAIN) and isinstance(y, _PLAIN)
        return x is y or not plain or bool(x == y or (x != x and y != y))

    return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)


def _same_array(a: Any, b: Any) -> bool:
    """Return True for arrays with the same bits."""
    if type(a) is not ArrayImpl or type(b) is not ArrayImpl or a.aval is not b.aval:
        return False
    return np.asarray(a).tobytes() == np.asarray(b).tobytes()


def endless(equation: Equation) -> bool:
    """Return True where an equation may not terminate, or has effects: it must not run on a guess."""
    if equation.prim is while_ or effects(equation):
        return True
    return any(endless(inner) for jaxpr in inner_jaxprs(equation.params) for inner in jaxpr.equations)
