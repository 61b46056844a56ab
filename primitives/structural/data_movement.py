"""Primitives that move data: joining, reversing, counting; and those of base/shapes.py and pad_and_slice.py."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import BatchAxis, NotDefined, Primitive, SampleInput, UndefinedPrimal, aval_of
from functorch_like.errors import DtypeError, ShapeError
from functorch_like.primitives.base.elementwise_makers import KIND, align
from functorch_like.primitives.base.shapes import check_axes, check_sizes, linear, zeros
from functorch_like.primitives.structural.pad_and_slice import slice


# --------------------------------------------------------------------------------------------------------- concatenate
def _concatenate_shape(*xs: ShapedArray, dimension: int) -> ShapedArray:
    if not xs:
        raise ShapeError("concatenate of nothing", fix="give at least one array")
    first = xs[0]
    check_axes((dimension,), first.ndim)
    for x in xs:
        if x.dtype != first.dtype:
            raise DtypeError(f"{first!r} and {x!r} differ in dtype", fix="convert one of them with astype")
        if (
            x.shape[:dimension] != first.shape[:dimension]
            or x.shape[dimension + 1 :] != first.shape[dimension + 1 :]
            or x.ndim != first.ndim
        ):
            raise ShapeError(
                f"{first!r} and {x!r} differ elsewhere than in dimension {dimension}", fix="make all other sizes equal"
            )
    size = sum(x.shape[dimension] for x in xs)
    shape = (*first.shape[:dimension], size, *first.shape[dimension + 1 :])
    return first.update(shape=shape, weak_type=all(x.weak_type for x in xs))


def _concatenate_jvp(primals: Any, tangents: Any, *, dimension: int) -> tuple[Any, Any]:
    filled = [zeros(aval_of(p)) if t is None else t for p, t in zip(primals, tangents, strict=True)]
    return concatenate(*primals, dimension=dimension), concatenate(*filled, dimension=dimension)


def _concatenate_transpose(ct: Any, args: Any, *, dimension: int) -> list[Any]:
    shape = aval_of(ct).shape
    ends = list(itertools.accumulate((aval_of(a).shape[dimension] for a in args), initial=0))
    back: list[Any] = []
    for a, start, limit in zip(args, ends, ends[1:], strict=False):
        if not isinstance(a, UndefinedPrimal):
            back.append(None)
            continue
        starts = tuple(start if d == dimension else 0 for d in range(len(shape)))
        limits = tuple(limit if d == dimension else n for d, n in enumerate(shape))
        back.append(slice(ct, start_indices=starts, limit_indices=limits, strides=None))
    return back


def _concatenate_batch(axis: BatchAxis, args: Any, dims: Any, *, dimension: int) -> tuple[Any, int]:
    moved, at = align(axis, args, dims)
    return concatenate(*moved, dimension=dimension + (dimension >= at)), at


concatenate = Primitive(
    "concatenate",
    shape=_concatenate_shape,
    ref=lambda *xs, dimension: np.concatenate(xs, axis=dimension),
    lower=lambda e, *xs, dimension: e.op("stablehlo.concatenate", xs, e.outs, attrs={"dimension": e.i64(dimension)}),
    jvp=_concatenate_jvp,
    transpose=_concatenate_transpose,
    batch=_concatenate_batch,
    samples=lambda: [
        SampleInput(tuple(ShapedArray(s, dtype) for s in shapes), {"dimension": dimension})
        for shapes, dimension, dtype in [
            (((3,),), 0, "float32"), (((3,), (2,)), 0, "float32"), (((2, 1, 4), (2, 3, 4), (2, 0, 4)), 1, "float32"),
            (((0, 2), (0, 1)), 1, "float32"), (((2, 2), (2, 1)), 1, "int32"), (((2,), (1,)), 0, "bool"),
            (((2,), (1,)), 0, "complex64"),
        ]
    ],
    kind="movement", linear="jointly", fusible=True,
)  # fmt: skip


# ----------------------------------------------------------------------------------------------------------- rev, iota
def _rev_shape(x: ShapedArray, *, dimensions: tuple[int, ...]) -> ShapedArray:
    check_axes(dimensions, x.ndim)
    return x


def _rev_batch(axis: BatchAxis, x: Any, dim: int, *, dimensions: tuple[int, ...]) -> tuple[Any, int]:
    return rev(x, dimensions=tuple(d + (d >= dim) for d in dimensions)), dim


rev = linear(
    "rev",
    shape=_rev_shape,
    ref=lambda x, *, dimensions: np.flip(x, dimensions),
    lower=lambda e, x, *, dimensions: e.op("stablehlo.reverse", [x], e.outs, attrs={"dimensions": e.i64s(dimensions)}),
    transpose=lambda ct, x, *, dimensions: rev(ct, dimensions=dimensions),
    batch=_rev_batch,
    kind="movement", fusible=True,
    samples=lambda: [
        SampleInput((ShapedArray(shape, dtype),), {"dimensions": dims})
        for shape, dims, dtype in [
            ((), (), "float32"), ((3,), (0,), "float32"), ((2, 3, 4), (2, 0), "float32"), ((0, 2), (1,), "float32"),
            ((3,), (0,), "int32"),
        ]
    ],
)  # fmt: skip


def _iota_shape(*, dtype: np.dtype[Any], shape: tuple[int, ...], dimension: int) -> ShapedArray:
    check_sizes(shape)
    check_axes((dimension,), len(shape))
    if KIND[np.dtype(dtype)] == "b":
        raise DtypeError("iota counts, and a bool cannot", fix="count in an integer dtype and compare")
    return ShapedArray(shape, dtype)


def _iota_ref(*, dtype: np.dtype[Any], shape: tuple[int, ...], dimension: int) -> Any:
    inner = tuple(n if d == dimension else 1 for d, n in enumerate(shape))
    return np.broadcast_to(np.arange(shape[dimension]).astype(dtype).reshape(inner), shape).copy()


#: 0, 1, 2, ... along one dimension.
iota = Primitive(
    "iota",
    shape=_iota_shape,
    ref=_iota_ref,
    lower=lambda e, *, dimension, **_: e.op("stablehlo.iota", [], e.outs, attrs={"iota_dimension": e.i64(dimension)}),
    jvp=NotDefined("iota has no operands that could have tangents; none is needed"),
    transpose=NotDefined("iota has no operands that could have cotangents; none is needed"),
    batch=NotDefined("iota has no operands that could be mapped; none is needed"),
    samples=lambda: [
        SampleInput((), {"dtype": np.dtype(dtype), "shape": shape, "dimension": dimension})
        for shape, dimension, dtype in [
            ((5,), 0, "int32"), ((2, 3, 4), 1, "float32"), ((0, 2), 1, "int32"), ((3,), 0, "uint8"),
            ((3,), 0, "complex64"),
            ((3,), 0, dtypes.bfloat16), ((3,), 0, "int64"),
        ]
    ],
    kind="movement", fusible=True,
)  # fmt: skip


# ------------------------------------------------------------------------------------------------ copy, stop_gradient
def _itself(x: ShapedArray) -> ShapedArray:
    return x


_ITSELF = lambda: [
    SampleInput((ShapedArray(s, d),)) for s, d in [((), "float32"), ((2, 3), "float32"), ((0, 2), "int32")]
]

copy = linear(
    "copy",
    shape=_itself,
    ref=lambda x: x.copy(),
    lower=lambda e, x: x,
    transpose=lambda ct, x: ct,
    batch=lambda axis, x, dim: (copy(x), dim),
    kind="movement",
    samples=_ITSELF,
)

#: The identity of a value that is computed once, so that it can be compared with what was made of it.
materialize = linear(
    "materialize",
    shape=_itself,
    ref=lambda x: x.copy(),
    lower=lambda e, x: e.materialized(x, e.ins[0]),
    transpose=lambda ct, x: ct,
    batch=lambda axis, x, dim: (materialize(x), dim),
    kind="movement",
    samples=_ITSELF,
)
#: The identity, whose derivative is declared zero.
stop_gradient = Primitive(
    "stop_gradient",
    shape=_itself,
    ref=lambda x: x.copy(),
    lower=lambda e, x: x,
    jvp=lambda primals, tangents: (stop_gradient(*primals), None),
    transpose=NotDefined("stop_gradient lets no tangent through; none is needed"),
    batch=lambda axis, args, dims: (stop_gradient(*args), dims[0]),
    samples=lambda: [dataclasses.replace(s, smooth=False) for s in _ITSELF()],
    kind="movement",
)
