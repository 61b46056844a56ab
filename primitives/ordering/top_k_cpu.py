"""top_k by XLA:CPU's kernel for f32, and of few groups of elements (docs/lowerings.md).

The kernel compares the bits of floats as integers, so it orders other numbers of up to 32 bits, too. Where few of many
elements are selected, they are among the groups of neighbours whose greatest elements are the k greatest: an element of
another group has k greater ones, or equal ones before it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import SampleInput
from functorch_like.primitives.base.lowering import Alternative
from functorch_like.primitives.base.rows_at import rows_at
from functorch_like.primitives.base.window_geometry import emit_pad
from functorch_like.primitives.ordering.keys import as_integer, flip, one_nan
from functorch_like.primitives.ordering.sort_cpu import sort_integers

#: Elements of a group. XLA:CPU reduces longer rows more slowly.
GROUP = 32
#: Groups are looked at where there are at least this many elements, and this many times k along the dimension. XLA has
#: no kernel for 64 bits, so that these gain from fewer elements sooner.
LARGE = 1 << 13
TIMES = {4: 256, 8: 64}


def _few(shape: tuple[int, ...], k: int, itemsize: int) -> bool:
    return math.prod(shape) >= LARGE and shape[-1] >= TIMES[itemsize] * k > 0


# ------------------------------------------------------------------------------------------------------ 32 bits as f32
def _to_single(e: Any, x: Any, aval: ShapedArray) -> tuple[Any, ShapedArray]:
    """Convert numbers to float32 in the same order; of 32-bit integers, the bits are rearranged instead."""
    single = aval.update(dtype=dtypes.float32)
    if dtypes.is_float(aval.dtype):
        return one_nan(e, e.convert(x, single), single), single
    if aval.dtype not in (dtypes.int32, dtypes.uint32):
        return e.convert(x, single), single
    return e.op("stablehlo.bitcast_convert", [_flipped(e, x, aval)], [single]), single


def _from_single(e: Any, y: Any, aval: ShapedArray) -> Any:
    if aval.dtype not in (dtypes.int32, dtypes.uint32):
        return e.convert(y, aval)
    bits = aval.update(dtype=dtypes.int32)
    return _unflipped(e, e.op("stablehlo.bitcast_convert", [y], [bits]), aval)


def _flipped(e: Any, x: Any, aval: ShapedArray) -> Any:
    """Return the bits, as int32, of float32 values that are in the order of these integers."""
    bits = aval.update(dtype=dtypes.int32)
    if aval.dtype == dtypes.uint32:
        half = e.op("stablehlo.xor", [x, e.full(np.uint32(1 << 31), aval)], [aval])
        x = e.op("stablehlo.bitcast_convert", [half], [bits])
    return flip(e, x, bits)


def _unflipped(e: Any, i: Any, aval: ShapedArray) -> Any:
    bits = aval.update(dtype=dtypes.int32)
    i = flip(e, i, bits)
    if aval.dtype == dtypes.int32:
        return i
    half = e.op("stablehlo.bitcast_convert", [i], [aval])
    return e.op("stablehlo.xor", [half, e.full(np.uint32(1 << 31), aval)], [aval])


def _as_single(e: Any, x: Any, *, k: int) -> list[Any]:
    (aval,) = e.ins
    y, single = _to_single(e, x, aval)
    top, at = _greatest(e, y, single, k)
    return [_from_single(e, top, e.outs[0]), at]


def _of_64_bits(e: Any, x: Any, *, k: int) -> list[Any]:
    (aval,) = e.ins
    return list(_greatest(e, one_nan(e, x, aval) if dtypes.is_float(aval.dtype) else x, aval, k))


# --------------------------------------------------------------------------------------------------------------- groups
def _greatest(e: Any, x: Any, aval: ShapedArray, k: int) -> tuple[Any, Any]:
    # A dimension that lies on several devices would have to be put together for its groups.
    if e.partitioning is None and _few(aval.shape, k, aval.dtype.itemsize):
        return _of_groups(e, x, aval, k)
    return _top(e, x, aval, k)


def _top(e: Any, x: Any, aval: ShapedArray, k: int) -> tuple[Any, Any]:
    out = aval.update(shape=(*aval.shape[:-1], k))
    values, at = e.op("chlo.top_k", [x], [out, out.update(dtype=dtypes.int32)], attrs={"k": e.i64(k)})
    return values, at


def _of_groups(e: Any, x: Any, aval: ShapedArray, k: int) -> tuple[Any, Any]:
    lead, n = aval.shape[:-1], aval.shape[-1]
    blocks = aval.update(shape=(*lead, -(-n // GROUP), GROUP))
    x = e.op("stablehlo.reshape", [_filled(e, e.materialized(x, aval), aval)], [blocks])
    chosen, index = _groups(e, x, blocks, k)
    grouped = aval.update(shape=(*lead, k * GROUP))
    candidates = e.op("stablehlo.reshape", [rows_at(e, x, chosen, blocks, index, index.ndim - 1)], [grouped])
    values, at = _top(e, candidates, grouped, k)
    group = e.op("stablehlo.shift_right_logical", [at, e.full(GROUP.bit_length() - 1, index)], [index])
    group = e.op(
        "stablehlo.multiply", [rows_at(e, chosen, group, index, index, index.ndim - 1), e.full(GROUP, index)], [index]
    )
    within = e.op("stablehlo.and", [at, e.full(GROUP - 1, index)], [index])
    return values, e.op("stablehlo.add", [group, within], [index])


def _filled(e: Any, x: Any, aval: ShapedArray) -> Any:
    """Whole groups: elements after the end that are greater than none."""
    after = [0] * (aval.ndim - 1) + [-aval.shape[-1] % GROUP]
    return emit_pad(e, x, aval, _least(aval.dtype), [0] * aval.ndim, after)[0]


def _least(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return the number that comes last; of float32 the one whose bits do, below any integer's."""
    if dtype == dtypes.float32:
        return np.array(-1, np.int32).view(np.float32)
    return np.array(-np.inf if dtypes.is_float(dtype) else dtypes.iinfo(dtype).min, dtype)


