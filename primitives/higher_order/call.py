"""The `call` primitive: a jaxpr applied to operands, as a jitted function inside of a program is.

A staged function stays staged under every transformation. Its jvp, its batched form, its known and linear halves
and its transpose are jaxprs of their own, made once and compiled. They are kept on the jaxpr they came from.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from functorch_like import core, source_info
from functorch_like.avals import ShapedArray, fit
from functorch_like.backends import xla
from functorch_like.caches import Cache
from functorch_like.compiler.fingerprint import fingerprint
from functorch_like.compiler.lower import emit_carrying, token_avals
from functorch_like.compiler.program import Program
from functorch_like.core import BatchAxis, Primitive, SampleInput, Tracer, UndefinedPrimal, state
from functorch_like.errors import ShapeError
from functorch_like.interpreters import eager_tiers, reverse
from functorch_like.interpreters.evaluate import program_for
from functorch_like.ir import passes
from functorch_like.ir.jaxpr import Jaxpr, evaluate, inner_jaxprs
from functorch_like.ir.reference import reference
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives.higher_order.jaxpr_jvp_and_batch import batch_jaxpr, jvp_jaxpr
from functorch_like.primitives.higher_order.jaxpr_transpose import transposed
from functorch_like.primitives.higher_order.partial_eval import partial_eval_jaxpr


@dataclasses.dataclass(frozen=True)
class CallSpec:
    """Facts about a call besides its jaxpr; a rule passes it on whole."""

    name: str = "call"
    inline: bool = False
    keep_unused: bool = False
    options: tuple[tuple[str, Any], ...] = ()
    mode: str = "default"
    donated: tuple[bool, ...] = ()  # of the arguments that are not consts; only direct evaluation honours it


def apply(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any], spec: CallSpec) -> list[Any]:
    """Bind a call, or evaluate the jaxpr in place where the spec is inline."""
    operands = [*consts, *args]
    if spec.inline:
        return evaluate(jaxpr, operands)
    return list(call(*operands, jaxpr=jaxpr, spec=spec))


# ------------------------------------------------------------------------------------------------------------- rules
def _shape(*avals: ShapedArray, jaxpr: Jaxpr, spec: CallSpec) -> tuple[ShapedArray, ...]:
    expected = jaxpr.in_avals
    if not fit(avals, expected):
        raise ShapeError(
            f"{spec.name} takes {expected}, got {list(avals)}", fix="pass operands with the avals it was traced with"
        )
    return tuple(jaxpr.out_avals)


def _ref(*args: Any, jaxpr: Jaxpr, spec: CallSpec) -> tuple[Any, ...]:
    return tuple(reference(jaxpr, args))


def _lower(e: xla.Emitter, *operands: Any, jaxpr: Jaxpr, spec: CallSpec) -> list[Any]:
    simple = jaxpr.memo("simple", lambda: passes.simplify(jaxpr))
    token = token_avals(jaxpr)
    body: Callable[..., list[Any]] = lambda inner, *args: emit_carrying(inner, simple, args, token, inlined=True)
    out_avals = [*e.outs, *token]
    symbol = e.function(jaxpr, spec.name, [*jaxpr.in_avals, *token], out_avals, body)
    if not token:
        return e.call(symbol, operands, out_avals)
    *outs, e.token = e.call(symbol, [*operands, e.token], out_avals)
    return outs


def _dce(used: tuple[bool, ...], *, jaxpr: Jaxpr, spec: CallSpec) -> tuple[list[bool], Any, dict[str, Any]]:
    live, kept = jaxpr.memo(("dce", used), lambda: passes.without_unused(jaxpr, used))
    return kept, used, {"jaxpr": live, "spec": _plain(spec)}


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: Jaxpr, spec: CallSpec
) -> tuple[list[Any], list[Any]]:
    derived, consts, has = jvp_jaxpr(jaxpr, [t is not None for t in tangents])
    outs = apply(derived, consts, [*primals, *(t for t in tangents if t is not None)], _plain(spec))
    n = len(has)
    rest = iter(outs[n:])
    return outs[:n], [next(rest) if h else None for h in has]


def _batch(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[int | None], *, jaxpr: Jaxpr, spec: CallSpec
) -> tuple[list[Any], list[int | None]]:
    derived, consts, where = batch_jaxpr(jaxpr, axis, dims)
    return apply(derived, consts, args, _plain(spec)), where


def _plain(spec: CallSpec) -> CallSpec:
    return dataclasses.replace(spec, donated=()) if spec.donated else spec


# ------------------------------------------------------------------------------------------------------------ split
def _partial_eval(tape: reverse.TapeTrace, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Compute the known half now, record the linear half on the tape."""
    jaxpr, spec = params["jaxpr"], params["spec"]
    unknown = tuple(tape.var(a) is not None for a in args)
    parts = partial_eval_jaxpr(jaxpr, unknown)
    known = [*parts.consts, *(a for a, u in zip(args, unknown, strict=True) if not u)]
    state.trace = tape.parent
    try:
        outs = apply(parts.known, [], known, _plain(spec))
    finally:
        state.trace = tape
    residuals = [known[k] if kind == "in" else outs[k] for kind, k in parts.residuals]
    operands = [*residuals, *(a for a, u in zip(args, unknown, strict=True) if u)]
    tangents = iter(tape.record(call, operands, {"jaxpr": parts.linear, "spec": _plain(spec)}))
    primals = iter(outs)
    return [next(tangents) if u else next(primals) for u in parts.unknown_out]


