"""reduce_window: windows sliding over an array, each folded by a computation of the user's, several operands together.

As for `reduce`, the computation must be associative and commutative, and the initial values neutral: padding, and the
holes that base_dilation puts between elements, hold them. (Sums and extremes have primitives of their own.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.compiler.lower import emit
from functorch_like.core import BatchAxis, NotDefined, Primitive, SampleInput, aval_of
from functorch_like.interpreters import forward
from functorch_like.ir.jaxpr import Jaxpr
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.base.elementwise_makers import align
from functorch_like.primitives.base.window_geometry import (
    batched_params,
    emit_reduce_window,
    padded,
    taps,
    window_attrs,
    window_params,
    windowed_shape,
)
from functorch_like.primitives.higher_order.call import call
from functorch_like.primitives.higher_order.user_reductions.common import check_fold, halves, pairwise, spread
from functorch_like.primitives.higher_order.user_reductions.samples import (
    LOW,
    ONE,
    REAL,
    ZERO,
    body,
    greatest_and_where,
)


def _shape(*avals: ShapedArray, jaxpr: Jaxpr, **params: Any) -> tuple[ShapedArray, ...]:
    operands = check_fold("reduce_window", avals, jaxpr)
    shape = windowed_shape(operands[0], params)
    return tuple(x.update(shape=shape, weak_type=False) for x in operands)


def _ref(*values: Any, jaxpr: Jaxpr, **params: Any) -> tuple[Any, ...]:
    operands, inits = halves(values)
    counts = windowed_shape(aval_of(operands[0]), params)
    lines = [padded(x, init, params) for x, init in zip(operands, inits, strict=True)]
    outs = [np.full(counts, init, x.dtype) for x, init in zip(operands, inits, strict=True)]
    for tap in taps(counts, params) if math.prod(counts) else ():
        for at in np.ndindex(*counts):
            pairs = [np.asarray(v[at]) for v in (*outs, *(line[tap] for line in lines))]
            for out, new in zip(outs, call.ref(*pairs, jaxpr=jaxpr, spec=None), strict=True):
                out[at] = new
    return tuple(outs)


def _lower(e: Any, *values: Any, jaxpr: Jaxpr, **params: Any) -> list[Any]:
    region = ([a.strong() for a in jaxpr.in_avals], lambda inner, *args: emit(inner, jaxpr, args, inlined=True))
    if len(values) == 2:
        return [emit_reduce_window(e, *values, params, region, e.ins[0], e.outs[0])]
    return list(e.op("stablehlo.reduce_window", values, e.outs, attrs=window_attrs(e, params), regions=(region,)))


def _batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Any], *, jaxpr: Jaxpr, **params: Any) -> Any:
    (operands, inits), (at, inits_at) = halves(args), halves(dims)
    if all(d is None for d in inits_at):
        operands, dim = align(axis, operands, at)
        outs = reduce_window(*operands, *inits, jaxpr=jaxpr, **batched_params(params, dim))
        return outs, [dim] * len(outs)
    operands = [
        structural.widen(x, axis.size) if d is None else structural.move(x, d, 0)
        for x, d in zip(operands, at, strict=True)
    ]
    starts = [structural.widen(i, axis.size) if d is None else i for i, d in zip(inits, inits_at, strict=True)]
    outs = _by_taps(operands, starts, jaxpr, batched_params(params, 0))
    return outs, [0] * len(outs)


def _by_taps(operands: Sequence[Any], starts: Sequence[Any], jaxpr: Jaxpr, params: dict[str, Any]) -> list[Any]:
    """Fold by elementwise primitives, which have derivatives: a slice of the operand for each window element."""
    counts = windowed_shape(aval_of(operands[0]), params)
    lines = [_filled(x, s, params) for x, s in zip(operands, starts, strict=True)]
    if not math.prod(counts):
        return [structural.full(counts, 0, aval_of(x).dtype) for x in operands]
    parts = []
    for line in lines:
        cut = [
            structural.slice(
                line, start_indices=tuple(s.start for s in tap), limit_indices=tuple(s.stop for s in tap),
                strides=tuple(s.step for s in tap),
            )
            for tap in taps(counts, params)
        ]  # fmt: skip
        parts.append(structural.concatenate(*[structural.reshape(x, shape=(1, *counts)) for x in cut], dimension=0))
    return pairwise(parts, starts, jaxpr)


def _filled(x: Any, start: Any, params: dict[str, Any]) -> Any:
    """The operand with initial values for padding and holes."""
    config = tuple((lo, hi, b - 1) for (lo, hi), b in zip(params["padding"], params["base_dilation"], strict=True))
    if not aval_of(start).ndim:
        return structural.pad(x, start, padding_config=config)
    line = structural.pad(x, structural.full((), 0, aval_of(x).dtype), padding_config=config)
    inside = structural.full(aval_of(x).shape, True, dtypes.bool_)
    inside = structural.pad(inside, structural.full((), False, dtypes.bool_), padding_config=config)
    return elementwise.select_n(inside, spread(start, aval_of(line).shape), line)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: Jaxpr, **params: Any) -> tuple[Any, Any]:
    """Differentiate the fold by slices; the computation is associative, so the result is the same."""
    return forward.jvp(lambda *values: _by_taps(*halves(values), jaxpr, params), primals, tangents)


def _samples() -> list[SampleInput]:
    product, where = body(lambda a, b: [elementwise.mul(a, b)], REAL), greatest_and_where()
    numbers = np.arange(20, dtype=np.int32).reshape(4, 5)
    of = lambda jaxpr, params, *operands: SampleInput(operands, params | {"jaxpr": jaxpr})
    return [
        of(product, window_params((2,), (1,)), ShapedArray((5,), "float32"), ONE),
        of(product, window_params((3,), (2,), ((1, 2),), (2,), (2,)), ShapedArray((4,), "float32"), ONE),
        of(where, window_params((2, 3), (1, 2)), ShapedArray((4, 5), "float32"), numbers, LOW, ZERO),
        of(product, window_params((3,), (1,)), ShapedArray((2,), "float32"), ONE),
        of(product, window_params((), ()), ShapedArray((), "float32"), ONE),
    ]


reduce_window = Primitive(
    "reduce_window",
    shape=_shape,
    ref=_ref,
    lower=_lower,
    jvp=_jvp,
    transpose=NotDefined("a fold by a user's computation is not linear; differentiate it with its jvp rule"),
    batch=_batch,
    samples=_samples,
    multiple_results=True,
)
