"""Reductions over segments: elements of an array combined with those that have the same number."""

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
        data: (n, ...).
        segment_ids: n whole numbers, in any order; or several dimensions, as those that data begins with.
        num_segments: the size of the result. By default one more than the greatest number, which must be known then.
        indices_are_sorted: whether the numbers do not fall. A promise; other numbers give wrong results.
        unique_indices: whether no number comes twice. A promise likewise.
        bucket_size: of so many elements the results are computed first, and then combined: in floating point the
            errors of long sums are smaller so.
        mode: of numbers that are not in 0 ... num_segments - 1: "fill" or "drop", as by default, leaves these
            elements out; "clip" counts them to the nearest; "promise_in_bounds" promises that there are none.

    Returns:
        (num_segments, ...). {empty}

    Raises:
        ShapeError: where the numbers do not fit the data.
        DtypeError: for numbers that are not integers.
        ConcretizationError: for traced numbers without num_segments.

    >>> ft.ops.{name}(fnp.asarray([5, 2, 3]), fnp.asarray([0, 0, 1])).tolist()
    {shows}
    """


def _segments(name: str, method: str, start: Any, summary: str, empty: str, shows: str) -> SegmentReduction:
    """A reduction; `start` gives the value of an empty segment for a dtype."""

    @eager_jit(static=("count", "is_sorted", "unique", "bucket", "mode"))
    def run(data: Any, ids: Any, count: int, is_sorted: bool, unique: bool, bucket: int | None, mode: str) -> Any:
        rank, n = aval_of(ids).ndim, aval_of(ids).size
        rest = aval_of(data).shape[rank:]
        data, ids = fnp.reshape(data, (n, *rest)), fnp.reshape(ids, (n,))
        ids = ids.astype(dtypes.int64 if aval_of(ids).dtype.itemsize > 4 else dtypes.int32)
        # Negative numbers are not counted from the end.
        ids = fnp.clip(ids, 0, max(count - 1, 0)) if mode == "clip" else fnp.where(ids < 0, count, ids)
        rows = 1 if not bucket else max(math.ceil(n / bucket), 1)
        if rows > 1:  # a segment in a bucket is a segment of a number of its own
            ids = fnp.where(ids < count, ids + fnp.arange(n, dtype=ids.dtype) // bucket * count, rows * count)  # pyright: ignore[reportOperatorIssue]
        dtype = aval_of(data).dtype
        out = fnp.full((rows * count, *rest), start(dtype), dtype)
        update = getattr(out.at[ids], method)
        out = update(data, indices_are_sorted=is_sorted and rows == 1, unique_indices=unique, mode="drop")
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
        if a.shape[: b.ndim] != b.shape or not b.ndim:
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
    known = getattr(ids, "concrete", lambda: ids)()  # of traced values, None where they are not known
    if known is None and aval_of(ids).size:
        known = guarded_size(fnp.max(ids))
    if known is None:
        raise promotion.error(
            ConcretizationError, f"{what} of traced segment_ids cannot tell how many segments there are",
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
