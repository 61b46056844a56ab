"""The `cond` primitive: one of several jaxprs, chosen by an index when the program runs.

All branches take the same operands and give results of the same avals, and so do the jaxprs derived from them. A
tangent that is zero in one branch and not in another is materialised there. The residuals of the branches share
slots; the branch that runs fills them and pads with zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functorch_like import core, dtypes
from functorch_like.avals import ShapedArray, fit
from functorch_like.backends import xla
from functorch_like.compiler.lower import emit, emit_carrying, token_avals
from functorch_like.core import BatchAxis, Primitive, UndefinedPrimal, aval_of, state
from functorch_like.errors import ShapeError, ShardingTypeError
from functorch_like.interpreters import reverse
from functorch_like.ir import passes
from functorch_like.ir.jaxpr import Jaxpr, evaluate
from functorch_like.ir.reference import reference
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.higher_order.call import CallSpec, call
from functorch_like.primitives.higher_order.control_flow.cond_branches import (
    BranchesPartialEval,
    agreeing,
    as_array,
    branches_memo,
    partial_eval_branches,
    passed_through,
    united,
)
from functorch_like.primitives.higher_order.control_flow.cond_samples import samples
from functorch_like.primitives.higher_order.control_flow.sequential_vmap import sequential_vmap
from functorch_like.primitives.higher_order.jaxpr_jvp_and_batch import (
    ANYWHERE,
    batch_jaxpr,
    jvp_jaxpr,
    rearranged,
)
from functorch_like.primitives.higher_order.jaxpr_transpose import transposed

Branches = tuple[Jaxpr, ...]
INDEX = ShapedArray((), dtypes.int32)


# ------------------------------------------------------------------------------------------------------------- rules
def _shape(index: ShapedArray, *avals: ShapedArray, branches: Branches) -> tuple[ShapedArray, ...]:
    if index.strong() is not INDEX:
        raise ShapeError(f"cond chooses by an i32[], got {index!r}", fix="convert the index to int32")
    for k, b in enumerate(branches):
        if not fit(avals, b.in_avals):
            raise ShapeError(f"branch {k} takes {b.in_avals}, got {list(avals)}", fix="pass what it was traced with")
        if not fit(b.out_avals, branches[0].out_avals):
            raise ShapeError(
                f"branch 0 gives {branches[0].out_avals}, branch {k} gives {b.out_avals}",
                fix="make all branches give the same shapes and dtypes",
            )
    results = zip(*(b.out_avals for b in branches), strict=True)
    return tuple(_joined(r) for r in results)


def _joined(results: Sequence[ShapedArray]) -> ShapedArray:
    """Return the type of a result, for its types in all branches."""
    splits = list(dict.fromkeys(a.explicit for a in results if a.explicit is not None))
    if len(splits) > 1:
        raise ShardingTypeError(
            f"branches split a result by Explicit axes in different ways: {', '.join(map(repr, results))}",
            fix="reshard it in one of them",
        )
    return results[0].update(weak_type=all(a.weak_type for a in results)).split(splits[0] if splits else None)


def _effects(*, branches: Branches) -> frozenset[str]:
    return frozenset[str]().union(*(b.effects for b in branches))


def _lower(e: xla.Emitter, index: Any, *operands: Any, branches: Branches) -> list[Any]:
    simple = [b.memo("simple", lambda b=b: passes.simplify(b)) for b in branches]
    known = e.known(index)
    if known is not None:  # the other branches need not even lower: they may be for other platforms
        return emit(e, simple[known], operands, inlined=True)
    token = token_avals(*branches)
    taken = [*operands, e.token] if token else operands  # regions may use the values around them
    regions = [([], lambda inner, b=b: emit_carrying(inner, b, taken, token)) for b in simple]
    out_avals = [*e.outs, *token]
    outs = e.op("stablehlo.case", [index], out_avals, regions=regions)
    outs = [outs] if len(out_avals) == 1 else list(outs)
    if token:
        e.token = outs.pop()
    return outs


def _evaluate(args: Sequence[Any], params: dict[str, Any]) -> Any:
    branches = params["branches"]

    def make() -> Jaxpr:
        avals = [INDEX, *branches[0].in_avals]
        alone = lambda *xs: cond(*xs, branches=branches)
        return stage(alone, avals, name="cond", origin="cond alone", parent=core.EVALUATE, chain="")[0]

    jaxpr = branches_memo(branches, ("alone",), make)
    assert call.evaluate is not None
    return call.evaluate(args, {"jaxpr": jaxpr, "spec": CallSpec("cond")})


def _dce(used: tuple[bool, ...], *, branches: Branches) -> tuple[list[bool], Any, dict[str, Any]]:
    def make() -> tuple[list[bool], Branches]:
        results = [k for k, u in enumerate(used) if u]
        live = [passes.dead_code(rearranged(b, range(len(b.inputs)), results)) for b in branches]
        kept = [any(column) for column in zip(*map(passes.used_inputs, live), strict=True)]
        return kept, tuple(rearranged(b, [k for k, u in enumerate(kept) if u]) for b in live)

    needed, live = branches_memo(branches, ("dce", used), make)
    return [True, *needed], used, {"branches": live}


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, branches: Branches) -> tuple[list[Any], list[Any]]:
    some = tuple(t is not None for t in tangents[1:])

    def make() -> tuple[list[Any], Branches, list[bool]]:
        parts, has = agreeing(branches, lambda b, instantiate: jvp_jaxpr(b, some, instantiate))
        return *united(parts), has

    consts, derived, has = branches_memo(branches, ("jvp", some), make)
    index, *operands = primals
    outs = cond(index, *consts, *operands, *(t for t in tangents if t is not None), branches=derived)
    rest = iter(outs[len(has) :])
    return outs[: len(has)], [next(rest) if h else None for h in has]


def _transpose(cts: Sequence[Any], args: Sequence[Any], *, branches: Branches) -> list[Any]:
    linear = tuple(type(a) is UndefinedPrimal for a in args[1:])
    some = tuple(c is not None for c in cts)

    def make() -> tuple[list[Any], Branches, list[bool]]:
        parts, has = agreeing(branches, lambda b, instantiate: transposed(b, linear, some, instantiate))
        return *united(parts), has

    consts, derived, has = branches_memo(branches, ("transpose", linear, some), make)
    index, *known = (a for a in args if type(a) is not UndefinedPrimal)
    rest = iter(cond(index, *consts, *known, *(c for c in cts if c is not None), branches=derived))
    return [None, *(next(rest) if h else None for h in has)]


def _partial_eval(tape: reverse.TapeTrace, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Run the known half of the branch taken, record the linear halves on the tape."""
    branches = params["branches"]
    unknown = tuple(tape.var(a) is not None for a in args)
    make = lambda: partial_eval_branches(branches, unknown[1:])
    parts: BranchesPartialEval = branches_memo(branches, ("partial_eval", unknown), make)
    index, *known = (a for a, u in zip(args, unknown, strict=True) if not u)
    known = [*parts.consts, *known]
    state.trace = tape.parent
    try:
        outs = cond(index, *known, branches=parts.known)
    finally:
        state.trace = tape
    residuals = [known[k] if kind == "in" else outs[k] for kind, k in parts.residuals]
    operands = [index, *residuals, *(a for a, u in zip(args, unknown, strict=True) if u)]
    tangents = iter(tape.record(cond, operands, {"branches": parts.linear}))
    primals = iter(outs)
    return [next(tangents) if u else next(primals) for u in parts.unknown_out]


