"""Sorting by integers (docs/lowerings.md): floats as integers of the same order, and a key with its position in one
integer. XLA:CPU sorts few integers natively, and NumPy's kernel sorts many. Several keys, and those of 64 bits, are
sorted by one after the other, the least important first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import SampleInput
from functorch_like.primitives.base.lowering import Alternative
from functorch_like.primitives.base.rows_at import rows_at
from functorch_like.primitives.ordering.keys import as_integer, flip, one_nan, one_zero

#: The distance between neighbours, in elements, from which sorting a copy that has them side by side is faster.
FAR = 2048
#: The number of elements from which NumPy's kernel is faster. Fewer gain less than calling it takes.
MANY = 512
#: The same of a row: of 32 and 64 bits, of key and position in one integer, and of 8 and 16 bits, which NumPy sorts by
#: counting.
ROW, PACKED_ROW, NARROW_ROW = 4, 8, 32


def _many(ins: Any, dimension: int, row: int) -> bool:
    return ins[0].size >= MANY and ins[0].shape[dimension] >= row


def _many_alone(ins: Any, dimension: int) -> bool:
    return _many(ins, dimension, ROW if ins[0].dtype.itemsize >= 4 else NARROW_ROW)


def _sort_on_host(e: Any, x: Any, aval: ShapedArray, dimension: int, place: Any = None) -> Any:
    """Sort integers by NumPy's kernel, which orders rows: all of a row, or the elements at a place and behind it."""
    last = aval.ndim - 1
    if dimension == last:
        return e.ordered_rows(x, aval, place)
    swap = [last if d == dimension else dimension if d == last else d for d in range(aval.ndim)]
    turned = aval.update(shape=tuple(aval.shape[d] for d in swap))
    turn = lambda v, out: e.op("stablehlo.transpose", [v], [out], attrs={"permutation": e.i64s(swap)})
    return turn(e.ordered_rows(turn(x, turned), turned, place), aval)


def sort_integers(e: Any, x: Any, aval: ShapedArray, dimension: int) -> Any:
    """Sort one operand by one comparison of signed integers: XLA:CPU runs it natively (docs/lowerings.md).

    Elements far from each other in memory are brought together first: four times faster.
    """
    last = aval.ndim - 1
    if math.prod(aval.shape[dimension + 1 :]) >= FAR:
        swap = [last if d == dimension else dimension if d == last else d for d in range(aval.ndim)]
        turned = aval.update(shape=tuple(aval.shape[d] for d in swap))
        turn = lambda v, out: e.op("stablehlo.transpose", [v], [out], attrs={"permutation": e.i64s(swap)})
        fixed = lambda v: e.op("stablehlo.optimization_barrier", [v], [turned])
        return turn(fixed(sort_integers(e, fixed(turn(x, turned)), turned, last)), aval)
    scalar, flag = ShapedArray((), aval.dtype), ShapedArray((), dtypes.bool_)
    region = ([scalar, scalar], lambda inner, a, b: [inner.compare("LT", a, b, flag, "SIGNED")])
    attrs = {"dimension": e.i64(dimension), "is_stable": e.flag(False)}
    return e.op("stablehlo.sort", [x], [aval], attrs=attrs, regions=(region,))


def order_on_host(e: Any, x: Any, aval: ShapedArray, dimension: int, place: Any = None) -> Any:
    """Sort numbers by NumPy's kernel, floats as integers of the same order."""
    if not dtypes.is_float(aval.dtype):
        return _sort_on_host(e, x, aval, dimension, place)
    key, bits = as_integer(e, one_nan(e, x, aval), aval)
    return e.op("stablehlo.bitcast_convert", [flip(e, _sort_on_host(e, key, bits, dimension, place), bits)], [aval])


def _sort_one_on_host(e: Any, x: Any, *, dimension: int, **_: Any) -> list[Any]:
    return [order_on_host(e, x, e.ins[0], dimension)]


