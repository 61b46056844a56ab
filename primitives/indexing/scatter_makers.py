"""Scatters, which write windows of updates into an operand at places that are data: their rules and maker."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import Primitive, SampleInput
from functorch_like.errors import ArgumentError, DtypeError, ShapeError
from functorch_like.primitives import structural
from functorch_like.primitives.base.accumulating import accumulated
from functorch_like.primitives.base.elementwise_makers import words_for
from functorch_like.primitives.indexing.dimension_numbers import (
    MODES,
    ScatterDimensionNumbers,
    check_window,
    last_starts,
    plain_indices,
    starts_of,
)


def scatter_shape(
    name: str, accepts: Callable[[Any], bool], operand: ShapedArray, indices: ShapedArray, updates: ShapedArray, *,
    dimension_numbers: ScatterDimensionNumbers, mode: str = "fill", indices_are_sorted: bool = False,
    unique_indices: bool = False,
) -> ShapedArray:  # fmt: skip
    """The operand's shape, if everything fits."""
    n = dimension_numbers
    if mode not in (*MODES, "drop"):
        raise ArgumentError(
            f"mode={mode!r} is unknown", fix="use 'drop', 'fill' (the same), 'clip' or 'promise_in_bounds'"
        )
    if operand.dtype != updates.dtype:
        raise DtypeError(f"{name} cannot write {updates!r} into {operand!r}", fix="convert the updates with astype")
    if not accepts(operand.dtype):
        raise DtypeError(f"{name} takes {words_for(accepts)} operands, not {operand!r}", fix="convert it with astype")
    window = list(n.update_window_dims)
    if len(window) + len(n.inserted_window_dims) + len(n.operand_batching_dims) != operand.ndim or any(
        not 0 <= d < updates.ndim for d in window
    ):
        raise ShapeError(
            f"update_window_dims={n.update_window_dims} of {updates!r}, with inserted and batching dimensions "
            f"{(*n.inserted_window_dims, *n.operand_batching_dims)}, do not cover the dimensions of {operand!r}",
            fix="each dimension of the operand is a window dimension, inserted or batching",
        )
    check_window(
        name, operand, indices, n.scatter_dims_to_operand_dims, n.sizes(operand, updates), n.inserted_window_dims,
        n.operand_batching_dims, n.scatter_indices_batching_dims,
    )  # fmt: skip
    rest = tuple(s for d, s in enumerate(updates.shape) if d not in window)
    if rest != indices.shape[:-1]:
        raise ShapeError(
            f"the dimensions of updates {updates!r} outside windows have sizes {rest}, but those of indices "
            f"{indices!r} have {indices.shape[:-1]}",
            fix="give one window of updates for each index vector",
        )
    return operand.update(weak_type=operand.weak_type and updates.weak_type)


def scatter_ref(
    fold: Callable[..., Any], operand: Any, indices: Any, updates: Any, *, dimension_numbers: Any, mode: str = "fill",
    **_: Any,
) -> Any:  # fmt: skip
    """One window after the other, by `fold(old, update) -> new`. An empty operand stays as it is."""
    if not operand.size:
        return operand
    n = dimension_numbers
    sizes = n.sizes(*(ShapedArray(x.shape, x.dtype) for x in (operand, updates)))
    batch = [d for d in range(updates.ndim) if d not in n.update_window_dims]
    view, out = updates.transpose((*batch, *n.update_window_dims)), operand.astype(dtypes.accumulator(operand.dtype))
    top = [m - s for m, s in zip(operand.shape, sizes, strict=True)]
    for at, start in starts_of(indices, n[2], n[3], n[4], operand.ndim):
        if mode == "clip":
            start = [min(max(i, 0), t) for i, t in zip(start, top, strict=True)]
        if all(0 <= i <= t for i, t in zip(start, top, strict=True)):
            where = tuple(slice(i, i + s) for i, s in zip(start, sizes, strict=True))
            out[where] = fold(out[where], view[at].reshape(sizes))
    return out.astype(operand.dtype)


def scatter_lower(
    body: Callable[..., Any], e: Any, operand: Any, indices: Any, updates: Any, *,
    dimension_numbers: ScatterDimensionNumbers, mode: str = "fill", indices_are_sorted: bool = False,
    unique_indices: bool = False,
) -> Any:  # fmt: skip
    """`body(emitter, old, update, aval) -> new` emits the update of one element."""
    n = dimension_numbers
    (aval, at, written), (out,) = e.ins, e.outs
    if not out.size:
        return operand
    indices, at = plain_indices(e, indices, at)
    if mode == "clip" and n.scatter_dims_to_operand_dims:
        top = last_starts(aval.shape, n.sizes(aval, written), n.scatter_dims_to_operand_dims, at.dtype)
        top = e.broadcast_in_dim(e.constant(top), at, [at.ndim - 1])
        indices = e.op("stablehlo.clamp", [e.full(0, at), indices, top], [at])
    text = ", ".join(f"{name} = [{', '.join(map(str, dims))}]" for name, dims in n._asdict().items())
    text = text.replace("operand_batching_dims", "input_batching_dims")
    scalar = ShapedArray((), out.dtype)
    attrs = {
        "scatter_dimension_numbers": e.attr(f"#stablehlo.scatter<{text}, index_vector_dim = {at.ndim - 1}>"),
        "indices_are_sorted": e.flag(indices_are_sorted),
        "unique_indices": e.flag(unique_indices),
    }
    region = ([scalar, scalar], lambda inner, old, new: [body(inner, old, new, scalar)])
    return e.op("stablehlo.scatter", [operand, indices, updates], [out], attrs=attrs, regions=(region,))


