"""Collectives that exchange parts along a named axis: gathering, scattering sums, transposing, permuting.

All are linear. As in `reduce_over_axis`, the batch rule of the vmap that has the name computes on the mapped dimension.
That rule has the whole array, mapped dimension included: its element i is the value at position i of the axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like.avals import ShapedArray
from functorch_like.core import BatchAxis, Primitive, aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.base.shapes import insert
from functorch_like.primitives.collectives import lowering
from functorch_like.primitives.collectives.reduce_over_axis import NO_REF, axis_size
from functorch_like.primitives.indexing.dimension_numbers import GatherDimensionNumbers
from functorch_like.primitives.indexing.gather_and_scatter_add import gather


def _exchange(
    name: str,
    shape: Callable[..., Any],
    at: Callable[..., Any],
    alone: Callable[..., Any],
    transpose: Callable[..., Any],
) -> Primitive:
    """A linear primitive that exchanges data along a named axis.

    Args:
        name: of the primitive.
        shape: `(shape, size, **params) -> shape` of the result, where size is that of the axis.
        at: `(x, dim, size, **params) -> (out, dim)`, for the hidden dimension of that axis.
        alone: likewise `(x, size, **params)`, for a value that is the same all along that axis.
        transpose: `(ct, **params) -> ct`.
    """

    def result_aval(x: ShapedArray, *, axis_name: Any, **params: Any) -> ShapedArray:
        return x.update(shape=shape(x.shape, axis_size(axis_name), **params))

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        return primitive(*primals, **params), primitive(*tangents, **params)

    def batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Any], *, axis_name: Any, **params: Any) -> Any:
        (x,), (dim,) = args, dims
        if axis_name != axis.name:  # another axis: it goes in front, where no parameter depends on it
            return _shifted(primitive, structural.move(x, dim, 0), axis_name, params), 0
        whole = aval_of(x).shape
        # The shape rule raises for wrong sizes; outside of jit it has not been called yet.
        shape(whole if dim is None else (*whole[:dim], *whole[dim + 1 :]), axis.size, **params)
        return alone(x, axis.size, **params) if dim is None else at(x, dim, axis.size, **params)

    primitive = Primitive(
        name,
        shape=result_aval,
        ref=NO_REF,
        lower=getattr(lowering, name),
        jvp=jvp,
        transpose=lambda ct, args, **params: [transpose(ct, **params)],
        batch=batch,
        samples=list,
        linear="jointly",
    )
    return primitive


#: Parameters that count dimensions.
_DIMENSIONS = ("all_gather_dimension", "scatter_dimension", "split_axis", "concat_axis")


def _shifted(primitive: Primitive, x: Any, axis_name: Any, params: dict[str, Any]) -> Any:
    return primitive(x, axis_name=axis_name, **{k: v + 1 if k in _DIMENSIONS else v for k, v in params.items()})


def _merge(x: Any, dim: int) -> Any:
    """Dimensions dim and dim + 1 as one."""
    shape = aval_of(x).shape
    return structural.reshape(x, shape=(*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2 :]))


def _cut(x: Any, dim: int, parts: int) -> Any:
    """Dimension dim as two: the number of the part, and the place in it."""
    shape = aval_of(x).shape
    return structural.reshape(x, shape=(*shape[:dim], parts, shape[dim] // parts, *shape[dim + 1 :]))


def _check_within(dim: int, ndim: int, what: str) -> None:
    if not 0 <= dim < ndim:
        raise ShapeError(f"{what}={dim} is not a dimension of an array with {ndim}", fix=f"use 0 to {ndim - 1}")


def _check_parts(shape: Sequence[int], dim: int, size: int, what: str, tiled: bool) -> None:
    _check_within(dim, len(shape), what)
    if shape[dim] % size if tiled else shape[dim] != size:
        raise ShapeError(
            f"dimension {dim} of {tuple(shape)} has size {shape[dim]} and is split over an axis of size {size}",
            fix=f"make it a multiple of {size}" + ("" if tiled else " and use tiled=True, or exactly that"),
        )


# --------------------------------------------------------------------------------------------------------- all_gather
def _gather_shape(shape: tuple[int, ...], size: int, *, all_gather_dimension: int, tiled: bool) -> tuple[int, ...]:
    d = all_gather_dimension
    _check_within(d, len(shape) + (not tiled), "all_gather_dimension")
    return (*shape[:d], shape[d] * size, *shape[d + 1 :]) if tiled else insert(shape, d, size)


def _gather_at(x: Any, dim: int, size: int, *, all_gather_dimension: int, tiled: bool) -> Any:
    stacked = structural.move(x, dim, all_gather_dimension)
    return (_merge(stacked, all_gather_dimension) if tiled else stacked), None


def _gather_alone(x: Any, size: int, **params: Any) -> Any:
    return _gather_at(structural.widen(x, size), 0, size, **params)


#: The values of all positions, stacked along a new dimension or (tiled) joined along one that is there.
all_gather = _exchange(
    "all_gather", _gather_shape, _gather_at, _gather_alone,
    lambda ct, *, axis_name, all_gather_dimension, tiled: reduce_scatter(
        ct, axis_name=axis_name, scatter_dimension=all_gather_dimension, tiled=tiled
    ),
)  # fmt: skip


# ----------------------------------------------------------------------------------------------------- reduce_scatter
def _scatter_shape(shape: tuple[int, ...], size: int, *, scatter_dimension: int, tiled: bool) -> tuple[int, ...]:
    d = scatter_dimension
    _check_parts(shape, d, size, "scatter_dimension", tiled)
    return (*shape[:d], shape[d] // size, *shape[d + 1 :]) if tiled else (*shape[:d], *shape[d + 1 :])


def _scattered(total: Any, size: int, scatter_dimension: int, tiled: bool) -> Any:
    return (_cut(total, scatter_dimension, size) if tiled else total), scatter_dimension


def _scatter_at(x: Any, dim: int, size: int, *, scatter_dimension: int, tiled: bool) -> Any:
    return _scattered(structural.reduce_sum(x, axes=(dim,)), size, scatter_dimension, tiled)


def _scatter_alone(x: Any, size: int, *, scatter_dimension: int, tiled: bool) -> Any:
    return _scattered(elementwise.mul(x, structural.full_like(x, size)), size, scatter_dimension, tiled)


#: The sum over the axis, of which position i keeps the i-th part.
reduce_scatter = _exchange(
    "reduce_scatter", _scatter_shape, _scatter_at, _scatter_alone,
    lambda ct, *, axis_name, scatter_dimension, tiled: all_gather(
        ct, axis_name=axis_name, all_gather_dimension=scatter_dimension, tiled=tiled
    ),
)  # fmt: skip


# --------------------------------------------------------------------------------------------------------- all_to_all
def _swap_shape(
    shape: tuple[int, ...], size: int, *, split_axis: int, concat_axis: int, tiled: bool
) -> tuple[int, ...]:
    _check_parts(shape, split_axis, size, "split_axis", tiled)
    _check_within(concat_axis, len(shape), "concat_axis")
    if not tiled:
        return insert((*shape[:split_axis], *shape[split_axis + 1 :]), concat_axis, size)
    out = list(shape)
    out[split_axis] //= size
    out[concat_axis] *= size
    return tuple(out)


def _swap_at(x: Any, dim: int, size: int, *, split_axis: int, concat_axis: int, tiled: bool) -> Any:
    x = structural.move(x, dim, 0)
    if tiled:
        x = _cut(x, split_axis + 1, size)
    order = [d for d in range(1, aval_of(x).ndim) if d != split_axis + 1]
    order.insert(concat_axis, 0)
    x = structural.transpose(x, permutation=(split_axis + 1, *order))
    return (_merge(x, concat_axis + 1) if tiled else x), 0


def _swap_alone(x: Any, size: int, **params: Any) -> Any:
    return _swap_at(structural.widen(x, size), 0, size, **params)


#: Position i sends the j-th of its parts to position j, which puts the parts in the order of the senders.
all_to_all = _exchange(
    "all_to_all", _swap_shape, _swap_at, _swap_alone,
    lambda ct, *, axis_name, split_axis, concat_axis, tiled: all_to_all(
        ct, axis_name=axis_name, split_axis=concat_axis, concat_axis=split_axis, tiled=tiled
    ),
)  # fmt: skip


# ----------------------------------------------------------------------------------------------------------- ppermute
def _permute_shape(shape: tuple[int, ...], size: int, *, perm: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
    for k, what in enumerate(("source", "destination")):
        ends = [pair[k] for pair in perm]
        if len(set(ends)) != len(ends) or not all(0 <= end < size for end in ends):
            raise ArgumentError(
                f"perm={perm} must name different {what}s within 0..{size - 1}",
                fix="give pairs (source, destination), each source and each destination at most once",
            )
    return shape


def _permute_at(x: Any, dim: int, size: int, *, perm: tuple[tuple[int, int], ...]) -> Any:
    origin = np.full((size, 1), size, np.int32)  # out of bounds: nothing comes, and zeros are filled in
    for source, destination in perm:
        origin[destination] = source
    shape = aval_of(x).shape
    others = tuple(d for d in range(len(shape)) if d != dim)
    sizes = tuple(1 if d == dim else n for d, n in enumerate(shape))
    out = gather(
        x, origin, dimension_numbers=GatherDimensionNumbers(others, (dim,), (dim,)), slice_sizes=sizes,
        mode="promise_in_bounds" if len(perm) == size else "fill", fill_value=0,
        indices_are_sorted=False, unique_indices=False,
    )  # fmt: skip
    return out, dim


def _permute_alone(x: Any, size: int, *, perm: tuple[tuple[int, int], ...]) -> Any:
    return (x, None) if len(perm) == size else _permute_at(structural.widen(x, size), 0, size, perm=perm)


#: Each position sends its value to at most one other; a position that receives none has zeros.
ppermute = _exchange(
    "ppermute", _permute_shape, _permute_at, _permute_alone,
    lambda ct, *, axis_name, perm: ppermute(ct, axis_name=axis_name, perm=tuple((d, s) for s, d in perm)),
)  # fmt: skip
