"""order_statistics: two neighbours in the sorted order along the last dimension, the element at a place and the next.

The order is that of `sort`: every NaN comes last, -0 before 0. The place is data; one out of bounds is clamped, and the
last element is its own neighbour. By default all elements are sorted; on CPUs NumPy's kernel selects the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import BatchAxis, NotDefined, Primitive, SampleInput, aval_of
from functorch_like.errors import DtypeError, ShapeError
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.base.lowering import Alternative, Lowering
from functorch_like.primitives.indexing.gather_and_scatter_add import along
from functorch_like.primitives.ordering import sort_cpu
from functorch_like.primitives.ordering.sort import sort

#: The number of elements, and of those in a row, from which selection is faster than sorting, by NumPy's kernels both.
MANY, ROW = 4096, 256


def _shape(x: ShapedArray, place: ShapedArray) -> ShapedArray:
    if not x.ndim or not x.shape[-1]:
        raise ShapeError(f"{x!r} has no last dimension with elements", fix="give at least one element")
    if dtypes.is_complex(x.dtype):
        raise DtypeError(f"order_statistics takes real numbers, not {x!r}", fix="compare absolute values")
    if place.shape or place.dtype != dtypes.int32:
        raise DtypeError(f"the place is {place!r}, not a number in int32", fix="convert it")
    return x.update(shape=(*x.shape[:-1], 2))


def _ref(x: Any, place: Any) -> Any:
    (ordered,) = sort.ref(x, dimension=x.ndim - 1)
    at = np.clip(int(place), 0, x.shape[-1] - 1)
    return ordered[..., [at, min(at + 1, x.shape[-1] - 1)]]


# ---------------------------------------------------------------------------------------------------------- lowering
def _lower(e: Any, x: Any, place: Any) -> Any:
    """Sort all, and read two elements."""
    ins, outs = e.ins, e.outs
    e.ins = e.outs = ins[:1]
    (ordered,) = sort.lower(e, x, dimension=ins[0].ndim - 1, is_stable=True, num_keys=1)
    e.ins, e.outs = ins, outs
    return _read(e, ordered, place, ins[0])


def _select(e: Any, x: Any, place: Any) -> Any:
    """Select by NumPy's kernel, which puts the two where sorting would put them."""
    aval = e.ins[0]
    return _read(e, sort_cpu.order_on_host(e, x, aval, aval.ndim - 1, place), place, aval)


def _read(e: Any, x: Any, place: Any, aval: ShapedArray) -> Any:
    """Read the elements at a place and behind it. The place is clamped first, so that adding 1 does not overflow."""
    number, last = ShapedArray((), dtypes.int32), aval.ndim - 1
    one, two = (aval.update(shape=(*aval.shape[:-1], n)) for n in (1, 2))
    first = e.op("stablehlo.maximum", [place, e.full(0, number)], [number])
    first = e.op("stablehlo.minimum", [first, e.full(aval.shape[-1] - 1, number)], [number])
    second = e.op("stablehlo.add", [first, e.full(1, number)], [number])
    zeros, attrs = [e.full(0, number)] * last, {"slice_sizes": e.i64s(one.shape)}
    pair = [e.op("stablehlo.dynamic_slice", [x, *zeros, at], [one], attrs) for at in (first, second)]
    return e.op("stablehlo.concatenate", pair, [two], {"dimension": e.i64(last)})