def _groups(e: Any, x: Any, blocks: ShapedArray, k: int) -> tuple[Any, ShapedArray]:
    """Return the k groups with the greatest elements, in the order of their places."""
    rows = blocks.update(shape=blocks.shape[:-1])
    if dtypes.is_float(blocks.dtype):  # 0 and -0, which are equal for a maximum of floats
        keys, bits = as_integer(e, x, blocks)
        whole = bits.update(shape=rows.shape)
        most = e.reduce("maximum", keys, dtypes.iinfo(bits.dtype).min, [rows.ndim], whole)
        most = e.op("stablehlo.bitcast_convert", [flip(e, most, whole)], [rows])
    else:
        most = e.reduce("maximum", x, dtypes.iinfo(blocks.dtype).min, [rows.ndim], rows)
    _, chosen = _top(e, most, rows, k)
    index = rows.update(shape=(*rows.shape[:-1], k), dtype=dtypes.int32)
    return sort_integers(e, chosen, index, index.ndim - 1), index


# ---------------------------------------------------------------------------------------------------------------- forms
def _sample(x: Any, k: int) -> SampleInput:
    return SampleInput((x,), {"k": k}, smooth=False)


def _integers(n: int, dtype: Any) -> np.ndarray[Any, Any]:
    """All over the range of a dtype, with equal ones and both ends."""
    least, most = int(dtypes.iinfo(dtype).min), int(dtypes.iinfo(dtype).max)
    spread = [least + i * 7919 % 1009 * (most - least >> 10) for i in range(n - 3)]
    return np.array([*spread, most, least, most], dtype)


def _floats(n: int, dtype: Any) -> np.ndarray[Any, Any]:
    """Out of order, with equal ones, zeros of both signs, infinities and NaNs."""
    numbers = (np.arange(n) * 7919 % 1009 - 1000).astype(dtype)
    numbers[1 : n // 2 : 5] = -0.0
    numbers[3 : n // 3 : 7] = 0.0
    numbers[-6:] = [np.inf, -np.inf, np.nan, -np.nan, np.inf, 0]
    return numbers


def _single_edges() -> list[tuple[SampleInput, bool]]:
    small = [(_sample(_integers(40, d), 7), True) for d in ("int8", "uint16", "int32", "uint32")]
    halves = [(_sample(_floats(40, d), 33), True) for d in ("float16", dtypes.bfloat16)]
    sizes = [(LARGE, LARGE // TIMES[4]), (LARGE, LARGE // TIMES[4] + 1), (LARGE - 1, 3), (LARGE + 5, 9)]
    large = [(_sample(_floats(n, np.float32), k), True) for n, k in sizes]
    all_low = (_sample(np.full((2, LARGE + 3), -np.inf, np.float32), 20), True)
    many = [(_sample(_integers(LARGE + 3, d), 20), True) for d in ("int32", "uint32")]
    batch = (_sample(_floats(3 * 4096, np.float32).reshape(3, 4096), 12), True)
    return [*small, *halves, *large, all_low, *many, batch, (_sample(np.zeros((0, 4), np.float32), 2), False)]


def _double_edges() -> list[tuple[SampleInput, bool]]:
    few = LARGE // TIMES[8]
    taken = [_sample(_floats(LARGE, np.float64), few), _sample(_floats(LARGE + 9, np.float64), 5)]
    taken += [_sample(_integers(LARGE + 1, d), 6) for d in ("int64", "uint64")]
    left = [_sample(_floats(LARGE, np.float64), few + 1), _sample(_integers(LARGE - 1, "int64"), 2)]
    return [*((s, True) for s in taken), *((s, False) for s in left)]


FORMS = (
    Alternative(
        "the kernel for f32, of few groups where k is small",
        "at most 32 bits",
        lambda ins, outs, *, k: ins[0].dtype.itemsize <= 4 and ins[0].size > 0 and k > 0,
        _as_single,
        _single_edges,
        slow_compile=True,
    ),
    Alternative(
        "elements of few groups",
        f"64 bits, from {LARGE} elements and {TIMES[8]} k of them in a row",
        lambda ins, outs, *, k: ins[0].dtype.itemsize == 8 and _few(ins[0].shape, k, 8),
        _of_64_bits,
        _double_edges,
        slow_compile=True,
    ),
)
