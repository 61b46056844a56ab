"""ragged_dot and ragged_contract: rows in groups, each group with a product of its own.

Of `lhs[..., m, k]`, the first group_sizes[0] rows are the first group, the next group_sizes[1] rows the second, and so
on. `ragged_dot` multiplies the rows of group g by `rhs[..., g, k, n]`; rows that are left over give zeros.
`ragged_contract` contracts the rows of each group with those of `rhs[..., m, n]`, for a result [..., g, k, n]. Leading
dimensions are batches, the same for all. Each is the other's derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import BatchAxis, SampleInput, UndefinedPrimal, aval_of
from functorch_like.errors import DtypeError, ShapeError
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.base.accumulating import widened
from functorch_like.primitives.base.bilinear import both_unknown
from functorch_like.primitives.base.lowering import Lowering
from functorch_like.primitives.contractions.precision import Product, check_precision, emit_dot, exchanged
from functorch_like.primitives.contractions.ragged_dot_cpu import bounds_of_groups, contract_by_tiles, dot_by_tiles


def _checked(lhs: ShapedArray, rhs: ShapedArray, sizes: ShapedArray, precision: Any) -> None:
    check_precision(precision, lhs.dtype)
    if lhs.dtype != rhs.dtype or lhs.dtype == dtypes.bool_:
        raise DtypeError(f"{lhs!r} and {rhs!r} must be numbers of one dtype", fix="convert one of them with astype")
    if not dtypes.is_integer(sizes.dtype):
        raise DtypeError(f"group sizes {sizes!r} must be integers", fix="convert them with astype('int32')")


def _result(lhs: ShapedArray, rhs: ShapedArray, shape: tuple[int, ...], preferred: Any) -> ShapedArray:
    dtype = preferred or lhs.dtype
    return ShapedArray(shape, dtype, lhs.weak_type and rhs.weak_type and dtype == lhs.dtype)


def _dot_shape(
    lhs: ShapedArray, rhs: ShapedArray, sizes: ShapedArray, *, precision: Any = None, preferred_element_type: Any = None
) -> ShapedArray:
    _checked(lhs, rhs, sizes, precision)
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
    return _result(lhs, rhs, (*lhs.shape[:-1], rhs.shape[-1]), preferred_element_type)


def _contract_shape(
    lhs: ShapedArray, rhs: ShapedArray, sizes: ShapedArray, *, precision: Any = None, preferred_element_type: Any = None
) -> ShapedArray:
    _checked(lhs, rhs, sizes, precision)
    if lhs.ndim < 2 or lhs.shape[:-1] != rhs.shape[:-1] or sizes.ndim < 1 or sizes.shape[:-1] != lhs.shape[:-2]:
        raise ShapeError(
            f"{lhs!r}, {rhs!r} and group sizes {sizes!r} do not fit", fix="give shapes (m, k), (m, n) and (g,)"
        )
    return _result(lhs, rhs, (*sizes.shape, lhs.shape[-1], rhs.shape[-1]), preferred_element_type)


def _accumulator(dtype: Any, preferred: Any) -> tuple[Any, Any]:
    """Return the dtype in which NumPy sums, and that of the result."""
    out = np.dtype(preferred or dtype)
    small = dtype.itemsize < 4 and dtypes.is_float(dtype)
    return np.float32 if small else np.promote_types(dtype, out), out


def _groups(sizes: Any) -> Any:
    """Yield each group's place in a batch, and the slice of its rows."""
    for at in np.ndindex(*sizes.shape[:-1]):
        ends = np.cumsum(sizes[at])
        for group, (end, size) in enumerate(zip(ends, sizes[at], strict=True)):
            yield at, group, slice(int(end - size), int(end))


