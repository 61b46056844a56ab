"""Slices with steps, and padding between, around and inside; each is what the other's transpose is made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import BatchAxis, Primitive, SampleInput, UndefinedPrimal, aval_of
from functorch_like.errors import ShapeError
from functorch_like.primitives.base.lowering import Lowering
from functorch_like.primitives.base.shapes import broadcast_in_dim, full, insert, linear, reduce_sum, widen, zeros
from functorch_like.primitives.elementwise.comparison import select_n
from functorch_like.primitives.structural.pad_cpu import JOINED, emit_pad


# --------------------------------------------------------------------------------------------------------------- slice
def _slice_shape(x: ShapedArray, *, start_indices: Any, limit_indices: Any, strides: Any = None) -> ShapedArray:
    steps = strides or (1,) * x.ndim
    if not len(start_indices) == len(limit_indices) == len(steps) == x.ndim:
        raise ShapeError(
            f"slice of {x!r} with starts {start_indices}, limits {limit_indices}, strides {strides}",
            fix=f"give {x.ndim} of each",
        )
    for start, limit, step, n in zip(start_indices, limit_indices, steps, x.shape, strict=True):
        if not 0 <= start <= limit <= n or step < 1:
            raise ShapeError(
                f"{start}:{limit}:{step} is not a slice of a dimension of {n}",
                fix="0 <= start <= limit <= size, stride >= 1",
            )
    return x.update(shape=tuple(-(-(b - a) // s) for a, b, s in zip(start_indices, limit_indices, steps, strict=True)))


def _slice_ref(x: np.ndarray, *, start_indices: Any, limit_indices: Any, strides: Any = None) -> Any:
    steps = strides or (1,) * x.ndim
    return x[tuple(np.s_[a:b:s] for a, b, s in zip(start_indices, limit_indices, steps, strict=True))]


def _slice_lower(e: Any, x: Any, *, start_indices: Any, limit_indices: Any, strides: Any = None) -> Any:
    steps = strides or (1,) * len(start_indices)
    attrs = {"start_indices": e.i64s(start_indices), "limit_indices": e.i64s(limit_indices), "strides": e.i64s(steps)}
    return e.op("stablehlo.slice", [x], e.outs, attrs=attrs)


def _slice_transpose(ct: Any, x: ShapedArray, *, start_indices: Any, limit_indices: Any, strides: Any = None) -> Any:
    steps = strides or (1,) * x.ndim
    config = []
    for n, start, step, taken in zip(x.shape, start_indices, steps, aval_of(ct).shape, strict=True):
        end = start + (taken - 1) * step + 1 if taken else start
        config.append((start, n - end, step - 1))
    return pad(ct, full((), 0, x.dtype), padding_config=tuple(config))


def _slice_batch(
    axis: BatchAxis, x: Any, dim: int, *, start_indices: Any, limit_indices: Any, strides: Any = None
) -> tuple[Any, int]:
    start, limit = insert(start_indices, dim, 0), insert(limit_indices, dim, axis.size)
    return slice(x, start_indices=start, limit_indices=limit, strides=strides and insert(strides, dim, 1)), dim


slice = linear(
    "slice", shape=_slice_shape, ref=_slice_ref, lower=_slice_lower, transpose=_slice_transpose, batch=_slice_batch,
    kind="movement", fusible=True,
    samples=lambda: [
        SampleInput((ShapedArray(shape, dtype),), {"start_indices": start, "limit_indices": limit, "strides": strides})
        for shape, start, limit, strides, dtype in [
            ((), (), (), None, "float32"), ((5,), (1,), (4,), None, "float32"), ((5,), (0,), (5,), (2,), "float32"),
            ((2, 7, 4), (0, 1, 2), (2, 6, 4), (1, 3, 1), "float32"), ((6,), (1,), (6,), (4,), "int32"),
            ((3,), (2,), (2,), None, "float32"),
            ((0, 3), (0, 1), (0, 3), (1, 2), "float32"), ((4,), (1,), (3,), None, "bool"),
            ((4,), (1,), (3,), None, "complex64"),
        ]
    ],
)  # fmt: skip


# ----------------------------------------------------------------------------------------------------------------- pad
def _pad_shape(x: ShapedArray, value: ShapedArray, *, padding_config: Any) -> ShapedArray:
    if value.shape != () or value.dtype != x.dtype:
        raise ShapeError(f"{x!r} is padded with {value!r}", fix="give a scalar of the same dtype")
    if len(padding_config) != x.ndim:
        raise ShapeError(
            f"padding_config {padding_config} does not fit {x!r}", fix=f"give {x.ndim} triples (low, high, interior)"
        )
    sizes = []
    for n, (lo, hi, interior) in zip(x.shape, padding_config, strict=True):
        size = lo + hi + n + max(n - 1, 0) * interior
        if size < 0 or interior < 0:
            raise ShapeError(
                f"padding {(lo, hi, interior)} of a dimension of {n}",
                fix="interior >= 0, and the size left must be >= 0",
            )
        sizes.append(size)
    return x.update(shape=tuple(sizes), weak_type=x.weak_type and value.weak_type)


def _pad_ref(x: np.ndarray, value: np.ndarray, *, padding_config: Any) -> Any:
    for d, (lo, hi, interior) in enumerate(padding_config):
        n = x.shape[d]
        wide = n + max(n - 1, 0) * interior
        out = np.full((*x.shape[:d], max(lo, 0) + wide + max(hi, 0), *x.shape[d + 1 :]), value, x.dtype)
        at: list[Any] = [np.s_[:]] * x.ndim
        at[d] = np.s_[max(lo, 0) : max(lo, 0) + wide : interior + 1]
        out[tuple(at)] = x
        at[d] = np.s_[max(-lo, 0) : out.shape[d] - max(-hi, 0)]
        x = out[tuple(at)]
    return np.array(x)


def _pad_lower(e: Any, x: Any, value: Any, *, padding_config: Any) -> Any:
    return emit_pad(e, x, value, e.outs[0], padding_config)


def _pad_jvp(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
    t, u = (zeros(aval_of(p)) if t is None else t for p, t in zip(primals, tangents, strict=True))
    return pad(*primals, **params), pad(t, u, **params)


def _unpad(ct: Any, shape: tuple[int, ...], padding_config: Any) -> Any:
    """Return the part of a padded array that stems from the operand; elements that were cut away are zero."""
    dtype = aval_of(ct).dtype
    if any(lo or hi for lo, hi, _ in padding_config):
        ct = pad(ct, full((), 0, dtype), padding_config=tuple((-lo, -hi, 0) for lo, hi, _ in padding_config))
    if not any(interior for _, _, interior in padding_config):
        return ct
    steps = tuple(interior + 1 for _, _, interior in padding_config)
    return slice(ct, start_indices=(0,) * len(shape), limit_indices=aval_of(ct).shape, strides=steps)


def _pad_transpose(ct: Any, args: Any, *, padding_config: Any) -> list[Any]:
    x, value = args
    shape = x.aval.shape if isinstance(x, UndefinedPrimal) else aval_of(x).shape
    back: list[Any] = [None, None]
    if isinstance(x, UndefinedPrimal):
        back[0] = _unpad(ct, shape, padding_config)
    if isinstance(value, UndefinedPrimal):  # the sum over what is padding
        kept = pad(full(shape, False, dtypes.bool_), full((), True, dtypes.bool_), padding_config=padding_config)
        outside = select_n(kept, zeros(aval_of(ct)), ct)
        back[1] = reduce_sum(outside, axes=tuple(range(len(shape))))
    return back


def _pad_batch(axis: BatchAxis, args: Any, dims: Any, *, padding_config: Any) -> tuple[Any, int]:
    (x, value), (dim, many) = args, dims
    if dim is None:
        x, dim = widen(x, axis.size), 0
    config = insert(padding_config, dim, (0, 0, 0))
    if many is None:
        return pad(x, value, padding_config=config), dim
    shape = aval_of(x).shape
    out = pad(x, full((), 0, aval_of(x).dtype), padding_config=config)
    fill = broadcast_in_dim(value, shape=aval_of(out).shape, broadcast_dimensions=(dim,))
    padding = pad(full(shape, False, dtypes.bool_), full((), True, dtypes.bool_), padding_config=config)
    return select_n(padding, out, fill), dim


def _pad_samples() -> list[SampleInput]:
    return [
        SampleInput((ShapedArray(shape, dtype), ShapedArray((), dtype)), {"padding_config": config})
        for shape, config, dtype in [
            ((), (), "float32"), ((3,), ((1, 2, 0),), "float32"), ((3,), ((0, 0, 2),), "float32"),
            ((4,), ((-1, 1, 1),), "float32"),
            ((4,), ((-2, -1, 0),), "float32"), ((2, 3, 4), ((0, 1, 0), (1, 0, 1), (-1, -1, 2)), "float32"),
            ((0, 2), ((1, 1, 1), (0, 0, 0)), "float32"),
            ((3,), ((2, 0, 1),), "int32"), ((3,), ((1, 1, 0),), "bool"), ((3,), ((1, 1, 0),), "complex64"),
        ]
    ]  # fmt: skip


#: Padding of each dimension by (low, high, interior); negative low and high cut away.
pad = Primitive(
    "pad", shape=_pad_shape, ref=_pad_ref, lower=Lowering("pad", _pad_lower, JOINED), jvp=_pad_jvp,
    transpose=_pad_transpose, batch=_pad_batch, samples=_pad_samples,
    kind="movement", linear="jointly", fusible=True,
)  # fmt: skip