def _accumulating(lower: Callable[..., Any]) -> Callable[..., Any]:
    """The lowering with narrow floats kept in float32, where several updates may go to one place."""
    wide = accumulated(lower)

    def chosen(e: Any, *operands: Any, dimension_numbers: ScatterDimensionNumbers, **params: Any) -> Any:
        batch = dimension_numbers.scatter_indices_batching_dims
        windows = math.prod(n for d, n in enumerate(e.ins[1].shape[:-1]) if d not in batch)
        form = lower if params.get("unique_indices", False) or windows <= 1 else wide
        return form(e, *operands, dimension_numbers=dimension_numbers, **params)

    return chosen


def scatter_batch(
    primitive: Callable[..., Any], axis: Any, args: Sequence[Any], dims: Sequence[Any], *,
    dimension_numbers: ScatterDimensionNumbers, **params: Any,
) -> Any:  # fmt: skip
    """The mapped axis becomes a batching dimension; or, where the indices are the same for all, a window dimension."""
    (operand, indices, updates), (od, xd, ud) = args, dims
    lead = lambda v, d: structural.widen(v, axis.size) if d is None else structural.move(v, d, 0)
    up = lambda ds: tuple(d + 1 for d in ds)
    operand, updates = lead(operand, od), lead(updates, ud)
    n = dimension_numbers._replace(
        inserted_window_dims=up(dimension_numbers.inserted_window_dims),
        scatter_dims_to_operand_dims=up(dimension_numbers.scatter_dims_to_operand_dims),
        operand_batching_dims=up(dimension_numbers.operand_batching_dims),
        update_window_dims=up(dimension_numbers.update_window_dims),
    )
    if xd is None:
        n = n._replace(update_window_dims=(0, *n.update_window_dims))
    else:
        indices = structural.move(indices, xd, 0)
        n = n._replace(
            operand_batching_dims=(0, *n.operand_batching_dims),
            scatter_indices_batching_dims=(0, *up(n.scatter_indices_batching_dims)),
        )
        params = params | {"indices_are_sorted": False}
    return primitive(operand, indices, updates, dimension_numbers=n, **params), 0


def scatter_primitive(
    name: str, fold: Callable[..., Any], kind: str, jvp: Any, transpose: Any, accepts: Callable[[Any], bool],
    *dtype_names: str, smooth: bool = True, linear: str | None = None,
) -> Primitive:  # fmt: skip
    """A primitive that writes windows of updates into an operand.

    Args:
        name: of the primitive.
        fold: `(old, update) -> new`, in NumPy.
        kind: the StableHLO operation that does the same; "" keeps the update.
        jvp: the derivative rule.
        transpose: the transposition rule.
        accepts: whether a dtype is taken.
        dtype_names: of the samples.
        smooth: as in `SampleInput`.
        linear: as in `core.Primitive`.
    """
    body = lambda e, old, new, aval: e.op(f"stablehlo.{kind}", [old, new], [aval]) if kind else new
    lower = functools.partial(scatter_lower, body)
    primitive = Primitive(
        name,
        shape=functools.partial(scatter_shape, name, accepts),
        ref=functools.partial(scatter_ref, fold),
        lower=_accumulating(lower) if kind in ("add", "multiply") else lower,
        jvp=jvp,
        transpose=transpose,
        batch=lambda axis, args, dims, **params: scatter_batch(primitive, axis, args, dims, **params),
        samples=lambda: scatter_samples(dtype_names, smooth),
        linear=linear,
    )
    return primitive


def scatter_samples(dtype_names: Sequence[str], smooth: bool) -> list[SampleInput]:
    """Samples of a scatter: points, windows, batching, repeated and outlying positions."""
    first, *others = dtype_names
    points, rows = ScatterDimensionNumbers((), (0,), (0,)), ScatterDimensionNumbers((1,), (0,), (0,))
    window = ScatterDimensionNumbers((1, 2), (), (1, 0))
    batched = ScatterDimensionNumbers((1,), (), (1,), (0,), (0,))
    int32 = lambda *v: np.array(v, np.int32)

    def one(shape: Any, indices: Any, updates: Any, n: Any, dtype: str = first, **params: Any) -> SampleInput:
        params = {
            "dimension_numbers": n,
            "mode": "drop",
            "indices_are_sorted": False,
            "unique_indices": False,
            **params,
        }
        return SampleInput((ShapedArray(shape, dtype), indices, ShapedArray(updates, dtype)), params, smooth=smooth)

    return [
        one((5,), int32([1], [3]), (2,), points, unique_indices=True),
        one((5,), int32([1]), (1,), points, indices_are_sorted=True),
        one((5,), int32([1], [3], [1], [7], [-1]), (5,), points),
        one((5,), int32([1], [3], [1], [7], [-1]), (5,), points, mode="clip"),
        one((4, 3), int32([[2], [0]], [[2], [1]]), (2, 3, 2), rows._replace(update_window_dims=(1,))),
        one((4, 3), int32([1, 2], [0, 0], [2, 9]), (3, 2, 2), window),
        one((4, 3), int32([1, 2], [0, 0], [2, 9]), (3, 2, 2), window, mode="clip"),
        one((2, 4), int32([1], [3]), (2, 2), batched),
        one((3,), np.zeros((0, 1), np.int32), (0,), points),
        one((0, 3), np.zeros((2, 1), np.int32), (2, 0), ScatterDimensionNumbers((1,), (1,), (1,))),
        one((3, 2), np.zeros((0,), np.int32), (3, 2), ScatterDimensionNumbers((0, 1), (), ())),
        *(one((5,), np.array([[1], [3], [200]], np.uint8), (3,), points, d) for d in others),
    ]