def _edges() -> list[tuple[SampleInput, bool]]:
    counted, many = sort_cpu.counted, MANY
    sample = lambda x, place: SampleInput((x, np.asarray(place, np.int32)), smooth=False)
    wide = ("float32", "float64", "int32", "uint32", "int64", "uint64")
    taken = [sample(counted((many,), d), place) for d in wide for place in (0, many // 2, many - 1)]
    taken += [sample(counted((many // ROW, ROW), np.float32), place) for place in (-3, 7, many)]
    left = [
        sample(counted((many - 1,), np.float32), 5),
        sample(counted((many,), np.int16), 5),
        sample(counted((many // ROW + 1, ROW - 1), np.int32), 3),
    ]
    return [*((s, True) for s in taken), *((s, False) for s in left)]


FORMS = (
    Alternative(
        "NumPy's selection, floats as integers",
        f"32 or 64 bits, from {MANY} elements, {ROW} in a row",
        lambda ins, outs, **_: (
            ins[0].dtype.name in sort_cpu.ON_HOST and ins[0].dtype.itemsize >= 4
            and ins[0].size >= MANY and ins[0].shape[-1] >= ROW
        ),
        _select,
        _edges,
        on_host=True,
    ),
)  # fmt: skip


# ------------------------------------------------------------------------------------------------ derivative, batching
def _pair(x: Any, place: Any) -> Any:
    """Elements of x at a place and behind it: one place for all, or one for each element of the first dimension."""
    shape, last = aval_of(x).shape, aval_of(x).shape[-1] - 1
    fill = lambda n: structural.full_like(place, n)
    first = elementwise.min(elementwise.max(place, fill(0)), fill(last))
    second = elementwise.min(elementwise.add(first, fill(1)), fill(last))
    one, dims = (*shape[:-1], 1), tuple(range(aval_of(place).ndim))
    both = [structural.broadcast_in_dim(at, shape=one, broadcast_dimensions=dims) for at in (first, second)]
    return along(x, structural.concatenate(*both, dimension=len(shape) - 1), len(shape) - 1, unique=False)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """Tangents go where their elements go: positions are sorted along."""
    x, place = primals
    shape = aval_of(x).shape
    places = structural.iota(dtype=dtypes.int32, shape=shape, dimension=len(shape) - 1)
    ordered, order = sort(x, places, dimension=len(shape) - 1, is_stable=True, num_keys=1)
    return _pair(ordered, place), along(tangents[0], _pair(order, place), len(shape) - 1, unique=False)


def _batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Any]) -> Any:
    (x, place), (at, of_place) = args, dims
    last = aval_of(x).ndim - 1
    if of_place is None:
        return (
            (order_statistics(x, place), at) if at < last else (order_statistics(structural.move(x, at, 0), place), 0)
        )
    (ordered,) = sort(x if at is None else structural.move(x, at, 0), dimension=last, is_stable=True, num_keys=1)
    if at is None:
        shape = (axis.size, *aval_of(x).shape)
        ordered = structural.broadcast_in_dim(ordered, shape=shape, broadcast_dimensions=tuple(range(1, len(shape))))
    return _pair(ordered, place), 0


def _samples() -> list[SampleInput]:
    at = lambda n, dtype=np.int32: np.asarray(n, dtype)
    nans = np.array([np.nan, 1, np.inf, -np.nan, -0.0, -np.inf, 0.0, 0.5], np.float32)
    ties = np.array([[1, 3, 3, 0, 1], [2, 2, 2, 2, 5]], np.int32)
    made = [((5,), "float32", 2), ((5,), "float32", 4), ((2, 3), "float32", 1), ((2, 3, 4), "float32", -1)]
    made += [((1,), "float32", 0), ((0, 3), "float32", 1), ((3,), "float64", 9)]
    made += [((4,), d, 1) for d in ("bfloat16", "float16", "int32", "uint8", "int64", "bool")]
    return [
        *(SampleInput((ShapedArray(shape, d), at(n))) for shape, d, n in made),
        *(SampleInput((x, at(n)), smooth=False) for x in (nans, ties) for n in (0, 3)),
    ]


order_statistics = Primitive(
    "order_statistics",
    shape=_shape,
    ref=_ref,
    lower=Lowering("order_statistics", _lower, *FORMS),
    jvp=_jvp,
    transpose=NotDefined("order_statistics is not linear in its operand; differentiate it with its jvp rule"),
    batch=_batch,
    samples=_samples,
)
