"""Floor 6. sort: several operands, reordered together along one dimension by the first `num_keys` of them.

The order is total: -0 equals +0, every NaN comes last, complex numbers compare by real and then by imaginary part.
A stable sort keeps equal elements in their order. (One exception: a single floating operand is sorted as integers on
CPUs, four times faster; -0 then comes before +0, and NaNs lose their sign and payload.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import Axis, No, Primitive, Sample, aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.primitives import structure as S
from functorch_like.primitives.indexing import along
from functorch_like.primitives.rows import align


def _shape(
    *operands: ShapedArray, dimension: int, is_stable: bool = True, num_keys: int = 1
) -> tuple[ShapedArray, ...]:
    first = operands[0]
    for x in operands:
        if x.shape != first.shape:
            raise ShapeError(f"{first!r} and {x!r} are sorted together but differ in shape", fix="broadcast them first")
    if not 0 <= dimension < first.ndim:
        raise ShapeError(f"{first!r} has no dimension {dimension}", fix=f"use a dimension below {first.ndim}")
    if not 1 <= num_keys <= len(operands):
        raise ArgumentError(
            f"num_keys={num_keys} of {len(operands)} operands", fix="use at least 1 and at most all of them"
        )
    return tuple(operands)


# ------------------------------------------------------------------------------------------------------------- NumPy
def _parts(x: Any) -> list[Any]:
    """Arrays that NumPy compares as this one should be, the most important first."""
    if np.iscomplexobj(x):
        return [*_parts(x.real), *_parts(x.imag)]
    if dtypes.is_inexact(x.dtype):
        x = x.astype(np.float32) if x.dtype.itemsize < 4 else x
        return [np.isnan(x), np.where(np.isnan(x), 0, x)]
    return [x]


def _ref(*operands: Any, dimension: int, is_stable: bool = True, num_keys: int = 1) -> tuple[Any, ...]:
    keys = [part for x in operands[:num_keys] for part in _parts(x)]
    order = np.lexsort(keys[::-1], axis=dimension)
    return tuple(np.take_along_axis(x, order, dimension) for x in operands)


# ---------------------------------------------------------------------------------------------------------- lowering
def _lower(e: Any, *operands: Any, dimension: int, is_stable: bool = True, num_keys: int = 1) -> list[Any]:
    key = e.ins[0]
    if e.platform == "cpu" and num_keys == 1 and key.size:
        if len(operands) == 1 and dtypes.is_float(key.dtype) and key.dtype.itemsize > 1:
            return [_sort_floats(e, operands[0], key, dimension)]
        if len(operands) > 1 and _packs(key.dtype):
            return _sort_packed(e, operands, dimension)
    scalars = [ShapedArray((), x.dtype) for x in e.ins]
    flag = ShapedArray((), dtypes.bool_)

    def before(inner: Any, *pairs: Any) -> list[Any]:
        a, b = pairs[0 : 2 * num_keys : 2], pairs[1 : 2 * num_keys : 2]
        left, right = ([p for x, s in zip(side, scalars, strict=False) for p in _keys(inner, x, s)] for side in (a, b))
        less = None
        for (x, s), (y, _) in reversed(list(zip(left, right, strict=True))):
            kind = "TOTALORDER" if dtypes.is_inexact(s.dtype) else "SIGNED" if dtypes.is_signed(s.dtype) else "UNSIGNED"
            this = inner.compare("LT", x, y, flag, kind)
            if less is not None:
                tie = inner.op("stablehlo.and", [inner.compare("EQ", x, y, flag, kind), less], [flag])
                this = inner.op("stablehlo.or", [this, tie], [flag])
            less = this
        return [less]

    attrs = {"dimension": e.i64(dimension), "is_stable": e.flag(is_stable)}
    region = ([s for s in scalars for _ in range(2)], before)
    got = e.op("stablehlo.sort", list(operands), list(e.outs), attrs=attrs, regions=(region,))
    return [got] if len(operands) == 1 else list(got)


def _keys(e: Any, x: Any, aval: ShapedArray) -> list[tuple[Any, ShapedArray]]:
    """Values whose total order is the order of x: one zero, one NaN, real and imaginary part apart."""
    if dtypes.is_complex(aval.dtype):
        real = aval.update(dtype=dtypes.real_part(aval.dtype))
        parts = [e.op(f"stablehlo.{part}", [x], [real]) for part in ("real", "imag")]
        return [key for part in parts for key in _keys(e, part, real)]
    if dtypes.is_float(aval.dtype):
        return [(_one_zero(e, _one_nan(e, x, aval), aval), aval)]
    return [(x, aval)]


def _one_nan(e: Any, x: Any, aval: ShapedArray) -> Any:
    nan = e.compare("NE", x, x, aval.update(dtype=dtypes.bool_), "FLOAT")
    return e.op("stablehlo.select", [nan, e.full(np.array(np.nan).astype(aval.dtype), aval), x], [aval])


def _one_zero(e: Any, x: Any, aval: ShapedArray) -> Any:
    zero = e.full(np.zeros((), aval.dtype), aval)
    return e.op(
        "stablehlo.select", [e.compare("EQ", x, zero, aval.update(dtype=dtypes.bool_), "FLOAT"), zero, x], [aval]
    )


def _flip(e: Any, i: Any, aval: ShapedArray) -> Any:
    """Between the bits of a float and the integer that orders as it does: negative ones reversed. Its own inverse."""
    negative = e.compare("LT", i, e.full(0, aval), aval.update(dtype=dtypes.bool_), "SIGNED")
    flipped = e.op("stablehlo.xor", [i, e.full(dtypes.iinfo(aval.dtype).max, aval)], [aval])
    return e.op("stablehlo.select", [negative, flipped, i], [aval])


def _as_integer(e: Any, x: Any, aval: ShapedArray) -> tuple[Any, ShapedArray]:
    """f32 or f64 as integers of the same order."""
    bits = aval.update(dtype=dtypes.int64 if aval.dtype == dtypes.float64 else dtypes.int32)
    return _flip(e, e.op("stablehlo.bitcast_convert", [x], [bits]), bits), bits


def _sort_integers(e: Any, x: Any, aval: ShapedArray, dimension: int) -> Any:
    """One operand by one comparison of signed integers: XLA:CPU runs it natively (LOWERINGS "sort family")."""
    scalar, flag = ShapedArray((), aval.dtype), ShapedArray((), dtypes.bool_)
    region = ([scalar, scalar], lambda inner, a, b: [inner.compare("LT", a, b, flag, "SIGNED")])
    attrs = {"dimension": e.i64(dimension), "is_stable": e.flag(False)}
    return e.op("stablehlo.sort", [x], [aval], attrs=attrs, regions=(region,))


def _sort_floats(e: Any, x: Any, aval: ShapedArray, dimension: int) -> Any:
    wide = aval if aval.dtype.itemsize >= 4 else aval.update(dtype=dtypes.float32)
    x = x if wide is aval else e.convert(x, wide)
    key, bits = _as_integer(e, _one_nan(e, x, wide), wide)
    y = e.op("stablehlo.bitcast_convert", [_flip(e, _sort_integers(e, key, bits, dimension), bits)], [wide])
    return y if wide is aval else e.convert(y, aval)


def _packs(dtype: Any) -> bool:
    """Whether a key of this dtype fits the upper half of 64 bits."""
    if dtypes.is_float(dtype):
        return dtype.itemsize in (2, 4)
    return dtype == dtypes.bool_ or (dtypes.is_integer(dtype) and dtype.itemsize <= 4)


def _sort_packed(e: Any, operands: Sequence[Any], dimension: int) -> list[Any]:
    """Key and position in one integer, sorted natively; then all operands are gathered by position. Stable."""
    key, x = e.ins[0], operands[0]
    if dtypes.is_float(key.dtype):
        wide = key.update(dtype=dtypes.float32)
        x = x if wide is key else e.convert(x, wide)
        x, key = _as_integer(e, _one_zero(e, _one_nan(e, x, wide), wide), wide)
    long, index = key.update(dtype=dtypes.int64), key.update(dtype=dtypes.int32)
    places = e.op("stablehlo.iota", [], [long], attrs={"iota_dimension": e.i64(dimension)})
    high = e.op("stablehlo.shift_left", [e.convert(x, long), e.full(32, long)], [long])
    packed = _sort_integers(e, e.op("stablehlo.or", [high, places], [long]), long, dimension)
    order = e.convert(e.op("stablehlo.and", [packed, e.full(2**32 - 1, long)], [long]), index)
    column = index.update(shape=(*index.shape, 1))
    order = e.op("stablehlo.reshape", [order], [column])
    others = [d for d in range(index.ndim) if d != dimension]
    numbers = e.attr(
        f"#stablehlo.gather<offset_dims = [], collapsed_slice_dims = [{dimension}], operand_batching_dims = {others}, "
        f"start_indices_batching_dims = {others}, start_index_map = [{dimension}], index_vector_dim = {index.ndim}>"
    )
    attrs = {"dimension_numbers": numbers, "slice_sizes": e.i64s([1] * index.ndim), "indices_are_sorted": e.flag(False)}
    return [e.op("stablehlo.gather", [v, order], [a], attrs=attrs) for v, a in zip(operands, e.outs, strict=True)]


# ------------------------------------------------------------------------------------------------ derivative, batching
def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, dimension: int, **params: Any) -> Any:
    """Tangents go where their elements go: positions are sorted along."""
    shape = aval_of(primals[0]).shape
    places = S.iota(dtype=dtypes.int32, shape=shape, dimension=dimension)
    *outs, order = sort(*primals, places, dimension=dimension, **params)
    return outs, [None if t is None else along(t, order, dimension) for t in tangents]


def _batch(axis: Axis, args: Sequence[Any], dims: Sequence[Any], *, dimension: int, **params: Any) -> Any:
    args, at = align(axis, args, dims)
    return sort(*args, dimension=dimension + (dimension >= at), **params), [at] * len(args)


def _samples() -> list[Sample]:
    def one(*operands: Any, dimension: int = 0, num_keys: int = 1, smooth: bool = True) -> Sample:
        avals = [a if isinstance(a, np.ndarray) else ShapedArray(*a) for a in operands]
        return Sample(tuple(avals), {"dimension": dimension, "is_stable": True, "num_keys": num_keys}, smooth=smooth)

    ties = np.array([[1, 0, 1, 0, 1], [2, 2, 1, 1, 0]], np.int32)
    nans = np.array([np.nan, 1, np.inf, -np.nan, -np.inf, 0.5], np.float32)
    return [
        one(((5,), "float32")),
        one(((2, 3), "float32"), dimension=1),
        one(((2, 3, 4), "float32"), dimension=1),
        one(((0, 3), "float32")),
        one(((3,), "float64")),
        *(one(((4,), d)) for d in ("bfloat16", "int32", "uint8", "bool")),
        one(((4,), "complex64"), smooth=False),
        one(((5,), "float32"), ((5,), "float32")),
        one(((2, 5), "float32"), ((2, 5), "int32"), ((2, 5), "complex64"), dimension=1),
        one(ties, ((2, 5), "float32"), dimension=1),
        one(ties.astype(np.uint8), ((2, 5), "bool"), ((2, 5), "bfloat16"), num_keys=2),
        one(((4,), "complex64"), ((4,), "float32"), smooth=False),
        one(nans, smooth=False),
        one(nans, np.arange(6), smooth=False),
    ]


sort = Primitive(
    "sort",
    shape=_shape,
    ref=_ref,
    lower=_lower,
    jvp=_jvp,
    transpose=No("sort is not linear in its keys; differentiate it with its jvp rule"),
    batch=_batch,
    samples=_samples,
    multiple=True,
)
