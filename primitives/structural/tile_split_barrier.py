"""Primitives that repeat, divide or merely hold on to arrays: tile, split, optimization_barrier."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like.avals import ShapedArray
from functorch_like.core import BatchAxis, Primitive, SampleInput, UndefinedPrimal
from functorch_like.errors import ShapeError
from functorch_like.primitives import structural
from functorch_like.primitives.base.lowering import Alternative, Lowering
from functorch_like.primitives.base.shapes import check_axes, check_sizes, insert, linear


# --------------------------------------------------------------------------------------------------------------- tile
def _tile_shape(x: ShapedArray, *, reps: tuple[int, ...]) -> ShapedArray:
    check_sizes(reps)
    if len(reps) != x.ndim:
        raise ShapeError(
            f"reps={reps} must be {x.ndim} numbers for {x!r}", fix="give one for each dimension; 1 does nothing"
        )
    return x.update(shape=tuple(n * r for n, r in zip(x.shape, reps, strict=True)))


def _apart(shape: Sequence[int], reps: Sequence[int]) -> tuple[int, ...]:
    """The shape of the result with a dimension of its own for each repetition."""
    return tuple(n for pair in zip(reps, shape, strict=True) for n in pair)


def _tile_lower(e: Any, x: Any, *, reps: tuple[int, ...]) -> Any:
    return _repeated(e, x, e.ins[0], reps, e.outs[0])


def _repeated(e: Any, x: Any, aval: ShapedArray, reps: tuple[int, ...], out: ShapedArray) -> Any:
    wide = out.update(shape=_apart(aval.shape, reps))
    y = e.broadcast_in_dim(x, wide, range(1, wide.ndim, 2))
    return e.op("stablehlo.reshape", [y], [out])


#: Elements of the result, and of its last dimension before, from which copies side by side are faster.
_LARGE, _NEAR = 4096, 32
#: The most copies that one operation joins.
_JOINED = 16


def _copies(e: Any, x: Any, aval: ShapedArray, count: int) -> tuple[Any, ShapedArray]:
    """Join copies of an array along its last dimension: many are copies of copies, which keeps the program short."""
    if count == 1:
        return x, aval
    parts = [x] * count
    if count > _JOINED:
        y, block = _copies(e, x, aval, count // _JOINED)
        y = e.op("stablehlo.optimization_barrier", [y], [block])  # XLA would join all copies at once
        parts = [y] * _JOINED + [x] * (count % _JOINED)
    out = aval.update(shape=(*aval.shape[:-1], count * aval.shape[-1]))
    return e.op("stablehlo.concatenate", parts, [out], {"dimension": e.i64(aval.ndim - 1)}), out


def _joined(e: Any, x: Any, *, reps: tuple[int, ...]) -> Any:
    """Join copies along the last dimension, in which XLA would divide the position of each element of a broadcast."""
    if e.partitioning is not None:  # parts of an array may be on other devices
        return _tile_lower(e, x, reps=reps)
    y, aval = _copies(e, x, e.ins[0], reps[-1])
    return _repeated(e, y, aval, (*reps[:-1], 1), e.outs[0])


def _joins(ins: Sequence[ShapedArray], outs: Sequence[ShapedArray], *, reps: tuple[int, ...]) -> bool:
    return bool(reps) and outs[0].size >= _LARGE and reps[-1] > 1 and ins[0].shape[-1] >= _NEAR


def _edges() -> list[tuple[SampleInput, bool]]:
    cases = [
        ((_LARGE // 4,), (4,), "float32", True), ((_LARGE // 4 - 1,), (4,), "float32", False),
        ((_NEAR,), (_LARGE // _NEAR,), "int32", True), ((_NEAR - 1,), (_LARGE,), "int32", False),
        ((2, 30, 40), (1, 3, 2), "bool", True), ((70, 3, 20), (2, 1, 1), "complex64", False),
        ((1, 50), (300, 2), "bfloat16", True), ((37,), (300,), "float64", True),
        ((_LARGE,), (1,), "float32", False), ((0, _LARGE), (2, 2), "float32", False),
    ]  # fmt: skip
    return [(SampleInput((ShapedArray(s, d),), {"reps": r}), taken) for s, r, d, taken in cases]


_JOIN = Alternative(
    "copies of copies, joined",
    f"results of at least {_LARGE:,} elements, a last dimension of at least {_NEAR} that is repeated",
    _joins,
    _joined,
    _edges,
)


def _tile_transpose(ct: Any, x: ShapedArray, *, reps: tuple[int, ...]) -> Any:
    """Add up the repetitions; XLA:CPU runs sums over dimensions of size 1 among others slowly."""
    shape: list[int] = []
    axes: list[int] = []
    for count, size in zip(reps, x.shape, strict=True):
        if count != 1:
            axes.append(len(shape))
            shape.append(count)
        shape.append(size)
    return structural.reduce_sum(structural.reshape(ct, shape=tuple(shape)), axes=tuple(axes)) if axes else ct


tile = linear(
    "tile",
    shape=_tile_shape,
    ref=lambda x, *, reps: np.tile(x, reps),
    lower=Lowering("tile", _tile_lower, _JOIN),
    transpose=_tile_transpose,
    batch=lambda axis, x, dim, *, reps: (tile(x, reps=insert(reps, dim, 1)), dim),
    kind="movement",
    samples=lambda: [
        SampleInput((ShapedArray(shape, dtype),), {"reps": reps})
        for shape, reps, dtype in [
            ((), (), "float32"), ((3,), (2,), "float32"), ((2, 3, 4), (2, 1, 3), "float32"), ((2,), (0,), "float32"),
            ((0, 2), (3, 2), "float32"), ((2, 2), (2, 2), "int32"), ((3,), (2,), "bool"), ((2,), (3,), "complex64"),
        ]
    ],
)  # fmt: skip


# -------------------------------------------------------------------------------------------------------------- split
def _split_shape(x: ShapedArray, *, sizes: tuple[int, ...], axis: int) -> tuple[ShapedArray, ...]:
    check_axes((axis,), x.ndim)
    check_sizes(sizes)
    if sum(sizes) != x.shape[axis]:
        raise ShapeError(
            f"sizes={sizes} add up to {sum(sizes)}, and dimension {axis} of {x!r} has {x.shape[axis]}",
            fix="make the sizes add up to that of the dimension",
        )
    return tuple(x.update(shape=(*x.shape[:axis], n, *x.shape[axis + 1 :])) for n in sizes)


def _split_lower(e: Any, x: Any, *, sizes: tuple[int, ...], axis: int) -> list[Any]:
    (operand,) = e.ins
    parts: list[Any] = []
    for start, out in zip(itertools.accumulate(sizes, initial=0), e.outs, strict=False):
        limits = [start + out.shape[d] if d == axis else n for d, n in enumerate(operand.shape)]
        attrs = {
            "start_indices": e.i64s([start if d == axis else 0 for d in range(operand.ndim)]),
            "limit_indices": e.i64s(limits),
            "strides": e.i64s([1] * operand.ndim),
        }
        parts.append(e.op("stablehlo.slice", [x], [out], attrs=attrs))
    return parts


def _split_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    return split(*primals, **params), split(*tangents, **params)


def _split_transpose(cts: Sequence[Any], args: Sequence[Any], **params: Any) -> list[Any]:
    parts = zip(cts, _split_shape(args[0].aval, **params), strict=True)
    whole = [structural.zeros(aval) if ct is None else ct for ct, aval in parts]
    return [structural.concatenate(*whole, dimension=params["axis"])]


def _split_batch(_: BatchAxis, args: Sequence[Any], dims: Sequence[Any], *, sizes: tuple[int, ...], axis: int) -> Any:
    return split(*args, sizes=sizes, axis=axis + (axis >= dims[0])), [dims[0]] * len(sizes)


def _split_ref(x: Any, *, sizes: tuple[int, ...], axis: int) -> tuple[Any, ...]:
    return tuple(np.split(x, list(itertools.accumulate(sizes))[:-1], axis))


#: Parts of given sizes along one dimension.
split = Primitive(
    "split",
    shape=_split_shape,
    ref=_split_ref,
    lower=_split_lower,
    jvp=_split_jvp,
    transpose=_split_transpose,
    batch=_split_batch,
    samples=lambda: [
        SampleInput((ShapedArray(shape, dtype),), {"sizes": sizes, "axis": axis})
        for shape, sizes, axis, dtype in [
            ((5,), (2, 3), 0, "float32"), ((2, 3, 4), (1, 0, 2), 1, "float32"), ((4,), (4,), 0, "float32"),
            ((0, 2), (1, 1), 1, "float32"), ((3, 2), (1, 2), 0, "int32"), ((3,), (2, 1), 0, "bool"),
            ((3,), (2, 1), 0, "complex64"),
        ]
    ],
    multiple_results=True,
    kind="movement", linear="jointly",
)  # fmt: skip


# ----------------------------------------------------------------------------------------------- optimization_barrier
def _barrier_lower(e: Any, *xs: Any) -> list[Any]:
    out = e.op("stablehlo.optimization_barrier", xs, e.outs)
    return [out] if len(xs) == 1 else list(out)


def _behind(values: Sequence[Any]) -> list[Any]:
    """Put the values that are not None behind one barrier."""
    rest = iter(optimization_barrier(*[v for v in values if v is not None]))
    return [None if v is None else next(rest) for v in values]


def _barrier_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    return optimization_barrier(*primals), _behind(tangents)


def _barrier_batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Any]) -> Any:
    return optimization_barrier(*args), list(dims)


#: The identity of several operands; XLA computes all of them before anything that uses one, and moves nothing across.
optimization_barrier = Primitive(
    "optimization_barrier",
    shape=lambda *xs: xs,
    ref=lambda *xs: tuple(np.array(x) for x in xs),
    lower=_barrier_lower,
    jvp=_barrier_jvp,
    transpose=lambda cts, args: _behind(
        [c if isinstance(a, UndefinedPrimal) else None for c, a in zip(cts, args, strict=True)]
    ),
    batch=_barrier_batch,
    samples=lambda: [
        SampleInput(tuple(ShapedArray(shape, dtype) for shape, dtype in operands))
        for operands in [
            (((), "float32"),), (((2, 3), "float32"), ((4,), "float32")), (((0, 2), "float32"), ((3,), "int32")),
            (((2, 3, 4), "complex64"), ((), "bool"), ((2,), "bfloat16")),
        ]
    ],
    multiple_results=True,
    kind="movement", linear="jointly",
    repeated=True,  # a value behind two barriers is computed twice
)  # fmt: skip
