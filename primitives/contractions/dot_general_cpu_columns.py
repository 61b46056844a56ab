"""Products whose left operand XLA:CPU reads by columns: its contracted dimensions come before its free ones.

The gradient of `x @ w` with respect to w is such a product, and so is `x.T @ y`. XLA's kernel reads the columns again
and again: for (1024, 1024) and (1024, 10), contracted first in both, it takes 17 times as long as with the operands
exchanged. In columns of 2**n elements, furthermore, all elements fall into few sets of the cache.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.backends.xla.jaxlib_api import VERSION
from functorch_like.core import SampleInput
from functorch_like.primitives.base.lowering import Alternative
from functorch_like.primitives.contractions.dot_dimensions import free_dims
from functorch_like.primitives.contractions.dot_general_cpu import dot_sample
from functorch_like.primitives.contractions.precision import emit_dot, exchanged, rounded

#: Elements of a left operand from which on its layout matters; and up to which a transpose in float32 is worth it.
LARGE, LARGEST = 1 << 14, 1 << 19
#: Free elements of either operand from which on YNNPACK's kernels are as fast in spite of a transpose, or faster: in
#: float64, where the other kernel has no AVX-512; and in float32 for multiples of WIDE, from FEW terms on. Up to MOST
#: free elements, or twice as many if the left operand is half as large. (A process that never calls the other kernel
#: saves 26 ms, in which oneDNN generates it.)
WIDE, FEW, MOST = 64, 8, 512
#: True if products in batches are computed like single ones; before, oneDNN has its own way with them.
_BATCHES = VERSION >= (0, 11)


class _Sizes(NamedTuple):
    """Sizes of a product in float32 or float64 whose left operand is read by columns."""

    terms: int
    rows: int
    columns: int
    batch: int


def _by_columns(ins: Sequence[ShapedArray], outs: Sequence[ShapedArray], numbers: Any, precision: Any) -> _Sizes | None:
    (lc, rc), (lb, rb) = numbers
    left, right = ins
    if left.dtype not in (dtypes.float32, dtypes.float64) or not left.dtype == right.dtype == outs[0].dtype:
        return None
    if rounded(precision, left.dtype, "cpu"):
        return None
    size = lambda aval, dims: math.prod(aval.shape[d] for d in dims)
    free = free_dims(left.ndim, lc, lb)
    if [*lb, *lc, *free] != [*range(left.ndim)] or not lc or not free:
        return None
    return _Sizes(size(left, lc), size(left, free), size(right, free_dims(right.ndim, rc, rb)), size(left, lb))


def _is_thin(ins: Any, outs: Any, *, dimension_numbers: Any, precision: Any = None, **_: Any) -> bool:
    sizes = _by_columns(ins, outs, dimension_numbers, precision)
    if sizes is None or (sizes.batch > 1 and not _BATCHES):
        return False
    terms, rows, columns = sizes.terms, sizes.rows, sizes.columns
    thin = (rows >= 4 * columns and terms >= 2 * columns) or (rows >= 2 * columns and terms >= 4 * columns)
    turned = outs[0].dtype == dtypes.float64 and columns >= WIDE
    return columns > 1 and thin and terms * rows >= LARGE and not turned


def _exchanged(e: Any, lhs: Any, rhs: Any, *, dimension_numbers: Any, precision: Any = None, **_: Any) -> Any:
    """The product with its operands exchanged, then transposed."""
    (lc, rc), (lb, rb) = dimension_numbers
    (left, right), (out,) = e.ins, e.outs
    batch, rows = len(lb), left.ndim - len(lb) - len(lc)
    columns = out.ndim - batch - rows
    order = [*range(batch), *range(batch + columns, out.ndim), *range(batch, batch + columns)]
    made = out.update(shape=(*out.shape[:batch], *out.shape[batch + rows :], *out.shape[batch : batch + rows]))
    y = emit_dot(e, rhs, lhs, right, left, made, (rc, lc), (rb, lb), exchanged(precision))
    y = e.op("stablehlo.optimization_barrier", [y], [made])  # XLA would exchange them again
    return e.op("stablehlo.transpose", [y], [out], attrs={"permutation": e.i64s(order)})


def _is_wide(ins: Any, outs: Any, *, dimension_numbers: Any, precision: Any = None, **_: Any) -> bool:
    sizes = _by_columns(ins, outs, dimension_numbers, precision)
    if sizes is None or dimension_numbers[1][0] or min(sizes.rows, sizes.columns) < WIDE:
        return False
    if outs[0].dtype == dtypes.float64:
        return sizes.terms * sizes.rows >= LARGE
    most = max(sizes.rows, sizes.columns)
    fits = most <= 2 * MOST and sizes.terms * sizes.rows <= (LARGEST if most <= MOST else LARGEST // 2)
    return fits and sizes.terms >= FEW and sizes.rows % WIDE == sizes.columns % WIDE == 0


def _turned(e: Any, lhs: Any, rhs: Any, *, dimension_numbers: Any, precision: Any = None, **_: Any) -> Any:
    """The product of the left operand's transpose, which YNNPACK computes."""
    (lc, rc), batch = dimension_numbers
    (left, right), (out,) = e.ins, e.outs
    order = (*range(len(lc), left.ndim), *range(len(lc)))
    turned = left.update(shape=tuple(left.shape[d] for d in order))
    lhs = _transposed(e, lhs, left, turned, order)
    last = tuple(range(left.ndim - len(lc), left.ndim))
    return emit_dot(e, lhs, rhs, turned, right, out, (last, rc), batch, precision)


