"""true_places: positions of the true elements along the last dimension, in order, as many as `size`; -1 for the rest.

By default a running sum counts the elements, and each true one writes its position. On CPUs a loop counts and writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import BatchAxis, NotDefined, Primitive, SampleInput
from functorch_like.errors import ArgumentError, DtypeError, ShapeError
from functorch_like.primitives import structural
from functorch_like.primitives.base.lowering import Lowering
from functorch_like.primitives.indexing.dimension_numbers import ScatterDimensionNumbers
from functorch_like.primitives.reductions.cumulative import cumsum
from functorch_like.primitives.updates.scatter import scatter
from functorch_like.primitives.updates.true_places_cpu import counted


def _shape(x: ShapedArray, *, size: int, index_dtype: Any) -> ShapedArray:
    if not x.ndim:
        raise ShapeError(f"{x!r} has no last dimension", fix="reshape it to one element")
    if x.dtype != dtypes.bool_:
        raise DtypeError(f"true_places takes booleans, not {x!r}", fix="compare with zero")
    if size < 0:
        raise ArgumentError(f"size={size} is negative", fix="give 0 or more")
    if np.dtype(index_dtype) not in (dtypes.int32, dtypes.int64):
        raise DtypeError(f"index_dtype={np.dtype(index_dtype).name} is not taken", fix="use int32 or int64")
    if size + x.shape[-1] > int(dtypes.iinfo(index_dtype).max):
        raise DtypeError(f"int32 cannot hold {size} positions in {x!r}", fix="use index_dtype=int64")
    return ShapedArray((*x.shape[:-1], size), index_dtype)


def _ref(x: Any, *, size: int, index_dtype: Any) -> Any:
    out = np.full((*x.shape[:-1], size), -1, index_dtype)
    for row in np.ndindex(x.shape[:-1]):
        places = np.flatnonzero(x[row])[:size]
        out[row][: len(places)] = places
    return out


def _lower(e: Any, x: Any, *, size: int, index_dtype: Any) -> Any:
    """Write the position of each true element at its number; those of others, and of too many, behind the end."""
    (aval,), (out,) = e.ins, e.outs
    if not out.size or not aval.size:
        return e.full(-1, out)
    d, count = aval.ndim - 1, aval.update(dtype=out.dtype)
    own = e.op("stablehlo.iota", [], [count], attrs={"iota_dimension": e.i64(d)})
    behind = e.op("stablehlo.add", [own, e.full(size, count)], [count])
    at, lead = count.update(shape=(*aval.shape, 1)), tuple(range(d))
    try:
        e.ins, e.outs = [count], [count]
        number = cumsum.lower(e, e.convert(x, count), axis=d, reverse=False)
        number = e.op("stablehlo.subtract", [number, e.full(1, count)], [count])
        places = e.op("stablehlo.select", [x, number, behind], [count])
        e.ins, e.outs = [out, at, count], [out]
        return scatter.lower(
            e, e.full(-1, out), e.op("stablehlo.reshape", [places], [at]), own,
            dimension_numbers=ScatterDimensionNumbers((), (d,), (d,), lead, lead), mode="fill",
            indices_are_sorted=False, unique_indices=True,
        )  # fmt: skip
    finally:
        e.ins, e.outs = [aval], [out]


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, None]:
    return true_places(primals[0], **params), None


def _batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Any], **params: Any) -> tuple[Any, int]:
    return true_places(structural.move(args[0], dims[0], 0), **params), 0


def _samples() -> list[SampleInput]:
    mask = np.array([[True, False, True, True], [False, False, False, True], [False] * 4])
    made = [(mask, 2), (mask, 4), (mask, 6), (mask[0], 0), (mask[0], 3), (mask[:, :0], 2), (mask[:0], 2)]
    made += [(np.array([mask, ~mask]), 3), (np.arange(40) % 3 == 1, 40)]
    return [
        SampleInput((x,), {"size": size, "index_dtype": np.dtype(index)}, smooth=False)
        for (x, size) in made
        for index in (("int32", "int64") if size == 3 else ("int32",))
    ]


_NO = NotDefined("true_places gives integers, which have no derivative; gather elements at the positions instead")
true_places = Primitive(
    "true_places",
    shape=_shape,
    ref=_ref,
    lower=Lowering("true_places", _lower, counted(_lower)),
    jvp=_jvp,
    transpose=_NO,
    batch=_batch,
    samples=_samples,
)