def _sort_floats(e: Any, x: Any, *, dimension: int, **_: Any) -> list[Any]:
    (aval,) = e.ins
    wide = aval if aval.dtype.itemsize >= 4 else aval.update(dtype=dtypes.float32)
    x = x if wide is aval else e.convert(x, wide)
    key, bits = as_integer(e, one_nan(e, x, wide), wide)
    y = e.op("stablehlo.bitcast_convert", [flip(e, sort_integers(e, key, bits, dimension), bits)], [wide])
    return [y if wide is aval else e.convert(y, aval)]


#: The most sorts of one operand that take the place of one sort by several keys. For 1,000 elements each takes a tenth
#: of the time that XLA needs for two keys, for 200,000 a fiftieth.
_MOST_PARTS = 8


def _parts(dtype: Any) -> int:
    """Return the number of 32-bit integers by which the elements of a key are ordered; 0 for other dtypes."""
    if dtypes.is_float(dtype):
        return {2: 1, 4: 1, 8: 2}.get(dtype.itemsize, 0)
    whole = dtype == dtypes.bool_ or dtypes.is_integer(dtype)
    return (2 if dtype.itemsize == 8 else 1) if whole else 0


def _packs(ins: Sequence[ShapedArray], num_keys: int) -> bool:
    """Return True for several operands whose keys are ordered by few 32-bit integers."""
    parts = [_parts(key.dtype) for key in ins[:num_keys]]
    return len(ins) > 1 and all(parts) and sum(parts) <= _MOST_PARTS


def _integer_parts(e: Any, x: Any, key: ShapedArray) -> list[Any]:
    """Emit the integers from -2**31 to 2**31 - 1 by which a key is ordered, in 64 bits, the most important first."""
    if dtypes.is_float(key.dtype):
        wide = key if key.dtype.itemsize == 8 else key.update(dtype=dtypes.float32)
        x = x if wide is key else e.convert(x, wide)
        x, key = as_integer(e, one_zero(e, one_nan(e, x, wide), wide), wide)
    long = key.update(dtype=dtypes.int64)
    op = lambda name, x, n: e.op(f"stablehlo.{name}", [x, e.full(n, long)], [long])
    if _parts(key.dtype) == 1:
        x = e.convert(x, long)
        return [op("subtract", x, 2**31) if key.dtype == dtypes.uint32 else x]
    if key.dtype == dtypes.uint64:
        x = op("xor", e.op("stablehlo.bitcast_convert", [x], [long]), -(2**63))
    return [op("shift_right_arithmetic", x, 32), op("subtract", op("and", x, 2**32 - 1), 2**31)]


def _sort_packed(e: Any, *operands: Any, dimension: int, num_keys: int = 1, **_: Any) -> list[Any]:
    return _sort_by_position(e, operands, dimension, num_keys, sort_integers)


def _sort_packed_on_host(e: Any, *operands: Any, dimension: int, num_keys: int = 1, **_: Any) -> list[Any]:
    return _sort_by_position(e, operands, dimension, num_keys, _sort_on_host)


def _sort_by_position(
    e: Any, operands: Sequence[Any], dimension: int, num_keys: int, sort: Callable[..., Any]
) -> list[Any]:
    """Sort key and position in one integer, by the least important key first; then gather all operands. Stable."""
    long, index = (e.ins[0].update(dtype=dtype) for dtype in (dtypes.int64, dtypes.int32))
    parts = [p for x, key in zip(operands[:num_keys], e.ins, strict=False) for p in _integer_parts(e, x, key)]
    places = e.op("stablehlo.iota", [], [long], attrs={"iota_dimension": e.i64(dimension)})
    op = lambda name, x, y: e.op(f"stablehlo.{name}", [x, y], [long])
    order: Any = None
    for x in reversed(parts):
        x = x if order is None else rows_at(e, x, order, long, index, dimension)
        packed = sort(e, op("or", op("shift_left", x, e.full(32, long)), places), long, dimension)
        now = e.convert(op("and", packed, e.full(2**32 - 1, long)), index)
        order = now if order is None else rows_at(e, order, now, index, index, dimension)
    return [rows_at(e, v, order, a, index, dimension) for v, a in zip(operands, e.outs, strict=True)]


