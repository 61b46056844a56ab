"""ragged_dot: rows in groups, each group times a matrix of its own.

Of `lhs[..., m, k]`, the first group_sizes[0] rows are multiplied by `rhs[..., 0, k, n]`, the next group_sizes[1] rows
by `rhs[..., 1, k, n]`, and so on; rows that are left over give zeros. Leading dimensions are batches, the same for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import BatchAxis, SampleInput, UndefinedPrimal, aval_of
from functorch_like.errors import DtypeError, ShapeError
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.base.accumulating import widened
from functorch_like.primitives.base.bilinear import both_unknown
from functorch_like.primitives.contractions.dot_general import dot_general
from functorch_like.primitives.contractions.precision import Product, check_precision, emit_dot, exchanged
from functorch_like.primitives.reductions.cumulative import cumsum


def _shape(
    lhs: ShapedArray, rhs: ShapedArray, sizes: ShapedArray, *, precision: Any = None, preferred_element_type: Any = None
) -> ShapedArray:
    check_precision(precision, lhs.dtype)
    if lhs.dtype != rhs.dtype or lhs.dtype == dtypes.bool_:
        raise DtypeError(f"{lhs!r} and {rhs!r} must be numbers of one dtype", fix="convert one of them with astype")
    if not dtypes.is_integer(sizes.dtype):
        raise DtypeError(f"group sizes {sizes!r} must be integers", fix="convert them with astype('int32')")
    lead = lhs.shape[:-2]
    fits = (
        lhs.ndim >= 2
        and rhs.ndim == lhs.ndim + 1
        and rhs.shape[:-3] == lead
        and sizes.shape == rhs.shape[:-2]
        and lhs.shape[-1] == rhs.shape[-2]
    )
    if not fits:
        raise ShapeError(
            f"{lhs!r}, {rhs!r} and group sizes {sizes!r} do not fit", fix="give shapes (m, k), (g, k, n) and (g,)"
        )
    dtype = preferred_element_type or lhs.dtype
    return ShapedArray((*lhs.shape[:-1], rhs.shape[-1]), dtype, lhs.weak_type and rhs.weak_type and dtype == lhs.dtype)


def _ref(lhs: Any, rhs: Any, sizes: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    out_dtype = np.dtype(preferred_element_type or lhs.dtype)
    small = lhs.dtype.itemsize < 4 and dtypes.is_float(lhs.dtype)
    wide = np.float32 if small else np.promote_types(lhs.dtype, out_dtype)
    out = np.zeros((*lhs.shape[:-1], rhs.shape[-1]), wide)
    for at in np.ndindex(*lhs.shape[:-2]):
        start = 0
        for group, size in enumerate(sizes[at]):
            rows = slice(start, start + int(size))
            out[at][rows] = lhs[at][rows].astype(wide) @ rhs[at][group].astype(wide)
            start += int(size)
    return out.astype(out_dtype)


def _lower(e: Any, lhs: Any, rhs: Any, sizes: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """A dot over groups and k at once, of rows that are zero outside of their own group."""
    left, right, counts = e.ins
    (out,) = e.outs
    b, (m, k), g = len(left.shape) - 2, left.shape[-2:], right.shape[-3]
    lead = left.shape[:b]
    index = counts.update(dtype=dtypes.int32)
    op = lambda name, xs, aval, **attrs: e.op(f"stablehlo.{name}", xs, [aval], attrs=attrs)
    # Where groups end: the sum of all sizes up to each. g is small, so a square of comparisons will do.
    square = index.update(shape=(*lead, g, g))
    flags = lambda aval: aval.update(dtype=dtypes.bool_)
    i, j = (op("iota", [], square, iota_dimension=e.i64(b + d)) for d in (0, 1))
    spread = e.broadcast_in_dim(e.convert(sizes, index), square, [*range(b), b + 1])
    earlier = op("select", [e.compare("LE", j, i, flags(square), "SIGNED"), spread, e.full(0, square)], square)
    ends = e.reduce("add", earlier, 0, [b + 1], index)
    starts = op("subtract", [ends, e.convert(sizes, index)], index)
    grid = index.update(shape=(*lead, g, m))
    row = op("iota", [], grid, iota_dimension=e.i64(b + 1))
    bound = lambda x: e.broadcast_in_dim(x, grid, range(b + 1))
    inside = [e.compare(how, row, bound(edge), flags(grid), "SIGNED") for how, edge in (("GE", starts), ("LT", ends))]
    masked = left.update(shape=(*lead, g, m, k))
    mask = e.broadcast_in_dim(op("and", inside, flags(grid)), flags(masked), range(b + 2))
    repeated = e.broadcast_in_dim(lhs, masked, [*range(b), b + 1, b + 2])
    rows = op("select", [mask, repeated, e.full(0, masked)], masked)
    wide = widened(out) if e.platform == "cpu" else out
    contract, batch = ((b, b + 2), (b, b + 1)), (range(b), range(b))
    return e.convert(emit_dot(e, rows, rhs, masked, right, wide, contract, batch, precision), out)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    (lhs, rhs, sizes), (dl, dr, _) = primals, tangents
    parts = [] if dl is None else [ragged_dot(dl, rhs, sizes, **params)]
    parts += [] if dr is None else [ragged_dot(lhs, dr, sizes, **params)]
    return ragged_dot(*primals, **params), parts[0] if len(parts) == 1 else elementwise.add(*parts)


def _membership(sizes: Any, lead: tuple[int, ...], m: int) -> Any:
    """Return the mask bool[..., g, m] of the rows that belong to each group."""
    b, g = len(lead), aval_of(sizes).shape[-1]
    sizes = structural.convert_element_type(sizes, new_dtype=dtypes.int32)
    ends = cumsum(sizes, axis=b, reverse=False)
    row = structural.iota(dtype=dtypes.int32, shape=(*lead, g, m), dimension=b + 1)
    bound = lambda x: structural.widen(x, m, b + 1)
    return elementwise.and_(elementwise.ge(row, bound(elementwise.sub(ends, sizes))), elementwise.lt(row, bound(ends)))


def _transpose(ct: Any, args: Sequence[Any], *, precision: Any = None, preferred_element_type: Any = None) -> list[Any]:
    lhs, rhs, sizes = args
    b = aval_of(lhs).ndim - 2
    dtype = aval_of(lhs).dtype
    if aval_of(ct).dtype != dtype:
        ct = structural.convert_element_type(ct, new_dtype=dtype)
    flip = exchanged(precision)
    if both_unknown("ragged_dot", lhs, rhs):
        return [None, None, None]
    if isinstance(rhs, UndefinedPrimal):
        lead, (m, _) = aval_of(lhs).shape[:b], aval_of(lhs).shape[b:]
        mask = structural.widen(_membership(sizes, lead, m), aval_of(lhs).shape[-1], b + 2)
        repeated = structural.widen(lhs, aval_of(sizes).shape[-1], b)
        rows = elementwise.select_n(mask, structural.full_like(repeated, 0), repeated)
        numbers = (((b + 1,), (b,)), (tuple(range(b)), tuple(range(b))))
        return [None, dot_general(rows, ct, dimension_numbers=numbers, precision=flip), None]
    swap = (*range(b + 1), b + 2, b + 1)
    turned = structural.transpose(rhs, permutation=swap)
    return [ragged_dot(ct, turned, sizes, precision=flip, preferred_element_type=None), None, None]


def _batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Any], **params: Any) -> tuple[Any, int]:
    leading = [
        structural.widen(a, axis.size) if d is None else structural.move(a, d, 0)
        for a, d in zip(args, dims, strict=True)
    ]
    return ragged_dot(*leading, **params), 0


def _samples() -> list[SampleInput]:
    def one(lhs: Any, rhs: Any, sizes: Any, dtype: str = "float32", **params: Any) -> SampleInput:
        params = {"precision": None, "preferred_element_type": None} | params
        return SampleInput((ShapedArray(lhs, dtype), ShapedArray(rhs, dtype), np.array(sizes, np.int32)), params)

    return [
        one((5, 3), (2, 3, 4), [2, 3]),
        one((6, 2), (3, 2, 1), [1, 0, 3]),  # an empty group, and rows left over
        one((2, 4, 3), (2, 2, 3, 2), [[1, 3], [2, 0]]),
        one((0, 3), (2, 3, 2), [0, 0]),
        one((3, 0), (1, 0, 2), [3]),
        one((4, 2), (2, 2, 3), [1, 3], "float64", precision="highest"),
        one((4, 2), (2, 2, 3), [1, 3], "int32"),
        one((4, 2), (2, 2, 3), [1, 3], "complex64"),
        one((4, 2), (2, 2, 3), [2, 1], "bfloat16"),
        one((4, 2), (2, 2, 3), [2, 1], "bfloat16", preferred_element_type=np.dtype(np.float32)),
    ]


ragged_dot = Product(
    "ragged_dot",
    shape=_shape,
    ref=_ref,
    lower=_lower,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    samples=_samples,
)
