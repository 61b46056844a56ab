"""Windows sliding over an array: the sum, the greatest or the least element of each.

Padding counts as the identity of the reduction, as do the holes that base_dilation puts between elements. Where
elements of a window tie for the extreme, the first has the derivative.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import BatchAxis, NotDefined, Primitive, SampleInput, aval_of
from functorch_like.errors import DtypeError
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.base.accumulating import accumulated
from functorch_like.primitives.base.elementwise_makers import words_for
from functorch_like.primitives.base.lowering import Alternative, Lowering
from functorch_like.primitives.base.window_geometry import (
    CLOSE,
    FEW,
    NAMES,
    along_dimensions,
    batched_params,
    dilated,
    disjoint,
    emit_reduce_window,
    padded,
    separable,
    side_by_side,
    split_windows,
    taps,
    window_edges,
    window_params,
    window_samples,
    windowed_shape,
)
from functorch_like.primitives.elementwise.extremes_cpu import may_skip_nan
from functorch_like.primitives.reductions.extremes_cpu import extreme
from functorch_like.primitives.reductions.makers import highest, lowest
from functorch_like.primitives.windows.select_and_scatter import select_and_gather_add

#: The number of elements of overlapping windows from which on the fold along one dimension is written to memory.
#: Otherwise XLA would compute it again for each window along the next dimension.
MANY = 16


def _window_primitive(
    name: str, kind: str, fold: Any, identity: Callable[[Any], Any], takes: Callable[[Any], bool],
    jvp: Any, transpose: Any, *dtype_names: str, linear: str | None = None,
) -> Primitive:  # fmt: skip
    """A primitive that reduces windows: `kind` is the StableHLO operation that folds two elements, `fold` NumPy's."""

    def shape(x: ShapedArray, **params: Any) -> ShapedArray:
        if not takes(x.dtype):
            raise DtypeError(f"{name} takes {words_for(takes)} operands, not {x!r}", fix="convert it with astype")
        return x.update(shape=windowed_shape(x, params))

    def ref(x: Any, **params: Any) -> Any:
        counts = windowed_shape(ShapedArray(x.shape, x.dtype), params)
        wide = x.astype(np.float32) if x.dtype.itemsize < 4 and dtypes.is_inexact(x.dtype) else x
        line = padded(wide, identity(x.dtype), params)
        out = np.full(counts, identity(x.dtype), wide.dtype)
        if out.size:
            for tap in taps(counts, params):
                out = fold(out, line[tap])
        return np.asarray(out).astype(x.dtype)

    def lower(e: Any, x: Any, **params: Any) -> Any:
        (out,) = e.outs
        if kind != "add" and may_skip_nan(e, e.ins[0]) and side_by_side(params, out):
            x, aval = split_windows(e, x, e.ins[0], params, out)
            return extreme(e, kind, x, aval, tuple(range(1, aval.ndim, 2)), out, identity)
        scalar = ShapedArray((), out.dtype)
        region = ([scalar, scalar], lambda inner, a, b: [inner.op(f"stablehlo.{kind}", [a, b], [scalar])])
        return emit_reduce_window(e, x, e.constant(identity(out.dtype)), params, region, e.ins[0], out)

    def fold_slices(e: Any, x: Any, **params: Any) -> Any:
        if e.partitioning is not None and not disjoint(params):
            return lower(e, x, **params)  # XLA exchanges what windows on two devices share
        apart = disjoint(params) or math.prod(params["window_dimensions"]) < MANY
        for along in along_dimensions(e.ins[0], params):
            fold = lambda a, b, out=along.out: e.op(f"stablehlo.{kind}", [a, b], [out])
            x = x if apart or along.aval is e.ins[0] else e.materialized(x, along.aval)
            x = functools.reduce(fold, along.line(e, x, identity(along.aval.dtype)))
        return x

    def batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
        return primitive(args[0], **batched_params(params, dims[0])), dims[0]

    def edges() -> list[tuple[SampleInput, bool]]:
        return [(SampleInput((ShapedArray(s, dtype_names[0]),), p), taken) for s, p, taken in window_edges()]

    def samples() -> list[SampleInput]:
        f32, *others = dtype_names
        return [
            *(SampleInput((ShapedArray(s, f32),), p) for s, p in window_samples()),
            *(SampleInput((ShapedArray((5,), d),), window_params((2,), (1,), ((1, 0),))) for d in others),
        ]

    kept = accumulated if kind == "add" else lambda form: form
    # docs/lowerings.md: ten times faster.
    sliced = Alternative(
        "fold slices, one dimension after the other",
        f"windows of at most {FEW} elements, at most {CLOSE} apart, along each dimension",
        lambda ins, outs, **params: outs[0].size > 0 and separable(ins[0], params), kept(fold_slices), edges,
    )  # fmt: skip
    primitive = Primitive(
        name, shape=shape, ref=ref, lower=Lowering(name, kept(lower), sliced), jvp=jvp, transpose=transpose,
        batch=batch, samples=samples, linear=linear,
    )  # fmt: skip
    return primitive