def sort_sample(*operands: Any, dimension: int = 0, num_keys: int = 1, smooth: bool = True) -> SampleInput:
    """A sample of sort: arrays, or shapes and dtypes."""
    avals = [a if isinstance(a, np.ndarray) else ShapedArray(*a) for a in operands]
    return SampleInput(tuple(avals), {"dimension": dimension, "is_stable": True, "num_keys": num_keys}, smooth=smooth)


def _apart(n: int) -> Any:
    """Three rows of n numbers, out of order in every direction."""
    return (np.arange(3 * n).reshape(3, n) * 7919 % 1009).astype(np.float32)


def _float_edges() -> list[tuple[SampleInput, bool]]:
    extremes = np.array([0.0, -0.0, np.inf, -np.inf, 1e-45, -1e-45, 3.4e38, -np.nan, np.nan], np.float32)
    taken = [extremes, extremes.astype(np.float64), np.zeros((1, 1, 1), np.float16)]
    left = [
        np.array([2, -1], np.int64),
        np.array([1, 0.5], np.float32).astype(dtypes.FLOAT8[0]),
        np.zeros((0,), np.float32),
    ]
    far = [(sort_sample(_apart(n)), True) for n in (FAR - 1, FAR)]
    return [*((sort_sample(x), True) for x in taken), *((sort_sample(x), False) for x in left), *far]


def _packed_edges() -> list[tuple[SampleInput, bool]]:
    places = np.arange(4, dtype=np.int32)
    int32, uint32 = dtypes.iinfo(np.int32), dtypes.iinfo(np.uint32)
    taken = [
        np.array([int32.max, int32.min, -1, int32.max], np.int32),
        np.array([uint32.max, 0, 2**31, uint32.max], np.uint32),
        np.array([0.0, -0.0, np.nan, -np.inf], np.float32),
    ]
    taken += [
        np.array([2, -(2**60), 2**60, 2]),
        np.array([2**64 - 1, 2**63, 0, 2**32], np.uint64),
        np.array([1.0, -0.0, 0.0, np.nan]),
    ]
    ties = np.array([[1, 0, 1, 0, 1], [2, 2, 1, 1, 0]], np.int32)
    rows, wide = np.arange(10).reshape(2, 5), ties.astype(np.float64)
    return [
        *((sort_sample(x, places), True) for x in taken),
        (sort_sample(np.ones(4, np.complex64), places), False),
        (sort_sample(*[wide] * 4, rows, dimension=1, num_keys=4), True),
        (sort_sample(*[wide] * 4, rows, dimension=1, num_keys=5), False),
        (sort_sample(ties, ties[::-1].copy(), rows, num_keys=2), True),
        (sort_sample(ties == 1, -wide, rows, dimension=1, num_keys=2), True),
        (sort_sample(_apart(FAR), np.arange(3 * FAR).reshape(3, FAR)), True),
    ]


