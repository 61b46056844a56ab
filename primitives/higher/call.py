"""The `call` row: a jaxpr applied to operands. It is what `jit` leaves in a program.

A staged function stays staged under every transformation: its jvp, its batched form, its known and linear halves
and its transpose are jaxprs of their own, made once, kept on the jaxpr they came from, and compiled.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import core
from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.core import Axis, Lin, Primitive, Sample, Tracer, aval_of, state
from functorch_like.errors import ShapeError
from functorch_like.interpreters import batching, forward, passes, reverse
from functorch_like.interpreters.evaluate import Program
from functorch_like.interpreters.jaxpr import Equation, Jaxpr, Literal, Var, evaluate
from functorch_like.interpreters.lower import emit
from functorch_like.interpreters.stage import StageTracer, stage


@dataclasses.dataclass(frozen=True)
class CallSpec:
    """What a call knows besides its jaxpr; a rule passes it on whole."""

    name: str = "call"
    inline: bool = False
    keep_unused: bool = False
    options: tuple[tuple[str, Any], ...] = ()
    donated: tuple[bool, ...] = ()  # of the arguments that are not consts; only direct evaluation honours it


def apply(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any], spec: CallSpec) -> list[Any]:
    """Bind a call, or evaluate the jaxpr in place where the spec says inline."""
    operands = [*consts, *args]
    if spec.inline:
        return evaluate(jaxpr, operands)
    return list(call(*operands, jaxpr=jaxpr, spec=spec))


def _derive(
    jaxpr: Jaxpr, key: Any, how: str, fun: Callable[..., list[Any]], avals: Sequence[ShapedArray]
) -> tuple[Jaxpr, list[Any]]:
    # Staged with nothing around it, so that what is kept depends on the jaxpr and the key alone.
    origin = f"{how} of {jaxpr.name}"
    return stage(fun, avals, name=f"{jaxpr.name}_{key}", origin=origin, parent=core.EVALUATE, chain=origin)


# ------------------------------------------------------------------------------------------------------------- rules
def _shape(*avals: ShapedArray, jaxpr: Jaxpr, spec: CallSpec) -> tuple[ShapedArray, ...]:
    wanted = jaxpr.in_avals
    if len(avals) != len(wanted) or any(a.strong() is not w.strong() for a, w in zip(avals, wanted, strict=False)):
        raise ShapeError(
            f"{spec.name} takes {wanted}, got {list(avals)}", fix="pass operands with the avals it was traced with"
        )
    return tuple(jaxpr.out_avals)


def _ref(*args: Any, jaxpr: Jaxpr, spec: CallSpec) -> tuple[Any, ...]:
    values: dict[Any, Any] = dict(zip(jaxpr.inputs, args, strict=True))
    read: Callable[[Any], Any] = lambda a: a.value if type(a) is Literal else values[a]
    for e in jaxpr.equations:
        out = e.prim.ref(*map(read, e.inputs), **e.params)
        values.update(zip(e.outputs, out if e.prim.multiple else (out,), strict=True))
    return tuple(map(read, jaxpr.outputs))


def _lower(e: xla.Emitter, *operands: Any, jaxpr: Jaxpr, spec: CallSpec) -> list[Any]:
    simple = jaxpr.memo("simple", lambda: passes.simplify(jaxpr))
    body: Callable[..., list[Any]] = lambda inner, *args: emit(inner, simple, args)
    outs = e.outs
    symbol = e.function(jaxpr, spec.name, jaxpr.in_avals, jaxpr.out_avals, body)
    return e.call(symbol, operands, outs)


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: Jaxpr, spec: CallSpec
) -> tuple[list[Any], list[Any]]:
    some = tuple(t is not None for t in tangents)

    def make() -> tuple[Jaxpr, list[Any], list[bool]]:
        has: list[bool] = []

        def fun(*flat: Any) -> list[Any]:
            rest = iter(flat[len(some) :])
            given = [next(rest) if s else None for s in some]
            outs, ts = forward.jvp(lambda *xs: evaluate(jaxpr, xs), flat[: len(some)], given)
            has[:] = [t is not None for t in ts]
            return [*outs, *(t for t in ts if t is not None)]

        avals = [*jaxpr.in_avals, *(a.strong() for a, s in zip(jaxpr.in_avals, some, strict=True) if s)]
        made, consts = _derive(jaxpr, "jvp", "jvp", fun, avals)
        return made, consts, has

    derived, consts, has = jaxpr.memo(("jvp", some), make)
    outs = apply(derived, consts, [*primals, *(t for t in tangents if t is not None)], _plain(spec))
    n = len(has)
    rest = iter(outs[n:])
    return outs[:n], [next(rest) if h else None for h in has]


def _batch(
    axis: Axis, args: Sequence[Any], dims: Sequence[int | None], *, jaxpr: Jaxpr, spec: CallSpec
) -> tuple[list[Any], list[int | None]]:
    def make() -> tuple[Jaxpr, list[Any], list[int | None]]:
        where: list[int | None] = []

        def fun(*flat: Any) -> list[Any]:
            outs, out_dims = batching.batch(lambda *xs: evaluate(jaxpr, xs), axis, flat, dims)
            where[:] = out_dims
            return outs

        avals = [
            a if d is None else a.update(shape=(*a.shape[:d], axis.size, *a.shape[d:]))
            for a, d in zip(jaxpr.in_avals, dims, strict=True)
        ]
        made, consts = _derive(jaxpr, "vmap", f"vmap over {axis.size}", fun, avals)
        return made, consts, where

    derived, consts, where = jaxpr.memo(("vmap", axis, tuple(dims), state.axes), make)
    return apply(derived, consts, args, _plain(spec)), where


def _plain(spec: CallSpec) -> CallSpec:
    return dataclasses.replace(spec, donated=()) if spec.donated else spec


# ------------------------------------------------------------------------------------------------------------ split
@dataclasses.dataclass(frozen=True)
class _Halves:
    """A jaxpr taken apart: what can be computed now, and what is linear in the unknown inputs.

    `residuals[i]` is where the i-th residual of the linear half comes from: ("in", k), the k-th known input itself,
    or ("out", k), the k-th result of the known half.
    """

    known: Jaxpr
    consts: list[Any]
    linear: Jaxpr
    residuals: list[tuple[str, int]]
    unknown_out: list[bool]


def _halves(jaxpr: Jaxpr, unknown: tuple[bool, ...]) -> _Halves:
    tape_of: list[Any] = []
    parts: dict[str, Any] = {}

    def fun(*known: Any) -> list[Any]:
        tape = reverse.TapeTrace(state.trace)
        rest = iter(known)
        with core.tracing(tape):
            args = [tape.input(v.aval) if u else next(rest) for v, u in zip(jaxpr.inputs, unknown, strict=True)]
            outs = evaluate(jaxpr, args)
        variables = [tape.var(o) for o in outs]
        equations = reverse.live(tape.equations, variables)
        tape_of[:] = [a._var for a, u in zip(args, unknown, strict=True) if u]
        residuals = _Residuals()
        rows = [
            Equation(
                e.prim, [a if type(a) is Var else residuals.atom(a) for a in e.inputs], e.params, e.outputs, e.source
            )
            for e in equations
        ]
        parts.update(rows=rows, variables=variables, residuals=residuals)
        return [*(o for o, v in zip(outs, variables, strict=True) if v is None), *residuals.values]

    avals = [a for a, u in zip(jaxpr.in_avals, unknown, strict=True) if not u]
    staged, consts = _derive(jaxpr, "known", "known half", fun, avals)
    variables, residuals = parts["variables"], parts["residuals"]
    linear = Jaxpr(
        [*residuals.vars, *tape_of],
        parts["rows"],
        [v for v in variables if v is not None],
        f"{jaxpr.name}_linear",
        f"linear half of {jaxpr.name}",
    )
    # A residual that is an input of the known half, or equals another result of it, is not returned again.
    first = len(variables) - sum(v is not None for v in variables)
    inputs: dict[Any, int] = {v: k for k, v in enumerate(staged.inputs)}
    outputs = list(staged.outputs[:first])
    position: dict[Any, int] = {a: k for k, a in enumerate(outputs) if type(a) is Var}
    where: list[tuple[str, int]] = []
    for atom in staged.outputs[first:]:
        if atom in inputs:
            where.append(("in", inputs[atom]))
            continue
        if atom not in position:
            position[atom] = len(outputs)
            outputs.append(atom)
        where.append(("out", position[atom]))
    known = passes.dead_code(Jaxpr(staged.inputs, staged.equations, outputs, staged.name, staged.origin))
    return _Halves(known, consts, linear, where, [v is not None for v in variables])


class _Residuals:
    """Known values that the linear half reads, each once."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.vars: list[Var] = []
        self._of: dict[Any, Var] = {}

    def atom(self, value: Any) -> Any:
        if not isinstance(value, Tracer) and np.ndim(value) == 0 and type(value) is not core.ArrayImpl:
            aval = aval_of(value)
            return Literal(np.array(value, aval.dtype), aval)
        key = value._var if type(value) is StageTracer else id(value)
        if key not in self._of:
            self._of[key] = Var(aval_of(value))
            self.values.append(value)
            self.vars.append(self._of[key])
        return self._of[key]