def _transpose(cts: Sequence[Any], args: Sequence[Any], *, jaxpr: Jaxpr, spec: CallSpec) -> list[Any]:
    derived, consts, has = transposed(jaxpr, [type(a) is UndefinedPrimal for a in args], [c is not None for c in cts])
    known = [a for a in args if type(a) is not UndefinedPrimal]
    rest = iter(apply(derived, consts, [*known, *(c for c in cts if c is not None)], _plain(spec)))
    return [next(rest) if h else None for h in has]


# --------------------------------------------------------------------------------------------------------- evaluate
def _evaluate(args: Sequence[Any], params: dict[str, Any]) -> Any:
    jaxpr = params["jaxpr"]
    return jaxpr.memo(("kernel", params["spec"]), lambda: _shared(jaxpr, params["spec"]))(*args)


#: Kernels by their fingerprint and the user's lines that call them; the oldest entry is dropped first.
_KERNELS: Cache[Any, Any] = Cache()
_MOST_KERNELS = 256


def _shared(jaxpr: Jaxpr, spec: CallSpec) -> Any:
    """The kernel of an equal jaxpr, if there was one: a function made anew for each call is not compiled anew."""
    text = fingerprint(jaxpr, spec.name, spec.options, spec.mode)
    if text is None:
        return _kernel(jaxpr, spec)
    weak = tuple(a.weak_type for a in (*jaxpr.in_avals, *jaxpr.out_avals))  # lowers alike, but is a fact of results
    key = (text, weak, *_lines(jaxpr))
    result = _KERNELS.get(key)
    if result is None:
        result = _kernel(jaxpr, spec)
        _KERNELS.keep(key, result, _MOST_KERNELS)
    return result


def _lines(jaxpr: Jaxpr) -> Iterator[Any]:
    for e in jaxpr.equations:
        yield None if e.source is None else source_info.user_line(e.source)
        for inner in inner_jaxprs(e.params):
            yield from _lines(inner)


def _kernel(jaxpr: Jaxpr, spec: CallSpec) -> Any:
    programs: Cache[Any, Program] = Cache()

    def make(*args: Any) -> Program:
        return Program(jaxpr, [], args, name=spec.name, options=dict(spec.options), mode=spec.mode, eager=True)

    def miss(*args: Any) -> tuple[Any, Any, bool]:
        for a in args:
            if isinstance(a, Tracer):
                raise core.leak(a, spec.name)
        program = program_for(args, programs, make)
        outs = eager_tiers.run(program, args)
        return outs, *eager_tiers.remembered(program, xla.structure(list(range(len(outs)))))

    def fun(*args: Any) -> list[Any]:
        return evaluate(jaxpr, args)

    return xla.function(spec.name, fun, miss)


def _samples() -> list[SampleInput]:
    from functorch_like.primitives.elementwise.arithmetic import mul
    from functorch_like.primitives.elementwise.transcendental import sin

    vector = ShapedArray((3,), np.float32)
    jaxpr, _ = stage(lambda x, y: [mul(sin(x), y), sin(y)], [vector, vector], name="f", parent=core.EVALUATE)
    return [SampleInput((vector, vector), {"jaxpr": jaxpr, "spec": CallSpec("f")})]


call = Primitive(
    "call",
    shape=_shape,
    ref=_ref,
    lower=_lower,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    samples=_samples,
    partial_eval=_partial_eval,
    evaluate=_evaluate,
    dce=_dce,
    effects=lambda *, jaxpr, spec: jaxpr.effects,
    multiple_results=True,
    kind="call",
)
