"""gather: slices of one operand, taken at starts that are data; and scatter_add, its transpose.

`indices` holds start positions in its last dimension; each of its other dimensions gives a dimension of the result
(a *batch* dimension of gather), and each slice taken gives the *offset* dimensions. What is out of bounds is clamped
('clip'), replaced by a fill value or not written ('fill'), or promised not to be there ('promise_in_bounds').
Negative positions are out of bounds here: counting from the end is the business of the user-level functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import Primitive, SampleInput, UndefinedPrimal, aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.primitives import structural
from functorch_like.primitives.indexing.dimension_numbers import (
    MODES,
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
    check_window,
    last_starts,
    plain_indices,
    starts_of,
)
from functorch_like.primitives.indexing.scatter_makers import scatter_primitive


def _shape(
    operand: ShapedArray, indices: ShapedArray, *, dimension_numbers: GatherDimensionNumbers,
    slice_sizes: tuple[int, ...], mode: str = "fill", fill_value: Any = None,
    indices_are_sorted: bool = False, unique_indices: bool = False,
) -> ShapedArray:  # fmt: skip
    n = dimension_numbers
    if mode not in MODES:
        raise ArgumentError(f"mode={mode!r} is unknown", fix=f"use one of {', '.join(map(repr, MODES))}")
    check_window(
        "gather", operand, indices, n.start_index_map, slice_sizes, n.collapsed_slice_dims,
        n.operand_batching_dims, n.start_indices_batching_dims,
    )  # fmt: skip
    inside = [slice_sizes[d] for d in n.offset_operand_dims(operand.ndim)]
    ndim = indices.ndim - 1 + len(inside)
    if len(n.offset_dims) != len(inside) or not all(0 <= d < ndim for d in n.offset_dims):
        raise ShapeError(
            f"offset_dims={n.offset_dims} do not name {len(inside)} of {ndim} dimensions of the result of gathering "
            f"{operand!r} at {indices!r}",
            fix="give one for each dimension of the operand that is neither collapsed nor batching",
        )
    rest, inner = iter(indices.shape[:-1]), iter(inside)
    return operand.update(shape=tuple(next(inner) if d in n.offset_dims else next(rest) for d in range(ndim)))


def fill_parameter(fill_value: Any) -> Any:
    """Return a user's fill value as the primitive takes it: -0.0 as text, because as a number it equals 0.0."""
    if isinstance(fill_value, (float, complex, np.inexact)) and fill_value == 0 and "-" in repr(fill_value):
        return repr(fill_value.item() if isinstance(fill_value, np.generic) else fill_value)
    return fill_value


def fill_of(dtype: Any, fill_value: Any) -> Any:
    """Return the fill value for elements out of bounds: NaN, the smallest signed or greatest unsigned integer, True."""
    if isinstance(fill_value, str):
        fill_value = complex(fill_value) if "j" in fill_value else float(fill_value)
    if fill_value is None:
        if dtypes.is_inexact(dtype):
            fill_value = np.nan
        elif dtype == dtypes.bool_:
            fill_value = True
        else:
            fill_value = dtypes.iinfo(dtype).min if dtypes.is_signed(dtype) else dtypes.iinfo(dtype).max
    return np.array(fill_value).astype(dtype)


def _ref(
    operand: Any, indices: Any, *, dimension_numbers: GatherDimensionNumbers, slice_sizes: tuple[int, ...],
    mode: str = "fill", fill_value: Any = None, **_: Any,
) -> Any:  # fmt: skip
    n, sizes = dimension_numbers, slice_sizes
    aval = _shape(
        ShapedArray(operand.shape, operand.dtype), ShapedArray(indices.shape, indices.dtype),
        dimension_numbers=n, slice_sizes=sizes,
    )  # fmt: skip
    kept = n.offset_operand_dims(operand.ndim)
    batch = [d for d in range(aval.ndim) if d not in n.offset_dims]
    out = np.empty(aval.shape, operand.dtype)
    view = out.transpose((*batch, *n.offset_dims))
    starts = starts_of(indices, n.start_index_map, n.operand_batching_dims, n.start_indices_batching_dims, operand.ndim)
    for at, start in starts:
        top = [m - s for m, s in zip(operand.shape, sizes, strict=True)]
        inside = all(0 <= i <= t for i, t in zip(start, top, strict=True)) and operand.size
        if inside or (mode != "fill" and operand.size):
            start = [min(max(i, 0), t) for i, t in zip(start, top, strict=True)]
            window = operand[tuple(slice(i, i + s) for i, s in zip(start, sizes, strict=True))]
            view[at] = window.reshape([sizes[d] for d in kept])
        else:
            view[at] = fill_of(operand.dtype, fill_value)
    return out


