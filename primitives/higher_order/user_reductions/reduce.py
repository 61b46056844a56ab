"""reduce: dimensions folded by a computation of the user's, on several operands together.

Like every fold of XLA's, it may combine elements in any order and use the initial values any number of times: the
computation must be associative and commutative, and the initial values neutral. (Sums, products, extremes and the like
have primitives of their own, with faster derivatives.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like.avals import ShapedArray
from functorch_like.compiler.lower import emit
from functorch_like.core import BatchAxis, NotDefined, Primitive, SampleInput, aval_of
from functorch_like.interpreters import forward
from functorch_like.ir.jaxpr import Jaxpr
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.base.shapes import check_axes, reduced_axes
from functorch_like.primitives.higher_order.call import call
from functorch_like.primitives.higher_order.user_reductions.common import check_fold, halves, pairwise
from functorch_like.primitives.higher_order.user_reductions.samples import (
    INTEGER,
    LOW,
    REAL,
    ZERO,
    body,
    greatest_and_where,
)
from functorch_like.primitives.reductions.makers import without


def _shape(*avals: ShapedArray, jaxpr: Jaxpr, dimensions: tuple[int, ...]) -> tuple[ShapedArray, ...]:
    operands = check_fold("reduce", avals, jaxpr)
    check_axes(dimensions, operands[0].ndim)
    return tuple(x.update(shape=without(x.shape, dimensions), weak_type=False) for x in operands)


def _ref(*values: Any, jaxpr: Jaxpr, dimensions: tuple[int, ...]) -> tuple[Any, ...]:
    operands, inits = halves(values)
    kept = [d for d in range(operands[0].ndim) if d not in dimensions]
    shape = [operands[0].shape[d] for d in kept]
    count = math.prod(operands[0].shape[d] for d in dimensions)
    flat = [x.transpose((*kept, *dimensions)).reshape((*shape, count)) for x in operands]
    outs = [np.empty(shape, x.dtype) for x in operands]
    for at in np.ndindex(*shape):
        so_far = list(inits)
        for k in range(count):
            so_far = list(call.ref(*so_far, *(np.asarray(x[at][k]) for x in flat), jaxpr=jaxpr, spec=None))
        for out, x in zip(outs, so_far, strict=True):
            out[at] = x
    return tuple(outs)


def _lower(e: Any, *values: Any, jaxpr: Jaxpr, dimensions: tuple[int, ...]) -> list[Any]:
    region = ([a.strong() for a in jaxpr.in_avals], lambda inner, *args: emit(inner, jaxpr, args, inlined=True))
    operands, inits = halves(values)
    values = (*(e.unsplit(x, dimensions) for x in operands), *inits)
    out = e.op("stablehlo.reduce", values, e.outs, attrs={"dimensions": e.i64s(dimensions)}, regions=(region,))
    return [out] if len(values) == 2 else list(out)


def _batch(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[Any], *, jaxpr: Jaxpr, dimensions: tuple[int, ...]
) -> Any:
    (operands, inits), (at, inits_at) = halves(args), halves(dims)
    moved = [
        structural.widen(x, axis.size) if d is None else structural.move(x, d, 0)
        for x, d in zip(operands, at, strict=True)
    ]
    axes, out = reduced_axes(dimensions, 0)
    if all(d is None for d in inits_at):
        return reduce(*moved, *inits, jaxpr=jaxpr, dimensions=axes), [out] * len(moved)
    starts = [structural.widen(i, axis.size) if d is None else i for i, d in zip(inits, inits_at, strict=True)]
    return _in_halves(moved, starts, jaxpr, axes), [out] * len(moved)


def _in_halves(operands: Sequence[Any], starts: Sequence[Any], jaxpr: Jaxpr, axes: tuple[int, ...]) -> list[Any]:
    """Fold by elementwise primitives, which have derivatives; initial values may differ along dimension 0."""
    whole = aval_of(operands[0]).shape
    kept = [d for d in range(len(whole)) if d not in axes]
    n, shape = math.prod(whole[d] for d in axes), tuple(whole[d] for d in kept)
    folded = lambda x: structural.reshape(structural.transpose(x, permutation=(*axes, *kept)), shape=(n, *shape))
    return pairwise([folded(x) for x in operands], starts, jaxpr)


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: Jaxpr, dimensions: tuple[int, ...]
) -> tuple[Any, Any]:
    """Differentiate the fold in halves; the computation is associative, so the result is the same."""
    fold = lambda *values: _in_halves(*halves(values), jaxpr, dimensions)
    return forward.jvp(fold, primals, tangents)


def _samples() -> list[SampleInput]:
    greatest, where = body(lambda a, b: [elementwise.max(a, b)], REAL), greatest_and_where()
    mixed = body(lambda a, b: [elementwise.xor(a, b)], INTEGER)
    one = lambda jaxpr, dimensions, *operands, smooth=True: SampleInput(
        operands, {"jaxpr": jaxpr, "dimensions": dimensions}, smooth=smooth
    )
    return [
        one(greatest, (0,), ShapedArray((5,), "float32"), LOW),
        one(greatest, (0, 2), ShapedArray((2, 3, 4), "float32"), LOW),
        one(greatest, (), ShapedArray((2, 3), "float32"), LOW),
        one(greatest, (0,), ShapedArray((0, 3), "float32"), LOW, smooth=False),
        one(greatest, (), ShapedArray((), "float32"), LOW),
        one(where, (1,), ShapedArray((2, 3), "float32"), ShapedArray((2, 3), "int32"), LOW, ZERO),
        one(mixed, (0,), ShapedArray((3, 2), "int32"), ZERO),
    ]


reduce = Primitive(
    "reduce",
    shape=_shape,
    ref=_ref,
    lower=_lower,
    jvp=_jvp,
    transpose=NotDefined("a fold by a user's computation is not linear; differentiate it with its jvp rule"),
    batch=_batch,
    samples=_samples,
    multiple_results=True,
)
