"""linear_call: a linear function whose transpose the user gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functorch_like import core
from functorch_like.avals import ShapedArray
from functorch_like.compiler.lower import emit
from functorch_like.core import BatchAxis, Primitive, SampleInput, UndefinedPrimal, aval_of
from functorch_like.errors import DifferentiationError
from functorch_like.interpreters import forward
from functorch_like.ir import passes
from functorch_like.ir.jaxpr import Jaxpr, evaluate
from functorch_like.ir.reference import reference
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.base.shapes import zeros
from functorch_like.primitives.higher_order.control_flow.cond_branches import united
from functorch_like.primitives.higher_order.jaxpr_jvp_and_batch import batch_jaxpr
from functorch_like.primitives.higher_order.standalone_eval import evaluate_alone


def _shape(*avals: ShapedArray, fun: Jaxpr, transpose: Jaxpr, count: int) -> tuple[ShapedArray, ...]:
    return tuple(fun.out_avals)


def _ref(*values: Any, fun: Jaxpr, transpose: Jaxpr, count: int) -> tuple[Any, ...]:
    return tuple(reference(fun, values))


def _lower(e: Any, *operands: Any, fun: Jaxpr, transpose: Jaxpr, count: int) -> list[Any]:
    return emit(e, fun.memo("simple", lambda: passes.simplify(fun)), operands)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, fun: Jaxpr, count: int, **rest: Any) -> Any:
    """Apply the function to tangents of the last operands, and differentiate it by the residuals."""
    params = {"fun": fun, "count": count, **rest}
    outs = linear_call(*primals, **params)
    d_outs: list[Any] = [None] * len(outs)
    if any(t is not None for t in tangents[count:]):
        moving = [
            zeros(aval_of(p).strong()) if t is None else t
            for p, t in zip(primals[count:], tangents[count:], strict=True)
        ]
        d_outs = list(linear_call(*primals[:count], *moving, **params))
    if any(t is not None for t in tangents[:count]):
        still = [*tangents[:count], *[None] * (len(primals) - count)]
        _, others = forward.jvp(lambda *xs: evaluate(fun, xs), primals, still)
        d_outs = [
            b if a is None else a if b is None else elementwise.add(a, b) for a, b in zip(d_outs, others, strict=True)
        ]
    return outs, d_outs


def _transpose(cts: Sequence[Any], args: Sequence[Any], *, fun: Jaxpr, transpose: Jaxpr, count: int) -> list[Any]:
    if any(type(a) is UndefinedPrimal for a in args[:count]):
        raise DifferentiationError(
            "a linear_call is linear in its linear arguments alone, and is transposed by a residual",
            fix="transpose by the linear arguments",
        )
    cotangents = [zeros(a.strong()) if ct is None else ct for ct, a in zip(cts, fun.out_avals, strict=True)]
    back = linear_call(*args[:count], *cotangents, fun=transpose, transpose=fun, count=count)
    return [None] * count + [b if type(a) is UndefinedPrimal else None for a, b in zip(args[count:], back, strict=True)]


def _batch(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[Any], *, fun: Jaxpr, transpose: Jaxpr, count: int
) -> tuple[Any, list[int]]:
    moved = [
        structural.widen(a, axis.size) if d is None else structural.move(a, d, 0)
        for a, d in zip(args, dims, strict=True)
    ]
    both = [batch_jaxpr(j, axis, [0] * len(j.inputs), [0] * len(j.outputs)) for j in (fun, transpose)]
    consts, (forth, back) = united([(made.jaxpr, made.consts) for made in both])
    out = linear_call(*consts, *moved, fun=forth, transpose=back, count=len(consts) + count)
    return out, [0] * len(out)


def _samples() -> list[SampleInput]:
    scalar, vector = ShapedArray((), "float64"), ShapedArray((3,), "float64")
    made = lambda f, *avals: stage(f, avals, name="f", parent=core.EVALUATE)[0]
    wide = lambda r: structural.broadcast_in_dim(r, shape=(3,), broadcast_dimensions=())
    scaled = made(lambda r, x: [elementwise.mul(wide(elementwise.sin(r)), x)], scalar, vector)
    summed = made(lambda x: [structural.reduce_sum(x, axes=(0,)), elementwise.neg(x)], vector)
    spread = made(lambda a, b: [elementwise.sub(wide(a), b)], scalar, vector)
    return [
        SampleInput((scalar, vector), {"fun": scaled, "transpose": scaled, "count": 1}),
        SampleInput((vector,), {"fun": summed, "transpose": spread, "count": 0}),
    ]


linear_call = Primitive(
    "linear_call",
    shape=_shape,
    ref=_ref,
    lower=_lower,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    samples=_samples,
    evaluate=lambda args, params: evaluate_alone(linear_call, "fun", args, params),
    multiple_results=True,
)
