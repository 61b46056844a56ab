"""Segment reductions: elements of an array with equal segment numbers are combined."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ConcretizationError, DtypeError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import shape_of
from functorch_like.numpy.guarded_sizes import guarded_size
from functorch_like.numpy.indexing import mode_of
from functorch_like.numpy.shapes import arr
from functorch_like.primitives.indexing.dimension_numbers import ScatterDimensionNumbers
from functorch_like.primitives.indexing.gather_and_scatter_add import scatter_add
from functorch_like.primitives.updates.scatter import scatter_max, scatter_min, scatter_mul
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike

    class SegmentReduction(Protocol):
        """A reduction of segments."""

        __name__: str

        def __call__(
            self,
            data: ArrayLike,
            segment_ids: ArrayLike,
            num_segments: int | None = None,
            indices_are_sorted: bool = False,
            unique_indices: bool = False,
            bucket_size: int | None = None,
            mode: str | None = None,
        ) -> Array:
            """Compute the operation that the function's own docstring describes."""
            ...


_DOC = """{summary}

    Args:
        data: (n, ...) array; or one number, for each element.
        segment_ids: (n,) integers, in any order; with several dimensions, they are the first dimensions of data.
        num_segments: first size of the result. By default the greatest segment number plus 1; traced segment_ids
            need it.
        indices_are_sorted: promise that segment_ids are in ascending order; otherwise the result is wrong.
        unique_indices: promise that no segment number is repeated; otherwise the result is wrong.
        bucket_size: number of elements that are reduced to partial results, which are then combined: the rounding
            errors of long sums become smaller.
        mode: treatment of numbers outside of 0 ... num_segments - 1. "fill" and "drop" (the default) leave these
            elements out; "clip" moves them to the nearest segment; "promise_in_bounds" promises that there are none.

    Returns:
        (num_segments, ...) array in the dtype of data. {empty}

    Raises:
        ShapeError: if segment_ids do not have the first dimensions of data.
        DtypeError: if segment_ids are not integers.
        ArgumentError: if bucket_size is not positive.
        ConcretizationError: for traced segment_ids without num_segments.

    >>> ft.ops.{name}(fnp.asarray([5, 2, 3]), fnp.asarray([0, 0, 1])).tolist()
    {shows}
    """

_UPDATES = {"add": scatter_add, "multiply": scatter_mul, "max": scatter_max, "min": scatter_min}


