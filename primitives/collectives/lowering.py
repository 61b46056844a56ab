"""Collectives as operations of XLA, for computations on the parts of arrays (`shard_map`).

Groups and pairs are positions in the order of the mesh's devices. They cover all devices of the mesh, those along
axes that the compiler splits by itself included.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like.avals import ShapedArray
from functorch_like.core import NotDefined
from functorch_like.primitives.base.shapes import insert

OUTSIDE = NotDefined(
    "a collective outlived its named axis; call it inside vmap(..., axis_name=...) or inside shard_map"
)


def axis_of(e: Any, axis_name: Any) -> tuple[Any, int]:
    """Return the mesh of a named axis, and the position of the axis among the mesh's axes."""
    if e.manual is None or axis_name not in e.manual.axes:
        OUTSIDE()
    return e.manual.mesh, e.manual.mesh.axis_names.index(axis_name)


def _lines(e: Any, axis_name: Any) -> np.ndarray[Any, Any]:
    """The devices along an axis, a row for each place along the other axes."""
    mesh, axis = axis_of(e, axis_name)
    places = np.arange(mesh.size).reshape(mesh.axis_sizes)
    return np.moveaxis(places, axis, -1).reshape(-1, mesh.axis_sizes[axis])


def _groups(e: Any, axis_name: Any, global_ids: bool = True) -> dict[str, Any]:
    attrs = {"replica_groups": e.dense_i64(_lines(e, axis_name)), "channel_handle": e.channel()}
    if global_ids:
        attrs["use_global_device_ids"] = e.attr("unit")
    return attrs


def _region(kind: str, aval: ShapedArray) -> Any:
    scalar = ShapedArray((), aval.dtype)
    return ([scalar, scalar], lambda e, a, b: [e.op(f"stablehlo.{kind}", [a, b], [scalar])])


def reduce(kind: str) -> Any:
    """The lowering of a collective that folds an axis by the operation `stablehlo.<kind>`."""

    def lower(e: Any, x: Any, *, axis_name: Any) -> Any:
        outs = list(e.outs)
        return e.op("stablehlo.all_reduce", [x], outs, _groups(e, axis_name), [_region(kind, outs[0])])

    return lower


def _reshaped(e: Any, x: Any, aval: ShapedArray, shape: Sequence[int]) -> Any:
    return e.op("stablehlo.reshape", [x], [aval.update(shape=tuple(shape))])


def all_gather(e: Any, x: Any, *, axis_name: Any, all_gather_dimension: int, tiled: bool) -> Any:
    """The lowering of `all_gather`."""
    (operand,), outs, d = e.ins, list(e.outs), all_gather_dimension
    if not tiled:
        x = _reshaped(e, x, operand, insert(operand.shape, d, 1))
    return e.op("stablehlo.all_gather", [x], outs, {"all_gather_dim": e.i64(d), **_groups(e, axis_name)})


def reduce_scatter(e: Any, x: Any, *, axis_name: Any, scatter_dimension: int, tiled: bool) -> Any:
    """The lowering of `reduce_scatter`."""
    (operand,), (out,), d = e.ins, e.outs, scatter_dimension
    shape = out.shape if tiled else insert(out.shape, d, 1)
    attrs = {"scatter_dimension": e.i64(d), **_groups(e, axis_name)}
    part = e.op("stablehlo.reduce_scatter", [x], [operand.update(shape=shape)], attrs, [_region("add", operand)])
    return part if tiled else _reshaped(e, part, out, out.shape)


def all_to_all(e: Any, x: Any, *, axis_name: Any, split_axis: int, concat_axis: int, tiled: bool) -> Any:
    """The lowering of `all_to_all`."""
    (operand,), (out,) = e.ins, e.outs
    mesh, axis = axis_of(e, axis_name)
    joined = concat_axis if tiled else split_axis
    attrs = {
        "split_dimension": e.i64(split_axis),
        "concat_dimension": e.i64(joined),
        "split_count": e.i64(mesh.axis_sizes[axis]),
        **_groups(e, axis_name, global_ids=False),
    }
    made = out if tiled else operand
    y = e.op("stablehlo.all_to_all", [x], [made], attrs)
    if tiled or split_axis == concat_axis:
        return y
    order = [d for d in range(operand.ndim) if d != split_axis]
    order.insert(concat_axis, split_axis)
    return e.op("stablehlo.transpose", [y], [out], {"permutation": e.i64s(order)})


def ppermute(e: Any, x: Any, *, axis_name: Any, perm: tuple[tuple[int, int], ...]) -> Any:
    """The lowering of `ppermute`."""
    lines = _lines(e, axis_name)
    pairs = [(line[source], line[target]) for line in lines for source, target in perm]
    outs = list(e.outs)
    if not pairs:
        return e.full(0, outs[0])
    attrs = {"source_target_pairs": e.dense_i64(pairs), "channel_handle": e.channel()}
    return e.op("stablehlo.collective_permute", [x], outs, attrs)


def axis_index(e: Any, *, axis_name: Any) -> Any:
    """The lowering of `axis_index`."""
    mesh, axis = axis_of(e, axis_name)
    number = ShapedArray((), np.uint32)
    place = e.partition_id()
    after = int(np.prod(mesh.axis_sizes[axis + 1 :], dtype=int))
    place = e.op("stablehlo.divide", [place, e.full(after, number)], [number])
    place = e.op("stablehlo.remainder", [place, e.full(mesh.axis_sizes[axis], number)], [number])
    return e.convert(place, ShapedArray((), np.int32))