def _lower(
    e: Any, operand: Any, indices: Any, *, dimension_numbers: GatherDimensionNumbers, slice_sizes: tuple[int, ...],
    mode: str = "fill", fill_value: Any = None, indices_are_sorted: bool = False, unique_indices: bool = False,
) -> Any:  # fmt: skip
    n = dimension_numbers
    (aval, at), (out,) = e.ins, e.outs
    if out.size and not aval.size:  # all positions are out of bounds
        e.forbid_template()  # fill values that are equal may be 0.0 and -0.0
        return e.full(fill_of(out.dtype, fill_value), out)
    indices, at = plain_indices(e, indices, at)
    parts = {
        "offset_dims": n.offset_dims,
        "collapsed_slice_dims": n.collapsed_slice_dims,
        "operand_batching_dims": n.operand_batching_dims,
        "start_indices_batching_dims": n.start_indices_batching_dims,
        "start_index_map": n.start_index_map,
    }
    text = ", ".join(f"{name} = [{', '.join(map(str, dims))}]" for name, dims in parts.items())
    attrs = {
        "dimension_numbers": e.attr(f"#stablehlo.gather<{text}, index_vector_dim = {at.ndim - 1}>"),
        "slice_sizes": e.i64s(slice_sizes),
        "indices_are_sorted": e.flag(indices_are_sorted),
    }
    y = e.op("stablehlo.gather", [operand, indices], [out], attrs=attrs)
    if mode != "fill" or not n.start_index_map:
        return y
    flags = at.update(dtype=dtypes.bool_)
    top = e.constant(last_starts(aval.shape, slice_sizes, n.start_index_map, at.dtype))
    low = e.compare("GE", indices, e.full(0, at), flags, "SIGNED")
    high = e.compare("LE", indices, e.broadcast_in_dim(top, at, [at.ndim - 1]), flags, "SIGNED")
    inside = e.op("stablehlo.and", [low, high], [flags])
    some = flags.update(shape=at.shape[:-1])
    inside = e.reduce("and", inside, np.array(True), [at.ndim - 1], some)
    batch = [d for d in range(out.ndim) if d not in n.offset_dims]
    inside = e.broadcast_in_dim(inside, out.update(dtype=dtypes.bool_), batch)
    return e.op("stablehlo.select", [inside, y, e.full(fill_of(out.dtype, fill_value), out)], [out])


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    operand, indices = primals
    out = gather(operand, indices, **params)
    return out, gather(tangents[0], indices, **(params | {"fill_value": 0}))


def _batch(
    axis: Any, args: Sequence[Any], dims: Sequence[Any], *, dimension_numbers: GatherDimensionNumbers,
    slice_sizes: tuple[int, ...], **params: Any,
) -> Any:  # fmt: skip
    (operand, indices), (od, xd) = args, dims
    n = dimension_numbers
    up = lambda ds: tuple(d + 1 for d in ds)
    if od is not None:
        operand = structural.move(operand, od, 0)
        moved = n._replace(
            collapsed_slice_dims=up(n.collapsed_slice_dims),
            operand_batching_dims=up(n.operand_batching_dims),
            start_index_map=up(n.start_index_map),
        )
    if xd is not None:
        indices = structural.move(indices, xd, 0)
    if od is None:  # more indices
        n = n._replace(offset_dims=up(n.offset_dims), start_indices_batching_dims=up(n.start_indices_batching_dims))
    elif xd is None:  # each slice runs over the whole new dimension
        n = moved._replace(offset_dims=(0, *up(n.offset_dims)))
        slice_sizes = (axis.size, *slice_sizes)
    else:
        n = moved._replace(
            offset_dims=up(n.offset_dims),
            operand_batching_dims=(0, *moved.operand_batching_dims),
            start_indices_batching_dims=(0, *up(n.start_indices_batching_dims)),
        )
        slice_sizes = (min(axis.size, 1), *slice_sizes)
        params = params | {"indices_are_sorted": False}
    return gather(operand, indices, dimension_numbers=n, slice_sizes=slice_sizes, **params), 0


def _transpose(
    ct: Any, args: Sequence[Any], *, dimension_numbers: GatherDimensionNumbers, slice_sizes: tuple[int, ...],
    fill_value: Any = None, **params: Any,
) -> list[Any]:  # fmt: skip
    """Sum the cotangents of all slices that read an element."""
    operand, indices = args
    if not aval_of(ct).size:
        return [structural.zeros(operand.aval), None]
    n = ScatterDimensionNumbers(*dimension_numbers)
    return [scatter_add(structural.zeros(operand.aval), indices, ct, dimension_numbers=n, **params), None]


