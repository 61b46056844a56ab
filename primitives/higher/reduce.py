"""reduce: dimensions folded by a computation of the user's, on several operands together.

Like every fold of XLA's, it may combine elements in any order and use the initial values any number of times: the
computation must be associative and commutative, and the initial values neutral. (Sums, products, extremes and the like
have rows of their own, with derivatives.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import core
from functorch_like.avals import ShapedArray
from functorch_like.core import Axis, No, Primitive, Sample, aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.interpreters import batching
from functorch_like.interpreters.jaxpr import Jaxpr, evaluate
from functorch_like.interpreters.lower import emit
from functorch_like.interpreters.stage import stage
from functorch_like.primitives import elementwise as E
from functorch_like.primitives import structure as S
from functorch_like.primitives.folding import without
from functorch_like.primitives.higher.call import call
from functorch_like.primitives.shapes import check_axes, reduced_axes


def _halves(values: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    """Operands, and initial values."""
    n = len(values) // 2
    return values[:n], values[n:]


def _shape(*avals: ShapedArray, jaxpr: Jaxpr, dimensions: tuple[int, ...]) -> tuple[ShapedArray, ...]:
    operands, inits = _halves(avals)
    if not operands or len(operands) != len(inits):
        raise ArgumentError(f"reduce was given {len(avals)} operands", fix="give an initial value for each operand")
    check_axes(dimensions, operands[0].ndim)
    for x, init in zip(operands, inits, strict=True):
        if x.shape != operands[0].shape:
            raise ShapeError(
                f"{operands[0]!r} and {x!r} are reduced together but differ in shape", fix="broadcast them"
            )
        if init.shape or init.dtype != x.dtype:
            raise ShapeError(f"{init!r} is no initial value for {x!r}", fix="give a scalar of the operand's dtype")
    scalars = [ShapedArray((), x.dtype) for x in operands]
    if [a.strong() for a in jaxpr.in_avals] != scalars * 2 or [a.strong() for a in jaxpr.out_avals] != scalars:
        raise ArgumentError(
            f"the computation takes {jaxpr.in_avals} and gives {jaxpr.out_avals}; the operands' scalars are {scalars}",
            fix="it must take two scalars for each operand and give one, of the operand's dtype",
        )
    return tuple(x.update(shape=without(x.shape, dimensions), weak_type=False) for x in operands)


def _ref(*values: Any, jaxpr: Jaxpr, dimensions: tuple[int, ...]) -> tuple[Any, ...]:
    operands, inits = _halves(values)
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
    region = ([a.strong() for a in jaxpr.in_avals], lambda inner, *args: emit(inner, jaxpr, args))
    out = e.op("stablehlo.reduce", values, e.outs, attrs={"dimensions": e.i64s(dimensions)}, regions=(region,))
    return [out] if len(values) == 2 else list(out)


def _batch(axis: Axis, args: Sequence[Any], dims: Sequence[Any], *, jaxpr: Jaxpr, dimensions: tuple[int, ...]) -> Any:
    (operands, inits), (at, inits_at) = _halves(args), _halves(dims)
    moved = [S.widen(x, axis.size) if d is None else S.move(x, d, 0) for x, d in zip(operands, at, strict=True)]
    axes, out = reduced_axes(dimensions, 0)
    if all(d is None for d in inits_at):
        return reduce(*moved, *inits, jaxpr=jaxpr, dimensions=axes), [out] * len(moved)
    starts = [S.widen(i, axis.size) if d is None else i for i, d in zip(inits, inits_at, strict=True)]
    return _pairwise(moved, starts, jaxpr, axes), [out] * len(moved)


def _pairwise(operands: Sequence[Any], starts: Sequence[Any], jaxpr: Jaxpr, axes: tuple[int, ...]) -> list[Any]:
    """Where initial values differ along the first dimension: halves are combined elementwise, until one is left."""
    whole = aval_of(operands[0]).shape
    kept = [d for d in range(len(whole)) if d not in axes]
    shape = tuple(whole[d] for d in kept)
    n = math.prod(whole[d] for d in axes)
    xs = [S.reshape(S.transpose(x, permutation=(*axes, *kept)), shape=(n, math.prod(shape))) for x in operands]
    rows = lambda x, start, end: S.slice(
        x, start_indices=(start, 0), limit_indices=(end, math.prod(shape)), strides=None
    )
    while n > 1:
        half = n // 2
        met = _elementwise(jaxpr, [rows(x, 0, half) for x in xs], [rows(x, half, 2 * half) for x in xs])
        xs = [S.concatenate(m, rows(x, 2 * half, n), dimension=0) for m, x in zip(met, xs, strict=True)]
        n -= half
    spread = [S.broadcast_in_dim(s, shape=shape, broadcast_dimensions=(0,)) for s in starts]
    if not n:
        return spread
    return [S.reshape(x, shape=shape) for x in _elementwise(jaxpr, spread, [S.reshape(x, shape=shape) for x in xs])]


def _elementwise(jaxpr: Jaxpr, left: Sequence[Any], right: Sequence[Any]) -> list[Any]:
    shape = aval_of(left[0]).shape
    flat = [S.reshape(x, shape=(math.prod(shape),)) for x in (*left, *right)]
    outs, dims = batching.batch(
        lambda *xs: evaluate(jaxpr, xs), Axis(math.prod(shape)), flat, [0] * len(flat), "reduce"
    )
    widened = [S.widen(o, math.prod(shape)) if d is None else o for o, d in zip(outs, dims, strict=True)]
    return [S.reshape(o, shape=shape) for o in widened]


def _samples() -> list[Sample]:
    real, integer = ShapedArray((), "float32"), ShapedArray((), "int32")
    body = lambda fun, *avals: stage(fun, avals * 2, name="body", parent=core.EVALUATE)[0]
    greatest = body(lambda a, b: [E.max(a, b)], real)

    def first(x: Any, i: Any, y: Any, j: Any) -> list[Any]:
        """The greater, and its position."""
        wins = E.gt(y, x)
        return [E.select_n(wins, x, y), E.select_n(wins, i, j)]

    where = body(first, real, integer)
    mixed = body(lambda a, b: [E.xor(a, b)], integer)
    low, zero = np.array(-np.inf, np.float32), np.array(0, np.int32)
    one = lambda jaxpr, dimensions, *operands: Sample(
        operands, {"jaxpr": jaxpr, "dimensions": dimensions}, smooth=False
    )
    return [
        one(greatest, (0,), ShapedArray((5,), "float32"), low),
        one(greatest, (0, 2), ShapedArray((2, 3, 4), "float32"), low),
        one(greatest, (), ShapedArray((2, 3), "float32"), low),
        one(greatest, (0,), ShapedArray((0, 3), "float32"), low),
        one(greatest, (), ShapedArray((), "float32"), low),
        one(where, (1,), ShapedArray((2, 3), "float32"), ShapedArray((2, 3), "int32"), low, zero),
        one(mixed, (0,), ShapedArray((3, 2), "int32"), zero),
    ]


_NO = No(
    "the derivative of a reduction with a computation of one's own is not known; reduce by lax.add, lax.mul, lax.max "
    "or lax.min, or combine halves of the array with slices"
)
reduce = Primitive(
    "reduce",
    shape=_shape,
    ref=_ref,
    lower=_lower,
    jvp=_NO,
    transpose=_NO,
    batch=_batch,
    samples=_samples,
    multiple=True,
)