def _split(tape: reverse.TapeTrace, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Compute the known half now, record the linear half on the tape."""
    jaxpr, spec = params["jaxpr"], params["spec"]
    unknown = tuple(tape.var(a) is not None for a in args)
    halves: _Halves = jaxpr.memo(("split", unknown), lambda: _halves(jaxpr, unknown))
    known = [*halves.consts, *(a for a, u in zip(args, unknown, strict=True) if not u)]
    state.trace = tape.parent
    try:
        outs = apply(halves.known, [], known, _plain(spec))
    finally:
        state.trace = tape
    residuals = [known[k] if kind == "in" else outs[k] for kind, k in halves.residuals]
    operands = [*residuals, *(a for a, u in zip(args, unknown, strict=True) if u)]
    tangents = iter(tape.record(call, operands, {"jaxpr": halves.linear, "spec": _plain(spec)}))
    primals = iter(outs)
    return [next(tangents) if u else next(primals) for u in halves.unknown_out]


def _transpose(cts: Sequence[Any], args: Sequence[Any], *, jaxpr: Jaxpr, spec: CallSpec) -> list[Any]:
    linear = tuple(type(a) is Lin for a in args)
    some = tuple(c is not None for c in cts)

    def make() -> tuple[Jaxpr, list[Any], list[bool]]:
        has: list[bool] = []

        def fun(*flat: Any) -> list[Any]:
            n = len(linear) - sum(linear)
            rest = iter(flat[n:])
            back = reverse.backward_jaxpr(jaxpr, linear, flat[:n], [next(rest) if s else None for s in some])
            has[:] = [b is not None for b in back]
            return [b for b in back if b is not None]

        avals = [a for a, lin in zip(jaxpr.in_avals, linear, strict=True) if not lin]
        avals += [a.strong() for a, s in zip(jaxpr.out_avals, some, strict=True) if s]
        made, consts = _derive(jaxpr, "transpose", "transpose", fun, avals)
        return passes.dead_code(made), consts, has

    derived, consts, has = jaxpr.memo(("transpose", linear, some), make)
    known = [a for a, lin in zip(args, linear, strict=True) if not lin]
    rest = iter(apply(derived, consts, [*known, *(c for c in cts if c is not None)], _plain(spec)))
    back = iter([next(rest) if h else None for h in has])
    return [next(back) if lin else None for lin in linear]


# --------------------------------------------------------------------------------------------------------- evaluate
def _evaluate(args: Sequence[Any], params: dict[str, Any]) -> Any:
    jaxpr = params["jaxpr"]
    return jaxpr.memo(("kernel", params["spec"]), lambda: _kernel(jaxpr, params["spec"]))(*args)


def _kernel(jaxpr: Jaxpr, spec: CallSpec) -> Any:
    def miss(*args: Any) -> tuple[Any, Any, bool]:
        for a in args:
            if isinstance(a, Tracer):
                raise core.leak(a, spec.name)
        program = Program(jaxpr, [], args, name=spec.name, options=dict(spec.options))
        outs = program.run(args)
        return outs, program.fastpath(xla.structure(list(range(len(outs))))), False

    def fun(*args: Any) -> list[Any]:
        return evaluate(jaxpr, args)

    return xla.function(spec.name, fun, miss)


def _samples() -> list[Sample]:
    from functorch_like.primitives.elementwise import mul, sin

    vector = ShapedArray((3,), np.float32)
    jaxpr, _ = stage(lambda x, y: [mul(sin(x), y), sin(y)], [vector, vector], name="f", parent=core.EVALUATE)
    return [Sample((vector, vector), {"jaxpr": jaxpr, "spec": CallSpec("f")})]


call = Primitive(
    "call",
    shape=_shape,
    ref=_ref,
    lower=_lower,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    samples=_samples,
    split=_split,
    evaluate=_evaluate,
    multiple=True,
)
