"""top_k: the greatest elements along the last dimension, in order, and where they are.

The order is total: every NaN comes first, 0 before -0; of equal elements the first.
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
from functorch_like.primitives.indexing.gather_and_scatter_add import along
from functorch_like.primitives.ordering.keys import one_nan
from functorch_like.primitives.ordering.top_k_cpu import FORMS
from functorch_like.primitives.reductions.makers import roomy


def _shape(x: ShapedArray, *, k: int) -> tuple[ShapedArray, ShapedArray]:
    if not x.ndim:
        raise ShapeError(f"{x!r} has no dimension to take the greatest of", fix="reshape it to (1,)")
    if dtypes.is_complex(x.dtype):
        raise DtypeError(f"top_k takes real numbers and booleans, not {x!r}", fix="compare absolute values")
    if not 0 <= k <= x.shape[-1]:
        raise ArgumentError(
            f"k={k} elements cannot be taken of {x.shape[-1]}, the size of the dimension", fix=f"use 0 to {x.shape[-1]}"
        )
    shape = (*x.shape[:-1], k)
    return x.update(shape=shape), ShapedArray(shape, np.int32)


def _ref(x: Any, *, k: int) -> tuple[Any, Any]:
    places = np.broadcast_to(np.arange(x.shape[-1]), x.shape)
    if dtypes.is_float(x.dtype):
        wide = x.astype(np.float64) if x.dtype.itemsize < 8 else x
        number = np.where(np.isnan(wide), 0, wide)
        keys = (places, np.signbit(number), -number, ~np.isnan(wide))
    else:
        keys = (places, ~roomy(x))
    order = np.lexsort(keys, axis=-1)[..., :k]
    return np.take_along_axis(x, order, -1), order.astype(np.int32)


def _lower(e: Any, x: Any, *, k: int) -> list[Any]:
    (aval,) = e.ins
    if aval.dtype.name in ("int4", "uint4"):  # for which XLA has no kernel
        wide = np.dtype(np.int8 if dtypes.is_signed(aval.dtype) else np.uint8)
        values, places = e.outs
        outs = [values.update(dtype=wide), places]
        top, at = e.op("chlo.top_k", [e.convert(x, aval.update(dtype=wide))], outs, attrs={"k": e.i64(k)})
        return [e.convert(top, values), at]
    if dtypes.is_float(aval.dtype):  # a NaN with a sign would come last
        x = one_nan(e, x, aval)
    return list(e.op("chlo.top_k", [x], e.outs, attrs={"k": e.i64(k)}))


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, k: int) -> Any:
    values, places = top_k(*primals, k=k)
    return (values, places), (along(tangents[0], places, len(places.shape) - 1), None)


def _batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Any], *, k: int) -> Any:
    (x,), (at,) = args, dims
    if at == len(x.shape) - 1:
        x, at = structural.move(x, at, 0), 0
    return top_k(x, k=k), (at, at)


def _samples() -> list[SampleInput]:
    ties = np.array([[1, 3, 3, 0, 1], [2, 2, 2, 2, 5]], np.int32)
    nans = np.array([1, np.nan, np.inf, -np.nan, -np.inf, 0.5, -0.0, 0.0, -0.0], np.float32)
    made = [((5,), "float32", 2), ((5,), "float32", 5), ((2, 3), "float32", 1), ((2, 3, 4), "float32", 3)]
    made += [((0, 3), "float32", 2), ((3,), "float32", 0), ((2, 0), "float32", 0), ((4,), "float64", 2)]
    made += [((6,), d, 3) for d in ("bfloat16", "float16", "int32", "uint8", "int64", "bool", "int4")]
    return [
        *(SampleInput((ShapedArray(s, d),), {"k": k}) for s, d, k in made),
        *(SampleInput((x,), {"k": x.shape[-1] - 1}, smooth=False) for x in (ties, nans, nans.astype(np.float64))),
    ]


top_k = Primitive(
    "top_k",
    shape=_shape,
    ref=_ref,
    lower=Lowering("top_k", _lower, *FORMS),
    jvp=_jvp,
    transpose=NotDefined("top_k is not linear in its operand; differentiate it with its jvp rule"),
    batch=_batch,
    samples=_samples,
    multiple_results=True,
)