# ------------------------------------------------------------------------------------------------------------- sums
def _sum_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    return reduce_window_sum(*primals, **params), reduce_window_sum(*tangents, **params)


def _sum_transpose(ct: Any, args: Sequence[Any], **params: Any) -> list[Any]:
    """Windows over ct with strides as holes: element i of the operand is in all windows that reach i*base + lo."""
    aval = args[0].aval
    if not aval_of(ct).size or not aval.size:
        return [structural.zeros(aval)]
    if disjoint(params):
        return [_repeated(ct, aval, params["window_dimensions"])]
    config = []
    for n, o, w, s, (lo, _), b, h in zip(
        aval.shape, aval_of(ct).shape, *(params[name] for name in NAMES), strict=True
    ):  # fmt: skip
        low = (w - 1) * h - lo
        config.append((low, dilated(n, b) + (w - 1) * h - low - dilated(o, s), s - 1))
    spread = structural.pad(ct, structural.full((), 0, aval.dtype), padding_config=tuple(config))
    ones = (1,) * aval.ndim
    back = window_params(params["window_dimensions"], params["base_dilation"], None, ones, params["window_dilation"])
    return [reduce_window_sum(spread, **back)]


def _repeated(ct: Any, aval: ShapedArray, window: Sequence[int]) -> Any:
    """Windows side by side: each element of ct fills a window. (docs/lowerings.md: six times faster.)"""
    shape = aval_of(ct).shape
    apart = tuple(m for n, w in zip(shape, window, strict=True) for m in (n, w))
    filled = structural.broadcast_in_dim(ct, shape=apart, broadcast_dimensions=tuple(range(0, 2 * aval.ndim, 2)))
    filled = structural.reshape(filled, shape=tuple(n * w for n, w in zip(shape, window, strict=True)))
    rest = tuple((0, n - m, 0) for n, m in zip(aval.shape, aval_of(filled).shape, strict=True))
    return structural.pad(filled, structural.full((), 0, aval.dtype), padding_config=rest)


reduce_window_sum = _window_primitive(
    "reduce_window_sum", "add", np.add, lambda dtype: np.zeros((), dtype), lambda dtype: dtype != dtypes.bool_,
    _sum_jvp, _sum_transpose, "float32", "int32", "complex64", "bfloat16", linear="jointly",
)  # fmt: skip


# ---------------------------------------------------------------------------------------------------------- extremes
def _extreme_jvp(primitive: Callable[[], Primitive], select: str, fill: Callable[[Any], Any]) -> Any:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        (x,), (dx,) = primals, tangents
        if set(params["base_dilation"]) <= {1} and set(params["window_dilation"]) <= {1}:
            kept = {name: params[name] for name in NAMES[:3]}
            return primitive()(x, **params), select_and_gather_add(dx, x, select=select, **kept)
        x = structural.materialize(x)
        out = primitive()(x, **params)
        return out, _by_taps(dx, x, out, fill(aval_of(x).dtype), params)

    return jvp


def _by_taps(dx: Any, x: Any, out: Any, fill: Any, params: dict[str, Any]) -> Any:
    """The tangent at the first element of each window that attains the extreme, one element of windows at a time."""
    config = tuple((lo, hi, b - 1) for (lo, hi), b in zip(params["padding"], params["base_dilation"], strict=True))
    dtype, shape = aval_of(x).dtype, aval_of(out).shape
    x, dx = (
        structural.pad(x, fill, padding_config=config),
        structural.pad(dx, structural.full((), 0, dtype), padding_config=config),
    )
    total, open_ = structural.full(shape, 0, dtype), structural.full(shape, True, dtypes.bool_)
    for tap in taps(shape, params):
        take = lambda v, tap=tap: structural.slice(
            v, start_indices=tuple(s.start for s in tap), limit_indices=tuple(s.stop for s in tap),
            strides=tuple(s.step for s in tap),
        )  # fmt: skip
        here = elementwise.and_(open_, elementwise.eq(take(x), out))
        total = elementwise.add(total, elementwise.select_n(here, structural.full(shape, 0, dtype), take(dx)))
        open_ = elementwise.and_(open_, elementwise.not_(here))
    return total


_real = lambda dtype: not dtypes.is_complex(dtype)
_no = NotDefined("the extreme of a window is not linear in its elements; differentiate it with its jvp rule")
reduce_window_max = _window_primitive(
    "reduce_window_max", "maximum", np.maximum, lowest, _real,
    _extreme_jvp(lambda: reduce_window_max, "ge", lowest), _no, "float32", "int32", "bfloat16",
)  # fmt: skip
reduce_window_min = _window_primitive(
    "reduce_window_min", "minimum", np.minimum, highest, _real,
    _extreme_jvp(lambda: reduce_window_min, "le", highest), _no, "float32", "int32", "bfloat16",
)  # fmt: skip