def _samples() -> list[SampleInput]:
    points, rows = GatherDimensionNumbers((), (0,), (0,)), GatherDimensionNumbers((1,), (0,), (0,))
    window = GatherDimensionNumbers((1, 2), (), (1, 0))
    int32 = lambda *v: np.array(v, np.int32)

    def one(shape: Any, indices: Any, sizes: Any, n: Any, dtype: str = "float32", **params: Any) -> SampleInput:
        params = {
            "dimension_numbers": n, "slice_sizes": sizes, "mode": "clip", "fill_value": None,
            "indices_are_sorted": False, "unique_indices": False, **params,
        }  # fmt: skip
        return SampleInput((ShapedArray(shape, dtype), indices), params)

    return [
        one((5,), int32([1], [3]), (1,), points, mode="promise_in_bounds", unique_indices=True),
        one((5,), int32([3]), (1,), points, indices_are_sorted=True),
        one((5,), int32([1], [3], [1], [7], [-1]), (1,), points),
        one((5,), int32([1], [3], [1], [7], [-1]), (1,), points, mode="fill", fill_value=1.5),
        one((4, 3), int32([[2], [0]], [[2], [5]]), (1, 2), rows, mode="fill", fill_value=0),
        one((4, 3), int32([1, 2], [0, 0], [2, 9]), (2, 2), window),
        one((4, 3), int32([1, 2], [0, 0], [2, 9]), (2, 2), window, mode="fill", fill_value=0),
        one((2, 4), int32([1], [3]), (1, 2), GatherDimensionNumbers((1,), (), (1,), (0,), (0,))),
        one(
            (2, 4),
            int32([1], [3]),
            (1, 1),
            GatherDimensionNumbers((), (1,), (1,), (0,), (0,)),
            mode="fill",
            fill_value=0,
        ),
        one((3,), np.zeros((0, 1), np.int32), (1,), points),
        one((3, 2), np.zeros((0,), np.int32), (3, 1), GatherDimensionNumbers((0, 1), (), ())),
        one((5,), np.array([[1], [3], [200]], np.uint8), (1,), points, "complex64"),
        *(one((5,), int32([1], [-3], [4]), (1,), points, d, mode="fill") for d in ("int32", "uint8", "bool")),
        one((5,), np.array([[1], [3]], np.uint64), (1,), points, "bfloat16"),
    ]


gather = Primitive(
    "gather",
    shape=_shape,
    ref=_ref,
    lower=_lower,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    samples=_samples,
    kind="movement",
    linear="jointly",
)


def along(operand: Any, indices: Any, dimension: int, *, unique: bool = True) -> Any:
    """`numpy.take_along_axis`, for positions known to be in bounds, and different unless `unique` is False."""
    shape = aval_of(indices).shape
    others = tuple(d for d in range(len(shape)) if d != dimension)
    return gather(
        operand,
        structural.reshape(indices, shape=(*shape, 1)),
        dimension_numbers=GatherDimensionNumbers((), (dimension,), (dimension,), others, others),
        slice_sizes=tuple(min(n, 1) for n in aval_of(operand).shape),
        mode="promise_in_bounds",
        fill_value=None,
        indices_are_sorted=False,
        unique_indices=unique,
    )


# ----------------------------------------------------------------------------------------------------- scatter_add
def _add_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    operand, indices, updates = primals
    out = scatter_add(operand, indices, updates, **params)
    base, _, news = tangents
    if news is None:
        return out, base
    return out, scatter_add(structural.zeros(aval_of(operand)) if base is None else base, indices, news, **params)


def read_back(ct: Any, indices: Any, updates: ShapedArray, params: dict[str, Any]) -> Any:
    """Read from ct what a scatter with these parameters would write, in the shape of its updates; zero if dropped."""
    n = params["dimension_numbers"]
    return gather(
        ct,
        indices,
        dimension_numbers=n.gathers(),
        slice_sizes=n.sizes(aval_of(ct), updates),
        mode="fill" if params["mode"] == "drop" else params["mode"],
        fill_value=0,
        indices_are_sorted=params.get("indices_are_sorted", False),
        unique_indices=params.get("unique_indices", False),
    )


def _add_transpose(ct: Any, args: Sequence[Any], **params: Any) -> list[Any]:
    operand, indices, updates = args
    return [
        ct if type(operand) is UndefinedPrimal else None,
        None,
        read_back(ct, indices, updates.aval, params) if type(updates) is UndefinedPrimal else None,
    ]


scatter_add = scatter_primitive(
    "scatter_add", np.add, "add", _add_jvp, _add_transpose, lambda dtype: dtype != dtypes.bool_,
    "float32", "int32", "complex64", "bfloat16", linear="jointly",
)  # fmt: skip