def _segments(name: str, method: str, start: Any, summary: str, empty: str, shows: str) -> SegmentReduction:
    """Make a segment reduction; `start` gives the value of an empty segment for a dtype."""

    @eager_jit(static=("count", "is_sorted", "unique", "bucket", "mode"))
    def run(data: Any, ids: Any, count: int, is_sorted: bool, unique: bool, bucket: int | None, mode: str) -> Any:
        rank, n = aval_of(ids).ndim, aval_of(ids).size
        rest = aval_of(data).shape[rank:]
        data, ids = fnp.reshape(data, (n, *rest)), fnp.reshape(ids, (n,))
        ids = ids.astype(dtypes.int64 if aval_of(ids).dtype.itemsize > 4 else dtypes.int32)
        if mode == "clip":
            ids = fnp.clip(ids, 0, max(count - 1, 0))
        rows = 1 if not bucket else max(math.ceil(n / bucket), 1)
        if rows > 1:  # number segments per bucket, so that each bucket has its partial results
            ids = fnp.where(ids < 0, count, ids)
            ids = fnp.where(ids < count, ids + fnp.arange(n, dtype=ids.dtype) // bucket * count, rows * count)  # pyright: ignore[reportOperatorIssue]
        dtype = aval_of(data).dtype
        out = fnp.full((rows * count, *rest), start(dtype), dtype)
        # Negative segment numbers are out of bounds, not counted from the end.
        if dtype == dtypes.bool_:
            update = getattr(out.at[fnp.where(ids < 0, rows * count, ids)], method)
            out = update(data, indices_are_sorted=is_sorted and rows == 1, unique_indices=unique, mode="drop")
        else:
            out = _UPDATES[method](
                out, fnp.reshape(ids, (n, 1)), promotion.convert(data, dtype), mode="fill",
                dimension_numbers=ScatterDimensionNumbers(tuple(range(1, aval_of(data).ndim)), (0,), (0,)),
                indices_are_sorted=is_sorted and rows == 1, unique_indices=unique,
            )  # fmt: skip
        combined = {"add": fnp.sum, "multiply": fnp.prod, "max": fnp.max, "min": fnp.min}[method]
        return out if rows == 1 else combined(fnp.reshape(out, (rows, count, *rest)), axis=0).astype(dtype)

    def function(
        data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None, indices_are_sorted: bool = False,
        unique_indices: bool = False, bucket_size: int | None = None, mode: str | None = None,
    ) -> Array:  # fmt: skip
        what = f"ops.{name}"
        data, ids = arr(data, what), arr(segment_ids, what)
        a, b = aval_of(data), aval_of(ids)
        if not dtypes.is_integer(b.dtype):
            raise promotion.error(
                DtypeError, f"the segment_ids of {what}, {b!r}, are not integers", "convert with astype(int)"
            )
        if not a.ndim and b.ndim:  # the same number for each element
            data = promotion.broadcast(data, b.shape)
        elif a.shape[: b.ndim] != b.shape or not b.ndim:
            raise promotion.error(
                ShapeError, f"{what} of {a!r} by {b!r}", "give one number for each first element of data"
            )
        if bucket_size is not None and not bucket_size > 0:
            raise promotion.error(
                ArgumentError, f"{what} with bucket_size={bucket_size}", "give a positive int, or None"
            )
        count = _count(ids, what) if num_segments is None else shape_of(num_segments, what)[0]
        how = mode_of(mode, "fill", what)
        return run(
            data, ids, count=count, is_sorted=bool(indices_are_sorted), unique=bool(unique_indices),
            bucket=bucket_size, mode=how,
        )  # fmt: skip

    doc = _DOC.format(name=name, summary=summary, empty=empty, shows=shows)
    return promotion.named(function, name, doc, __name__)


def _count(ids: Any, what: str) -> int:
    known = getattr(ids, "concrete", lambda: ids)()  # None for a tracer without a concrete value
    if known is None and aval_of(ids).size:
        known = guarded_size(fnp.max(ids))
    if known is None:
        raise promotion.error(
            ConcretizationError, f"{what} of traced segment_ids has an unknown number of segments",
            "pass num_segments",
        )  # fmt: skip
    return int(np.max(np.asarray(known), initial=-1)) + 1


def _least(dtype: Any) -> Any:
    return False if dtype == dtypes.bool_ else -math.inf if dtypes.is_inexact(dtype) else promotion.bounds(dtype)[0]


def _greatest(dtype: Any) -> Any:
    return True if dtype == dtypes.bool_ else math.inf if dtypes.is_inexact(dtype) else promotion.bounds(dtype)[1]


segment_sum = _segments(
    "segment_sum", "add", lambda dtype: 0, "The sum of each segment.", "An empty segment gives 0.", "[7, 3]"
)
segment_prod = _segments(
    "segment_prod", "multiply", lambda dtype: 1, "The product of each segment.", "An empty segment gives 1.", "[10, 3]"
)
segment_max = _segments(
    "segment_max", "max", _least, "The greatest element of each segment.",
    "An empty segment gives the least value of the dtype: -inf for floats.", "[5, 3]",
)  # fmt: skip
segment_min = _segments(
    "segment_min", "min", _greatest, "The least element of each segment.",
    "An empty segment gives the greatest value of the dtype: inf for floats.", "[2, 3]",
)  # fmt: skip
