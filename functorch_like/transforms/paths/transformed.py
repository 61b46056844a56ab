"""Functions with paths inside of other transformations.

Under grad and jvp the path of the primals is differentiated. Under vmap each element may take another path: the program
of all paths is mapped, after the tree has grown until it has those of all elements. Where values are unknown, inside of
another jitted function or the body of a loop, both sides of every condition are traced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like.calling.call_signature import FlatCall
from functorch_like.calling.lost_derivatives import loses_derivative, lost
from functorch_like.calling.traced_function import operands
from functorch_like.core import Tracer, state, transform_stack
from functorch_like.errors import ConcretizationError, UnsupportedError
from functorch_like.interpreters.batching import BatchTracer
from functorch_like.interpreters.forward import Dual
from functorch_like.ir.jaxpr import Jaxpr
from functorch_like.ir.trace_to_jaxpr import staging_trace
from functorch_like.primitives.higher_order.call import apply
from functorch_like.primitives.higher_order.jaxpr_jvp_and_batch import jvp_jaxpr
from functorch_like.transforms.paths import report
from functorch_like.transforms.paths.path_trace import plain
from functorch_like.transforms.paths.programs import PathProgram, common_results
from functorch_like.transforms.paths.tree import Node, endless
from functorch_like.transforms.paths.words import Words

if TYPE_CHECKING:
    from functorch_like.transforms.paths.calls import Branches, Paths


def answer(paths: Paths, branches: Branches | None, call: FlatCall, key: Any) -> tuple[Any, Any, bool] | None:
    """Answer a call with traced arguments, or while a function is staged; None where the function has no guards."""
    if staging_trace() is not None or any(plain(x) is None for x in call.leaves):
        form = paths.whole(branches, call, key)
        return None if form is None else (form.out_tree.unflatten(_applied(paths, form, call)), None, True)
    if branches is None:
        branches = paths.begin(call, key)[0]
        if branches is None:
            return None
    name = paths.jitted.spec.name
    if branches.tree.acts:
        raise UnsupportedError(
            f"{name} has effects, and Python control flow that depends on values: it runs by segments, in no other "
            "transformation",
            fix="transform the function inside of jit instead: jit(grad(f), control_flow='paths')",
            chain=transform_stack(state.trace),
        )
    if any(_is_mapped(x) for x in call.leaves):
        results = _mapped(paths, branches, call)
    else:
        results = _differentiated(paths, branches, call)
    return results, None, True


def _applied(paths: Paths, form: PathProgram, call: FlatCall) -> list[Any]:
    return apply(form.jaxpr, form.consts, operands(call), paths.jitted.spec)


def _differentiated(paths: Paths, branches: Branches, call: FlatCall) -> Any:
    """Results of the path of the primals."""
    decided: list[Words] = []
    while True:
        with branches.lock:
            leaf = paths.follow(branches, call, decided)
            if any(endless(e) for n in leaf.path()[len(decided) + 1 :] for e in n.equations):
                leaf = paths.discover(branches, call, decided)  # no guess: it might not end
            form = paths.straight(branches, leaf)
        _refuse_losses(branches, leaf, call)
        *outs, words = _applied(paths, form, call)
        more = form.decided(np.asarray(plain(words)).tolist(), len(decided))
        if more == leaf.decisions():
            return form.out_tree.unflatten(outs)
        decided = more


def _refuse_losses(branches: Branches, leaf: Node, call: FlatCall) -> None:
    """Raise where Python took a number that has a derivative: on the path it is a constant, without a derivative."""
    active = [_is_differentiated(x) for x in (*branches.tree.consts, *call.leaves)]
    if not any(active):
        return
    guards = [n.guard for n in leaf.path() if n.guard is not None and loses_derivative(n.guard.what, n.guard.var.aval)]
    if not guards:
        return
    version, jaxpr = leaf.memo.get("asked", (0, None))
    if version != branches.tree.version:  # with other paths come other constants
        equations = [e for n in leaf.path() for e in n.equations]
        jaxpr = Jaxpr(branches.tree.all_inputs(), equations, [g.var for g in guards], branches.tree.name)
        leaf.memo["asked"] = branches.tree.version, jaxpr
    for guard, has in zip(guards, jvp_jaxpr(jaxpr, active)[2], strict=True):
        if has:
            raise lost(guard.var.aval, guard.what, state.trace, guard.line)


def _mapped(paths: Paths, branches: Branches, call: FlatCall) -> Any:
    """Results of all elements, each of its own path."""
    traced_before = branches.tree.traces
    while True:
        with branches.lock:
            form = paths.merged(branches, convert=True)
            if form is not None and form.loops and any(map(_is_differentiated, call.leaves)):
                # Loops of unknown length have no derivative backwards.
                form = paths.merged(branches, shared=False, convert=True)
        if form is None:
            return _same_path(paths, branches, call)
        for leaf in branches.tree.leaves:
            _refuse_losses(branches, leaf, call)
        outs = _applied(paths, form, call)
        if not form.guarded:
            return form.out_tree.unflatten(outs)
        *outs, words = outs
        missing = [k for k, row in enumerate(_rows(words)) if row.tobytes() not in form.known]
        if not missing:
            return form.out_tree.unflatten(outs)
        version = branches.tree.version
        with branches.lock:
            paths.discover(branches, call, [], element=missing[0])
        if branches.tree.version == version:
            raise ConcretizationError(
                f"element {missing[0]} of {paths.jitted.spec.name} takes another path in the mapped program than alone "
                f"(after {branches.tree.traces - traced_before} traces): its guards depend on rounding",
                fix="use lax.cond or fnp.where",
            )


def _same_path(paths: Paths, branches: Branches, call: FlatCall) -> Any:
    """Results where paths give different shapes, or are too many: all elements must take the same one."""
    with branches.lock:
        leaf = paths.discover(branches, call, [])
        form = paths.straight(branches, leaf)
    _refuse_losses(branches, leaf, call)
    *outs, words = _applied(paths, form, call)
    others = [k for k, row in enumerate(_rows(words)) if row.tobytes() not in form.known]
    if others:
        name, tree = paths.jitted.spec.name, branches.tree
        both, alone = f"elements 0 and {others[0]} of {name} take", "or call the function for each element"
        if common_results(tree.leaves) is None:
            why = f"{both} paths whose results differ in shape, dtype or structure:\n{report.tree_text(tree)}"
            fix = f"give results of one shape and dtype, padded to the largest; {alone}"
        else:
            why = f"{both} paths with too many conditions for one program, most at {report.widest(tree)}"
            fix = f"{report.LOOP}; {alone}"
        raise ConcretizationError(why, fix=fix, chain=transform_stack(state.trace))
    return form.out_tree.unflatten(outs)


def _rows(words: Any) -> np.ndarray[Any, Any]:
    """Return the words of each element, a row each; one row where all elements have the same."""
    while isinstance(words, Tracer):
        if isinstance(words, BatchTracer):
            words = np.moveaxis(np.asarray(_below(words.value)), words.dim, 0)
        else:
            words = _below(words)
    words = np.asarray(words)
    return words.reshape(-1, words.shape[-1])


def _below(x: Any) -> Any:
    while isinstance(x, Tracer) and not isinstance(x, BatchTracer):
        x = x.primal if type(x) is Dual else x.concrete()
    return x


def _is_mapped(x: Any) -> bool:
    while isinstance(x, Tracer):
        if isinstance(x, BatchTracer):
            return True
        x = x.primal if type(x) is Dual else None
    return False


def _is_differentiated(x: Any) -> bool:
    while isinstance(x, Tracer):
        if type(x) is Dual:
            return True
        x = x.value if isinstance(x, BatchTracer) else None
    return False
