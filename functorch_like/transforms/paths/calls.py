"""Calls of a function with paths: the choice of a program, and its correction where it was the wrong one.

A program of one path runs on a guess. Its results are returned where the values of its guards are those of the path;
otherwise the first guard that differs is decided by it, and another program runs. So each guard is decided once in a
call, by the first program that reaches it. A rounding that differs between programs cannot mix two paths.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from functorch_like.backends import xla
from functorch_like.backends.xla import events
from functorch_like.backends.xla.arrays import content
from functorch_like.caches import Cache
from functorch_like.calling import api_boundary
from functorch_like.calling.call_signature import CHECKED, FlatCall, Static, unwrap_static
from functorch_like.core import state
from functorch_like.ir.trace_to_jaxpr import follower
from functorch_like.primitives.higher_order.call import CallSpec
from functorch_like.transforms import stale_programs
from functorch_like.transforms.jit_stages import Traced
from functorch_like.transforms.paths import report, segments, transformed, whole
from functorch_like.transforms.paths.path_trace import PathTrace
from functorch_like.transforms.paths.programs import PathProgram, merged, rolled, straight
from functorch_like.transforms.paths.rolled import find_loop
from functorch_like.transforms.paths.routes import MISSED, MOST, Route, hurried
from functorch_like.transforms.paths.tree import Node, Tree, endless
from functorch_like.transforms.paths.words import Words

_MERGE_AFTER = 2  # wrong guesses


class Jitted(Protocol):
    """Members of `JitState` that paths use."""

    fun: Callable[..., Any]
    static: Static
    spec: CallSpec
    shardings: Any
    traces: Cache[Any, Traced]

    def key(self, call: FlatCall) -> Any: ...
    def traced(self, call: FlatCall, path: PathTrace | None) -> Traced: ...
    def donated(self, call: FlatCall) -> tuple[bool, ...]: ...
    def answer(self, call: FlatCall, paired: bool) -> tuple[Any, Any, bool]: ...
    def serve(self, function: Callable[..., Any]) -> None: ...


class Branches(NamedTuple):
    """The tree of one signature, and its programs.

    Attributes:
        tree: of paths.
        programs: by number.
        lock: held while the tree grows.
        memo: the merged program, and the version of the tree that it is of.
    """

    tree: Tree
    programs: dict[int, PathProgram]
    lock: Any
    memo: dict[Any, Any]


class Paths:
    """The paths of a jitted function.

    Args:
        jitted: the function as `jit` made it.
        limit: largest number of paths of a signature.
    """

    MOST_TREES = 256

    def __init__(self, jitted: Jitted, limit: int) -> None:
        self.jitted, self.limit = jitted, limit
        self.branches: Cache[Any, Branches] = Cache()
        self.wholes: Cache[Any, PathProgram] = Cache()  # of all paths, also for signatures without a call so far
        self.served: Cache[Any, Traced] = Cache()  # those of them that calls run
        self.known: set[bytes] = set()  # `PathProgram.known` of all programs
        self.routes: dict[bytes, Route] = {}  # from the words of wrong guesses
        self.serving = False
        static, name = jitted.static, jitted.spec.name
        self.fast = xla.function(name, jitted.fun, self.miss, static_argnums=static.nums, static_argnames=static.names)

    def clear(self) -> None:
        """Forget all paths and programs."""
        self.branches.clear()
        self.wholes.clear()
        self.served.clear()
        self.routes.clear()
        self.fast._clear_cache()

    def forget_unless_current(self, key: Any) -> None:
        """Forget the paths of a signature in a block of `debug.stale_programs`, where each call traces its path."""
        if stale_programs.CHECKED.value:
            for cache in (self.branches, self.wholes, self.served):
                cache.pop(key, None)

    # ------------------------------------------------------------------------------------------------------ dispatch
    def first(self, call: FlatCall) -> tuple[Any, Any, bool] | None:
        """Answer a call of a signature that is new to C++; None where the function has no guards for it."""
        jitted = self.jitted
        if follower(state.trace) is not None:  # its paths are those of the function around it
            args, kwargs = call.rebuild(call.leaves)
            return jitted.fun(*args, **kwargs), None, True
        key = jitted.key(call)
        self.forget_unless_current(key)
        if key in jitted.traces or key in self.served:
            return None
        branches = self.branches.get(key)
        if call.traced():
            return transformed.answer(self, branches, call, key)
        if branches is None:
            if key in self.wholes:
                self.traced(call)
                return None
            branches, finished = self.begin(call, key)
            if branches is None:
                return None
            if finished is not None:
                return finished[0], None, True
        out, _ = self.run(branches, call, [])
        return out, None, True

    def miss(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, bool]:
        """Answer a call for the C++ function of a function with guards: results are paired with words, or None."""
        call = FlatCall(self.jitted.static, *unwrap_static(args, kwargs))
        self.forget_unless_current(self.jitted.key(call))
        branches = None if call.traced() else self.branches.get(self.jitted.key(call))
        if branches is None:
            answer = self.first(call)
            if answer is None:
                return self.jitted.answer(call, paired=True)
            return (answer[0], None), None, True
        out, fastpath = self.run(branches, call, [])
        by_hand = any(type(a) in CHECKED for a in call.leaves)
        return (out, None), None if by_hand else fastpath, fastpath is None

    def begin(self, call: FlatCall, key: Any, element: int = 0) -> tuple[Branches | None, tuple[Any] | None]:
        """Trace the first path of a signature. Without guards the trace goes to jit.

        Returns:
            The tree, if there are guards; and the result in a tuple, if the path has effects, and so has run.
        """
        jitted, name = self.jitted, self.jitted.spec.name
        trace = PathTrace(f"jit({name})", call.leaves, element=element)
        traced = jitted.traced(call, trace)
        if not trace.guards:
            return None, None
        if jitted.shardings is not None:  # programs of one path have no meshes
            self.traced(call)
            return None, None
        tree = Tree(call, jitted.fun, name)
        leaf = tree.insert(trace, traced.jaxpr, traced.out_tree)
        events.emit("path", name, traced.seconds, why=report.decisions(leaf))
        branches = Branches(tree, {}, threading.RLock(), {})
        self.branches.keep(key, branches, self.MOST_TREES)
        if not self.serving:
            self.serving = True
            jitted.serve(self.checked())
        return branches, (segments.finish(trace, traced.jaxpr, leaf),) if trace.ran_effects else None

    def whole(self, branches: Branches | None, call: FlatCall, key: Any) -> PathProgram | None:
        """Return the program of all paths, taken or not; None for a function without guards."""
        return whole.whole(self, branches, call, key)

    def traced(self, call: FlatCall) -> Traced:
        """Return the trace of all paths for a signature."""
        return whole.traced(self, call)

    def checked(self) -> Callable[..., Any]:
        """Return the function that users call once there are guards: it compares their values with the guess."""
        fast, known, routes, mistaken = self.fast, self.known, self.routes, api_boundary.public(self.mistaken)

        def call(*args: Any, **kwargs: Any) -> Any:
            out, words = fast(*args, **kwargs)
            if words is None or content(words) in known:
                return out
            route = routes.get(content(words))
            if route is not None:
                results = route(args, kwargs)
                if results is not MISSED:
                    return results
            return mistaken(out, words, args, kwargs)

        return call

    def mistaken(self, out: Any, words: Any, args: Any, kwargs: Any) -> Any:
        """Return the results of a call for which C++ has run the program of another path."""
        call = FlatCall(self.jitted.static, *unwrap_static(args, kwargs))
        branches = self.branches.get(self.jitted.key(call))
        values = xla.to_numpy(words).tolist()
        if branches is None or values[0] not in branches.programs:  # the caches were cleared meanwhile
            return self.miss(*args, **kwargs)[0][0]
        form = branches.programs[values[0]]
        if form.kind == "rolled":
            decided, complete = form.steps_decided(values)
            if complete and self.verified(branches, call, form, decided, words):
                return out
            decided = self.reliable(form, decided, complete)
        else:
            decided = self.next_decisions(branches, call, values, []) or []
        branches.tree.wrong += 1
        out, _ = self.run(branches, call, decided)
        best = self.choose(branches, [])
        if best is None or best.number == form.number:
            branches.memo["streak"] = 0
        elif best.kind != "straight" or hurried(branches.memo, best):
            self.fast._clear_cache()
        elif form.kind == "straight" and branches.tree.wrong > _MERGE_AFTER and len(self.routes) < MOST:
            self.routes[content(words)] = Route(self, branches, best)
        return out

    # ------------------------------------------------------------------------------------------------------- running
    def run(self, branches: Branches, call: FlatCall, decided: list[Words]) -> tuple[Any, Any]:
        """Return the results of a call, and the program that C++ may run for the next ones.

        Args:
            branches: the tree.
            call: of concrete arguments.
            decided: the values of the first guards, as a program has decided them.
        """
        tree, leaves, misses = branches.tree, call.leaves, 0
        while True:
            with branches.lock:
                self.follow(branches, call, decided)
                form = self.choose(branches, decided)
            if form is None or misses > 1:  # a second time only where roundings differ
                with branches.lock:
                    return segments.walk(self, branches, leaves), None
            program = form.compiled(leaves, self.jitted.spec, self.jitted.donated(call))
            outs = program.run(leaves)
            if not form.guarded:
                return form.out_tree.unflatten(outs), self.fastpath(form, program)
            *outs, words = outs
            self.known |= form.known
            got = xla.to_numpy(words)
            if got.tobytes() in form.known:
                return form.out_tree.unflatten(outs), self.fastpath(form, program)
            if form.kind == "rolled":
                more, complete = form.steps_decided(got.tolist())
                if complete and self.verified(branches, call, form, more, words):
                    return form.out_tree.unflatten(outs), self.fastpath(form, program)
                more = self.reliable(form, more, complete)
                if len(more) <= len(decided):  # earlier guards were decided by another program
                    misses, more = 2, []
                decided = more
                tree.wrong += 1
                continue
            more = self.next_decisions(branches, call, got.tolist(), decided)
            if more is None:
                misses += 1
                decided = []
            elif form.leaf is not None and more == form.leaf.decisions():
                return form.out_tree.unflatten(outs), None  # earlier guards were decided by another program
            else:
                decided = more
            tree.wrong += 1

    def next_decisions(
        self, branches: Branches, call: FlatCall, got: Sequence[int], decided: Sequence[Words]
    ) -> list[Words] | None:
        """Return the values of guards that words decide; None after a merged program, whose path must be traced."""
        form = branches.programs[got[0]]
        events.emit("guess", self.jitted.spec.name)
        if form.kind == "straight":
            return form.decided(got, len(decided))
        with branches.lock:
            self.discover(branches, call, [])
        return None

    def verified(self, branches: Branches, call: FlatCall, form: PathProgram, decided: list[Words], words: Any) -> bool:
        """Return True where the function does, with these values of guards, what a rolled program has done."""
        with branches.lock:
            try:
                leaf = self.follow(branches, call, decided)
            except Exception:  # on a path that is not taken
                return False
            same = self.rolled(branches, leaf) is form
        self.known |= form.known
        if form.changed:
            form.changed = False
            self.fast._clear_cache()
        return same and content(words) in form.known

    @staticmethod
    def reliable(form: PathProgram, decided: list[Words], complete: bool) -> list[Words]:
        """Return the decisions of a rolled program up to the last step that was traced."""
        assert form.loop is not None
        return decided[: form.loop.first + form.traced + 1] if complete else decided

    def rolled(self, branches: Branches, leaf: Node) -> PathProgram | None:
        """Return the program of a path with its loop rolled; None where there is no such loop."""
        if "rolled" not in leaf.memo:
            loop = find_loop(leaf)
            form = (
                rolled(leaf, branches.tree, loop, branches.memo.setdefault("by loop", {})) if loop is not None else None
            )
            leaf.memo["rolled"] = form
            if form is not None:
                branches.programs[form.number] = form
                events.emit("roll", self.jitted.spec.name, why=f"{form.traced} steps at {report.line_of(leaf, form)}")
        return leaf.memo["rolled"]

    def fastpath(self, form: PathProgram, program: Any) -> Any:
        if stale_programs.CHECKED.value:
            return None
        zeros = form.out_tree.unflatten([0] * form.out_tree.num_leaves)
        return program.fastpath(xla.structure((zeros, 0 if form.guarded else None)), handles_failures=True)

    def follow(self, branches: Branches, call: FlatCall, decided: Sequence[Words]) -> Node:
        """Return the end of the path taken last among those with these values of guards; traced where there is none."""
        node = branches.tree.root
        for words in decided:
            if node is None or words not in node.children:
                return self.discover(branches, call, decided)
            node.latest = node = node.children[words]
        leaf = node.leaf() if node is not None else None
        return leaf if leaf is not None else self.discover(branches, call, decided)

    def discover(self, branches: Branches, call: FlatCall, decided: Sequence[Words], element: int = 0) -> Node:
        """Trace the path of a call.

        Raises:
            ArgumentError: where the function has more paths than it may have.
        """
        before = branches.tree.version
        leaf, *_ = branches.tree.trace(call.leaves, decided, element=element)
        if branches.tree.version != before:
            events.emit("path", self.jitted.spec.name, why=report.decisions(leaf))
            self.check_limit(branches.tree)
        return leaf

    def check_limit(self, tree: Tree) -> None:
        programs = {id(leaf.memo.get("rolled") or leaf) for leaf in tree.leaves}  # of a rolled loop, all are one
        if len(programs) > self.limit:
            raise report.too_many(tree, self.limit)

    def choose(self, branches: Branches, decided: Sequence[Words]) -> PathProgram | None:
        """Return the program to run; None where the path must be walked segment by segment."""
        tree = branches.tree
        leaf = tree.root.leaf() if tree.root is not None else None
        if leaf is None or tree.acts:
            return None
        trusted = not any(endless(e) for n in leaf.path()[len(decided) + 1 :] for e in n.equations)
        form = self.merged(branches)
        if form is not None and (not form.guarded or form.loops or not trusted):
            return form
        rolled = self.rolled(branches, leaf) if trusted else None
        if rolled is not None:
            return rolled
        if form is not None and tree.wrong >= _MERGE_AFTER:
            return form
        if not trusted:
            return None
        return self.straight(branches, leaf)

    def merged(self, branches: Branches, shared: bool = True, convert: bool = False) -> PathProgram | None:
        """Return the program of all paths, made anew where the tree has grown."""
        version, form = branches.memo.get(("merged", shared, convert), (0, None))
        if version != branches.tree.version:
            form = merged(branches.tree, shared, convert)
            branches.memo["merged", shared, convert] = branches.tree.version, form
            if form is not None:
                branches.programs[form.number] = form
                events.emit("merge", self.jitted.spec.name, why=report.count(len(branches.tree.leaves), "path"))
        return form

    def straight(self, branches: Branches, leaf: Node) -> PathProgram:
        form = leaf.memo.get("straight")
        if form is None:
            report.warn_of_length(leaf, branches.tree)
            form = leaf.memo["straight"] = straight(leaf, branches.tree)
            branches.programs[form.number] = form
        return form