def _dot_ref(lhs: Any, rhs: Any, sizes: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    wide, dtype = _accumulator(lhs.dtype, preferred_element_type)
    out = np.zeros((*lhs.shape[:-1], rhs.shape[-1]), wide)
    for at, group, rows in _groups(sizes):
        out[at][rows] = lhs[at][rows].astype(wide) @ rhs[at][group].astype(wide)
    return out.astype(dtype)


def _contract_ref(lhs: Any, rhs: Any, sizes: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    wide, dtype = _accumulator(lhs.dtype, preferred_element_type)
    out = np.zeros((*sizes.shape, lhs.shape[-1], rhs.shape[-1]), wide)
    for at, group, rows in _groups(sizes):
        out[at][group] = lhs[at][rows].astype(wide).T @ rhs[at][rows].astype(wide)
    return out.astype(dtype)


def _rows_by_group(e: Any, lhs: Any, sizes: Any) -> tuple[Any, ShapedArray]:
    """Emit rows for each group, (..., g, m, k), that are zero outside of their own group."""
    left, counts = e.ins[0], e.ins[2]
    b, (m, k), g = len(left.shape) - 2, left.shape[-2:], counts.shape[-1]
    index = counts.update(dtype=dtypes.int32)
    flags = lambda aval: aval.update(dtype=dtypes.bool_)
    starts, ends = bounds_of_groups(e, sizes, counts)
    grid = index.update(shape=(*left.shape[:b], g, m))
    row = e.op("stablehlo.iota", [], [grid], {"iota_dimension": e.i64(b + 1)})
    bound = lambda x: e.broadcast_in_dim(x, grid, range(b + 1))
    inside = [e.compare(how, row, bound(edge), flags(grid), "SIGNED") for how, edge in (("GE", starts), ("LT", ends))]
    masked = left.update(shape=(*left.shape[:b], g, m, k))
    mask = e.broadcast_in_dim(e.op("stablehlo.and", inside, [flags(grid)]), flags(masked), range(b + 2))
    repeated = e.broadcast_in_dim(lhs, masked, [*range(b), b + 1, b + 2])
    return e.op("stablehlo.select", [mask, repeated, e.full(0, masked)], [masked]), masked


def _dot_lower(
    e: Any, lhs: Any, rhs: Any, sizes: Any, *, precision: Any = None, preferred_element_type: Any = None
) -> Any:
    """A dot over groups and k at once, of rows that are zero outside of their own group."""
    (out,) = e.outs
    b = out.ndim - 2
    wide = widened(out) if e.platform == "cpu" else out
    rows, masked = _rows_by_group(e, lhs, sizes)
    contract, batch = ((b, b + 2), (b, b + 1)), (range(b), range(b))
    return e.convert(emit_dot(e, rows, rhs, masked, e.ins[1], wide, contract, batch, precision), out)


def _contract_lower(
    e: Any, lhs: Any, rhs: Any, sizes: Any, *, precision: Any = None, preferred_element_type: Any = None
) -> Any:
    """A dot over all rows for each group, of rows that are zero outside of their own group."""
    (out,) = e.outs
    b = out.ndim - 3
    wide = widened(out) if e.platform == "cpu" else out
    rows, masked = _rows_by_group(e, lhs, sizes)
    contract, batch = ((b + 1,), (b,)), (range(b), range(b))
    return e.convert(emit_dot(e, rows, rhs, masked, e.ins[1], wide, contract, batch, precision), out)


def _bilinear(name: str, transpose: Callable[..., Any], **facts: Any) -> Product:
    """A product of two operands; the third, the sizes, has no derivative."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        (lhs, rhs, sizes), (dl, dr, _) = primals, tangents
        parts = [] if dl is None else [primitive(dl, rhs, sizes, **params)]
        parts += [] if dr is None else [primitive(lhs, dr, sizes, **params)]
        return primitive(*primals, **params), parts[0] if len(parts) == 1 else elementwise.add(*parts)

    def transposed(
        ct: Any, args: Sequence[Any], *, precision: Any = None, preferred_element_type: Any = None
    ) -> list[Any]:
        lhs, rhs, sizes = args
        if both_unknown(name, lhs, rhs):
            return [None, None, None]
        dtype = aval_of(lhs).dtype
        if aval_of(ct).dtype != dtype:
            ct = structural.convert_element_type(ct, new_dtype=dtype)
        facts = {"precision": exchanged(precision), "preferred_element_type": None}
        return [*transpose(ct, lhs, rhs, sizes, facts), None]

    def batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Any], **params: Any) -> tuple[Any, int]:
        leading = [
            structural.widen(a, axis.size) if d is None else structural.move(a, d, 0)
            for a, d in zip(args, dims, strict=True)
        ]
        return primitive(*leading, **params), 0

    primitive = Product(name, jvp=jvp, transpose=transposed, batch=batch, **facts)
    return primitive


def _turned(x: Any) -> Any:
    ndim = aval_of(x).ndim
    return structural.transpose(x, permutation=(*range(ndim - 2), ndim - 1, ndim - 2))


def _dot_transpose(ct: Any, lhs: Any, rhs: Any, sizes: Any, facts: dict[str, Any]) -> list[Any]:
    if isinstance(rhs, UndefinedPrimal):
        return [None, ragged_contract(lhs, ct, sizes, **facts)]
    return [ragged_dot(ct, _turned(rhs), sizes, **facts), None]


def _contract_transpose(ct: Any, lhs: Any, rhs: Any, sizes: Any, facts: dict[str, Any]) -> list[Any]:
    if isinstance(rhs, UndefinedPrimal):
        return [None, ragged_dot(lhs, ct, sizes, **facts)]
    return [ragged_dot(rhs, _turned(ct), sizes, **facts), None]


def _sample(lhs: Any, rhs: Any, sizes: Any, dtype: str = "float32", **params: Any) -> SampleInput:
    params = {"precision": None, "preferred_element_type": None} | params
    return SampleInput((ShapedArray(lhs, dtype), ShapedArray(rhs, dtype), np.array(sizes, np.int32)), params)


def _dot_samples() -> list[SampleInput]:
    return [
        _sample((5, 3), (2, 3, 4), [2, 3]),
        _sample((6, 2), (3, 2, 1), [1, 0, 3]),  # an empty group, and rows left over
        _sample((2, 4, 3), (2, 2, 3, 2), [[1, 3], [2, 0]]),
        _sample((0, 3), (2, 3, 2), [0, 0]),
        _sample((3, 0), (1, 0, 2), [3]),
        _sample((4, 2), (2, 2, 3), [1, 3], "float64", precision="highest"),
        _sample((4, 2), (2, 2, 3), [1, 3], "int32"),
        _sample((4, 2), (2, 2, 3), [1, 3], "complex64"),
        _sample((4, 2), (2, 2, 3), [2, 1], "bfloat16"),
        _sample((4, 2), (2, 2, 3), [2, 1], "bfloat16", preferred_element_type=np.dtype(np.float32)),
    ]


def _contract_samples() -> list[SampleInput]:
    return [
        _sample((5, 3), (5, 4), [2, 3]),
        _sample((6, 2), (6, 1), [1, 0, 3]),  # an empty group, and rows left over
        _sample((2, 4, 3), (2, 4, 2), [[1, 3], [2, 0]]),
        _sample((0, 3), (0, 2), [0, 0]),
        _sample((3, 0), (3, 2), [3]),
        _sample((4, 2), (4, 3), [1, 3], "float64", precision="highest"),
        _sample((4, 2), (4, 3), [1, 3], "int32"),
        _sample((4, 2), (4, 3), [1, 3], "complex64"),
        _sample((4, 2), (4, 3), [2, 1], "bfloat16"),
        _sample((4, 2), (4, 3), [2, 1], "bfloat16", preferred_element_type=np.dtype(np.float32)),
    ]


ragged_dot = _bilinear(
    "ragged_dot",
    _dot_transpose,
    shape=_dot_shape,
    ref=_dot_ref,
    lower=Lowering("ragged_dot", _dot_lower, dot_by_tiles(_sample)),
    samples=_dot_samples,
)

ragged_contract = _bilinear(
    "ragged_contract",
    _contract_transpose,
    shape=_contract_shape,
    ref=_contract_ref,
    lower=Lowering("ragged_contract", _contract_lower, contract_by_tiles(_sample)),
    samples=_contract_samples,
)
