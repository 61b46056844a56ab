"""custom_fwd: the forward rule of a custom_vjp function, which becomes the function where its residuals are unused.

A rule may compute its result in another way than the function, with the residuals as a by-product. Some programs do
not need them, such as the first pass of a checkpointed function. There the function is the better choice, and dead
code elimination replaces the rule by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import core
from functorch_like.avals import ShapedArray
from functorch_like.compiler.lower import emit
from functorch_like.core import BatchAxis, NotDefined, Primitive, SampleInput
from functorch_like.interpreters import forward
from functorch_like.ir import passes
from functorch_like.ir.jaxpr import Jaxpr, evaluate
from functorch_like.ir.reference import reference
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives.elementwise.arithmetic import mul
from functorch_like.primitives.elementwise.transcendental import cos, sin
from functorch_like.primitives.higher_order.control_flow.cond_branches import united
from functorch_like.primitives.higher_order.jaxpr_jvp_and_batch import batch_jaxpr


def _lower(e: Any, *operands: Any, fwd: Jaxpr, fun: Jaxpr) -> list[Any]:
    return emit(e, fwd.memo("simple", lambda: passes.simplify(fwd)), operands, inlined=True)


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, fwd: Jaxpr, fun: Jaxpr
) -> tuple[Sequence[Any], Sequence[Any]]:
    return forward.jvp(lambda *xs: evaluate(fwd, xs), primals, tangents)


def _batch(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[int | None], *, fwd: Jaxpr, fun: Jaxpr
) -> tuple[Sequence[Any], list[int | None]]:
    parts = [batch_jaxpr(jaxpr, axis, dims, [0] * len(jaxpr.outputs)) for jaxpr in (fwd, fun)]
    consts, (wide_fwd, wide_fun) = united(parts)
    outs = custom_fwd(*consts, *args, fwd=wide_fwd, fun=wide_fun)
    return outs, [0] * len(outs)


def _dce(used: tuple[bool, ...], *, fwd: Jaxpr, fun: Jaxpr) -> tuple[list[bool], Sequence[bool], dict[str, Any]]:
    kept = [True] * len(fwd.inputs)
    if fwd is fun or any(used[len(fun.outputs) :]):
        return kept, [True] * len(used), {"fwd": fwd, "fun": fun}
    return kept, [k < len(fun.outputs) for k in range(len(used))], {"fwd": fun, "fun": fun}


def _samples() -> list[SampleInput]:
    vector = ShapedArray((3,), np.dtype("float32"))
    fun, _ = stage(lambda x, y: [mul(sin(x), y)], [vector, vector], name="f", parent=core.EVALUATE)
    fwd, _ = stage(lambda x, y: [mul(sin(x), y), cos(x)], [vector, vector], name="f_fwd", parent=core.EVALUATE)
    return [SampleInput((vector, vector), {"fwd": fwd, "fun": fun})]


#: `fwd` gives the results of `fun`, and then the residuals, of the same operands.
custom_fwd = Primitive(
    "custom_fwd",
    shape=lambda *avals, fwd, fun: tuple(fwd.out_avals),
    ref=lambda *args, fwd, fun: tuple(reference(fwd, args)),
    lower=_lower,
    jvp=_jvp,
    transpose=NotDefined("the forward rule of a custom_vjp function is not linear; only its derivative is transposed"),
    batch=_batch,
    samples=_samples,
    partial_eval=lambda tape, args, params: evaluate(params["fwd"], args),
    evaluate=lambda args, params: evaluate(params["fwd"], args),
    dce=_dce,
    effects=lambda *, fwd, fun: fwd.effects,
    multiple_results=True,
)