def counted(shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    """All over the range of a dtype, with equal ones; of floats also zeros of both signs, infinities and NaNs."""
    places = np.arange(math.prod(shape)).reshape(shape) * 7919 % 1009
    if not dtypes.is_float(np.dtype(dtype)):
        least, most = int(dtypes.iinfo(dtype).min), int(dtypes.iinfo(dtype).max)
        return np.array([least + p * ((most - least) // 1008) for p in places.ravel().tolist()], dtype).reshape(shape)
    numbers = ((places - 500.0) / 8).astype(dtype)
    flat = numbers.reshape(-1)
    flat[1::97], flat[2::89] = -0.0, 0.0
    flat[3::101], flat[4::103], flat[5::107], flat[6::109] = np.nan, -np.nan, np.inf, -np.inf
    return numbers


ON_HOST = ("bfloat16", "float16", "float32", "float64", *(f"{u}int{b}" for u in ("", "u") for b in (8, 16, 32, 64)))


def _host_edges() -> list[tuple[SampleInput, bool]]:
    taken = [sort_sample(counted((2 * MANY,), dtypes.as_dtype(d))) for d in ON_HOST]
    taken += [sort_sample(counted((ROW, MANY // 16, ROW), np.float32), dimension=d) for d in range(3)]
    taken += [sort_sample(counted((MANY // NARROW_ROW, NARROW_ROW), np.int16), dimension=1)]
    left = [sort_sample(counted((MANY - 1,), d)) for d in (np.float32, np.int32)]
    left += [sort_sample(counted((MANY, ROW - 1), np.int32), dimension=1), sort_sample(np.arange(MANY) % 3 == 1)]
    left += [sort_sample(counted((MANY, NARROW_ROW - 1), np.int16), dimension=1)]
    return [*((s, True) for s in taken), *((s, False) for s in left)]


def _packed_host_edges() -> list[tuple[SampleInput, bool]]:
    places = np.arange(MANY, dtype=np.int32)
    kinds = ("bfloat16", "float16", "float32", "int8", "uint16", "int32", "uint32")
    taken = [sort_sample(counted((MANY,), dtypes.as_dtype(d)), places) for d in kinds]
    rows = counted((PACKED_ROW, MANY // PACKED_ROW), np.int16)
    taken += [sort_sample(rows, rows.astype(np.float64), rows == 3, dimension=d) for d in (0, 1)]
    taken += [sort_sample(counted((MANY,), d), places) for d in (np.int64, np.uint64, np.float64)]
    taken += [sort_sample(counted((MANY,), np.float64), counted((MANY,), np.int8), places, num_keys=2)]
    left = [sort_sample(counted((MANY - 1,), np.int32), places[1:]), sort_sample(np.ones(MANY, np.complex64), places)]
    short = counted((MANY, PACKED_ROW - 1), np.int32)
    left += [sort_sample(short, short.astype(np.float32), dimension=1)]
    return [*((s, True) for s in taken), *((s, False) for s in left)]


_PACKED = f"several operands, keys of at most {_MOST_PARTS} times 32 bits (64 count twice), not complex"
FORMS = (
    Alternative(
        "NumPy's kernel, floats as integers",
        f"one operand of 8 to 64 bits (floats: 16), no booleans, from {MANY} elements, {ROW} in a row, or "
        f"{NARROW_ROW} of 8 and 16 bits",
        lambda ins, outs, *, dimension, **_: (
            len(ins) == 1 and ins[0].dtype.name in ON_HOST and _many_alone(ins, dimension)
        ),
        _sort_one_on_host,
        _host_edges,
        on_host=True,
    ),
    Alternative(
        "NumPy's kernel, key and position in one integer",
        f"{_PACKED}, from {MANY} elements, {PACKED_ROW} in a row",
        lambda ins, outs, *, dimension, num_keys=1, **_: _packs(ins, num_keys) and _many(ins, dimension, PACKED_ROW),
        _sort_packed_on_host,
        _packed_host_edges,
        on_host=True,
    ),
    Alternative(
        "keys as integers",
        "one floating operand of at least 16 bits",
        lambda ins, outs, **_: (
            len(ins) == 1 and dtypes.is_float(ins[0].dtype) and ins[0].dtype.itemsize > 1 and ins[0].size > 0
        ),
        _sort_floats,
        _float_edges,
    ),
    Alternative(
        "key and position in one integer",
        _PACKED,
        lambda ins, outs, *, num_keys=1, **_: _packs(ins, num_keys) and ins[0].size > 0,
        _sort_packed,
        _packed_edges,
    ),
)
