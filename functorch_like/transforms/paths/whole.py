"""Functions with paths as one jaxpr of all: inside of other functions, and for `trace`, `lower` and `warmup`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from functorch_like.calling.call_signature import FlatCall
from functorch_like.core import EVALUATE, Tracer, state
from functorch_like.errors import ConcretizationError, TracerBoolConversionError
from functorch_like.transforms.jit_stages import Traced
from functorch_like.transforms.paths.bodies import total
from functorch_like.transforms.paths.programs import PathProgram

if TYPE_CHECKING:
    from functorch_like.transforms.paths.calls import Branches, Paths


def whole(paths: Paths, branches: Branches | None, call: FlatCall, key: Any) -> PathProgram | None:
    """Return the program of all paths of a function, taken or not; None for a function without guards.

    Args:
        paths: the paths of the function.
        branches: those that calls have taken.
        call: a call of the function; its values are not used.
        key: the key of the call.

    Raises:
        ConcretizationError: where a condition cannot be answered both ways, or where paths give different types.
    """
    form = paths.merged(branches) if branches is not None else None
    if form is None or form.guarded:
        form = paths.wholes.get(key)
    if form is None:
        jitted, name = paths.jitted, paths.jitted.spec.name
        flat, trees = call.flatten_function(jitted.fun)
        try:
            form = total(flat, call.avals, name=name, origin="traced by jit", chain=f"jit({name})", parent=state.trace)
        except ConcretizationError as e:
            if state.trace is not EVALUATE:
                e.fix = f"where the outer function follows paths, too (control_flow='paths'), values are known; {e.fix}"
            raise
        form.out_tree = trees[0]
        guarded = form.inside or (form.tree.root is not None and form.tree.root.guard is not None)
        if not guarded and _needs_no_values(paths, call):
            return None
        if not any(isinstance(c, Tracer) for c in form.consts):
            paths.wholes.keep(key, form, paths.MOST_TREES)
    return form


def _needs_no_values(paths: Paths, call: FlatCall) -> bool:
    """Return True if a function can be traced without following it; bodies inside may be known from other traces."""
    try:
        paths.jitted.traced(call, None)
    except TracerBoolConversionError:
        return False
    return True


def traced(paths: Paths, call: FlatCall) -> Traced:
    """Return the trace for a signature, of all paths. Where no call has taken any, the next ones run it as it is."""
    jitted = paths.jitted
    started, key = time.perf_counter(), jitted.key(call)
    branches = paths.branches.get(key)
    if key in paths.served:
        return paths.served[key]
    form = None if key in jitted.traces else whole(paths, branches, call, key)
    if form is None:
        return jitted.traced(call, None)
    made = Traced.of(form.jaxpr, form.consts, form.out_tree, call, jitted.spec, jitted.donated(call))
    made.seconds = time.perf_counter() - started
    if branches is None and not any(isinstance(c, Tracer) for c in form.consts):
        paths.served.keep(key, made, paths.MOST_TREES)
    return made