# ------------------------------------------------------------------------------------------------------------- batch
def _batch(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[int | None], *, branches: Branches
) -> tuple[list[Any], list[int | None]]:
    if dims[0] is not None:
        return _by_each(axis, args, dims, branches)

    def make() -> tuple[list[Any], Branches, list[int | None]]:
        out_dims = zip(*(batch_jaxpr(b, axis, dims[1:]).out_info for b in branches), strict=True)
        # Where branches disagree about the axis, it comes first.
        positions = [(ANYWHERE if r[0] is None else r[0]) if len(set(r)) == 1 else 0 for r in out_dims]
        parts = [batch_jaxpr(b, axis, dims[1:], positions) for b in branches]
        return *united(parts), parts[0].out_info

    consts, derived, where = branches_memo(branches, ("vmap", axis, tuple(dims), state.axes), make)
    index, *operands = args
    return cond(index, *consts, *operands, branches=derived), where


def _by_each(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[int | None], branches: Branches
) -> tuple[list[Any], list[int | None]]:
    """Compute all branches, and select the result of each element by its own index."""
    if _effects(branches=branches):
        apply = lambda *values: cond(*values, branches=branches)
        avals = [INDEX, *branches[0].in_avals]
        return sequential_vmap(axis, args, dims, apply, avals, lambda key, make: branches_memo(branches, key, make))
    (index, *operands), (_, *at) = args, dims
    results: list[list[Any]] = []
    for k, b in enumerate(branches):
        taken = elementwise.eq(index, structural.full_like(index, k))
        shielded = [x if d is None else _shield(taken, x, d) for x, d in zip(operands, at, strict=True)]
        derived, consts, _ = batch_jaxpr(b, axis, at, [0] * len(b.outputs))
        results.append(evaluate(derived, [*consts, *shielded]))
    over = lambda x: structural.broadcast_in_dim(index, shape=aval_of(x).shape, broadcast_dimensions=(0,))
    outs = [r[0] if len(r) == 1 else _choose(over(r[0]), r) for r in zip(*results, strict=True)]
    # An operand that all branches return need not differ between elements.
    passed = passed_through(branches)
    outs = [o if k is None else as_array(operands[k], aval_of(operands[k])) for o, k in zip(outs, passed, strict=True)]
    return outs, [0 if k is None else at[k] for k in passed]


def _choose(index: Any, cases: Sequence[Any]) -> Any:
    if len(cases) == 2:
        return elementwise.select_n(elementwise.ne(index, structural.full_like(index, 0)), *cases)
    return elementwise.select_n(index, *cases)


def _shield(taken: Any, x: Any, dim: int) -> Any:
    """Return `x`, with cotangents only for elements that take the branch: elsewhere they may be 0 * inf."""
    aval = aval_of(x)
    if not dtypes.is_inexact(aval.dtype):
        return x
    where = structural.broadcast_in_dim(taken, shape=aval.shape, broadcast_dimensions=(dim,))
    return elementwise.select_n(where, structural.stop_gradient(x), x)


cond = Primitive(
    "cond",
    shape=_shape,
    ref=lambda index, *xs, branches: tuple(reference(branches[int(index)], xs)),
    lower=_lower,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    samples=samples,
    partial_eval=_partial_eval,
    evaluate=_evaluate,
    dce=_dce,
    effects=_effects,
    multiple_results=True,
)