def _transposed(e: Any, x: Any, aval: ShapedArray, turned: ShapedArray, order: Sequence[int]) -> Any:
    """The left operand with its contracted dimensions last, as an array in memory."""
    transpose = lambda inner, x: inner.op("stablehlo.transpose", [x], [turned], attrs={"permutation": e.i64s(order)})
    if aval.size < LARGE or e.partitioning is not None:  # XLA's partitioner works on one function at a time
        return e.op("stablehlo.optimization_barrier", [transpose(e, x)], [turned])  # or it becomes part of the product
    # In a function of its own XLA transposes by blocks. Elsewhere it computes the operand once more, along columns:
    # 131,072 elements take 1.3 ms in place of 0.1, as long as the product.
    made = lambda inner, x: [inner.by_rows(transpose(inner, x), turned)]
    symbol = e.function(("transposed", aval, tuple(order)), "transpose", [aval], [turned], made)
    return e.call(symbol, [x], [turned], inline=False)[0]


def _thin_edges() -> list[tuple[SampleInput, bool]]:
    both = lambda k, m, n, **params: dot_sample((k, m), (k, n), ((0,), (0,)), **params)
    stack = lambda b, k, m, n: dot_sample((b, k, m), (b, k, n), ((1,), (1,)), ((0,), (0,)))
    return [
        (both(64, 256, 2), True),
        (both(64, 255, 2), False),
        (both(64, 256, 1), False),
        (both(128, 256, 64), True),
        (both(127, 256, 64), False),
        (both(256, 128, 64), True),
        (both(255, 128, 64), False),
        (both(1024, 64, 33), False),
        (both(64, 256, 8, dtype="float64"), True),
        (both(256, 256, 63, dtype="float64"), True),
        (both(64, 256, 8, dtype="complex64"), False),
        (both(64, 256, 8, dtype="bfloat16"), False),
        (dot_sample((256, 64), (64, 2), ((1,), (0,))), False),
        (dot_sample((8, 16, 4, 32), (3, 16, 8, 2), ((0, 1), (2, 1)), precision=("high", "highest")), True),
        (dot_sample((8, 16, 4, 32), (3, 16, 8, 2), ((1, 0), (1, 2))), False),
        (stack(3, 64, 256, 4), _BATCHES),
        (stack(1, 64, 256, 4), True),
    ]


def _wide_edges() -> list[tuple[SampleInput, bool]]:
    both = lambda k, m, n, dtype="float64": dot_sample((k, m), (k, n), ((0,), (0,)), dtype=dtype)
    # Small terms: sums of 8,192 terms of the usual size are known to 1e-4.
    long = lambda k: dataclasses.replace(both(k, WIDE, WIDE, "float32"), domain=(-0.25, 0.25))
    return [
        (both(256, WIDE, WIDE), True),
        (both(255, WIDE, WIDE), False),
        (both(300, WIDE, WIDE - 1), False),
        (both(300, WIDE - 1, WIDE), False),
        (both(FEW, WIDE, WIDE, "float32"), True),
        (both(FEW - 1, WIDE, WIDE, "float32"), False),
        (both(FEW, WIDE, WIDE + 32, "float32"), False),
        (long(LARGEST // WIDE), True),
        (long(LARGEST // WIDE + 1), False),
        (both(FEW, WIDE, 2 * MOST, "float32"), True),
        (both(FEW, WIDE, 2 * MOST + WIDE, "float32"), False),
        (both(LARGEST // MOST // 4, 2 * MOST, MOST, "float32"), True),
        (both(LARGEST // MOST // 4 + 1, 2 * MOST, MOST, "float32"), False),
        (dot_sample((16, 16, 2, 40), (3, 32, 16, 16), ((0, 1), (2, 3)), dtype="float64"), True),
        (dot_sample((2, 256, WIDE), (2, 256, WIDE), ((1,), (1,)), ((0,), (0,)), dtype="float64"), False),
    ]


TURNED = Alternative(
    "left operand transposed before",
    f"the left operand contracted before its free dimensions, no batch, {WIDE} or more free elements on both sides; in "
    f"float64 a left operand of {LARGE} elements or more; in float32 of at most {LARGEST}, {FEW} terms or more, and "
    f"multiples of {WIDE} up to {MOST}, or of half as many and up to {2 * MOST}",
    _is_wide,
    _turned,
    _wide_edges,
)
EXCHANGED = Alternative(
    "operands exchanged, the result transposed",
    f"float32 and float64, the left operand contracted before its free dimensions, from {LARGE} elements; of 2 free "
    "elements or more on the right, at least 4 times as many on the left, and 2 times as many terms; or 2 and 4 times; "
    "in batches from jaxlib 0.11 on",
    _is_thin,
    _exchanged,
    _thin_edges,
)
