"""Shared parts of reductions by a user's computation: its check, its elementwise form, folding step by step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from functorch_like.avals import ShapedArray
from functorch_like.core import BatchAxis, aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.interpreters import batching
from functorch_like.ir.jaxpr import Jaxpr, evaluate
from functorch_like.primitives import structural


def halves(values: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    """Operands, and initial values."""
    n = len(values) // 2
    return values[:n], values[n:]


def check_fold(name: str, avals: Sequence[ShapedArray], jaxpr: Jaxpr) -> Sequence[ShapedArray]:
    """The operands, if they have one shape, an initial value each, and a computation of their scalars."""
    operands, inits = halves(avals)
    if not operands or len(operands) != len(inits):
        raise ArgumentError(
            f"{name} takes operands and an initial value for each, got {len(avals)} arrays",
            fix="give one for each operand",
        )
    for x, init in zip(operands, inits, strict=True):
        if x.shape != operands[0].shape:
            raise ShapeError(
                f"{operands[0]!r} and {x!r} are reduced together but differ in shape", fix="broadcast them"
            )
        if init.shape or init.dtype != x.dtype:
            raise ShapeError(f"{init!r} is not an initial value for {x!r}", fix="give a scalar of the operand's dtype")
    scalars = [ShapedArray((), x.dtype) for x in operands]
    if [a.strong() for a in jaxpr.in_avals] != scalars * 2 or [a.strong() for a in jaxpr.out_avals] != scalars:
        raise ArgumentError(
            f"the computation takes {jaxpr.in_avals} and gives {jaxpr.out_avals}; the operands' scalars are {scalars}",
            fix="it must take two scalars for each operand and give one, of the operand's dtype",
        )
    return operands


def apply_elementwise(jaxpr: Jaxpr, left: Sequence[Any], right: Sequence[Any]) -> list[Any]:
    """The computation on arrays of one shape."""
    shape = aval_of(left[0]).shape
    flat = [structural.reshape(x, shape=(math.prod(shape),)) for x in (*left, *right)]
    outs, dims = batching.batch(
        lambda *xs: evaluate(jaxpr, xs), BatchAxis(math.prod(shape)), flat, [0] * len(flat), "reduce"
    )
    widened = [structural.widen(o, math.prod(shape)) if d is None else o for o, d in zip(outs, dims, strict=True)]
    return [structural.reshape(o, shape=shape) for o in widened]


def spread(start: Any, shape: tuple[int, ...]) -> Any:
    """An initial value everywhere; one for each element of the first dimensions, if it has some itself."""
    return structural.broadcast_in_dim(start, shape=shape, broadcast_dimensions=tuple(range(aval_of(start).ndim)))


def pairwise(parts: Sequence[Any], starts: Sequence[Any], jaxpr: Jaxpr) -> list[Any]:
    """The first dimension folded: halves are combined elementwise until one is left; then with the initial values."""
    n, *rest = aval_of(parts[0]).shape
    zeros, shape = (0,) * len(rest), tuple(rest)
    rows = lambda x, start, end: structural.slice(
        x, start_indices=(start, *zeros), limit_indices=(end, *shape), strides=None
    )
    xs = list(parts)
    while n > 1:
        half = n // 2
        met = apply_elementwise(jaxpr, [rows(x, 0, half) for x in xs], [rows(x, half, 2 * half) for x in xs])
        xs = [structural.concatenate(m, rows(x, 2 * half, n), dimension=0) for m, x in zip(met, xs, strict=True)]
        n -= half
    begin = [spread(s, shape) for s in starts]
    return apply_elementwise(jaxpr, begin, [structural.reshape(x, shape=shape) for x in xs]) if n else begin
