"""Rules of `masking` for gather, scatter and slices at computed positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like.core import Primitive, aval_of
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.indexing.gather_and_scatter_add import gather, scatter_add
from functorch_like.primitives.reductions.makers import highest, lowest
from functorch_like.primitives.updates.dynamic_slice import dynamic_slice, dynamic_update_slice, scatter
from functorch_like.primitives.updates.scatter import scatter_max, scatter_min, scatter_mul
from functorch_like.transforms.buckets.masking import Rule, Step, spread
from functorch_like.transforms.buckets.sizes import Size

_FAR = np.iinfo(np.int32).max // 2  # beyond the end of any axis
_NEUTRAL: dict[Primitive, Any] = {
    scatter_add: lambda dtype: 0,
    scatter_mul: lambda dtype: 1,
    scatter_max: lowest,
    scatter_min: highest,
}


def _gather(step: Step, xs: Sequence[Any]) -> list[Any]:
    """Rule of gathers: positions behind the last valid one count as out of bounds."""
    operand, indices = xs
    numbers, widths = step.params["dimension_numbers"], step.params["slice_sizes"]
    _check_vectors(step)
    _check_windows(
        step, 0, widths, step.o.params["slice_sizes"], numbers.start_index_map, numbers.operand_batching_dims
    )
    indices = _bounded(step, indices, numbers.start_index_map, widths, step.params.get("mode", "fill"))
    return step.apply([operand, indices])


def _scatter(step: Step, xs: Sequence[Any]) -> list[Any]:
    """Rule of scatters: updates of rows that are padding are dropped."""
    operand, indices, updated = xs
    numbers = step.params["dimension_numbers"]
    _check_vectors(step)
    widths, others = _update_widths(step, numbers)
    mapped = numbers.scatter_dims_to_operand_dims
    _check_windows(step, 0, widths, others, mapped, numbers.operand_batching_dims)
    mode = step.params.get("mode", "fill")
    indices = _bounded(step, indices, mapped, widths, mode)
    rows = [d for d in step.moving(2) if d not in numbers.update_window_dims]
    if not rows:
        return step.apply([operand, indices, updated])
    if not mapped:
        raise step.refuse("updates of all rows go to one place")
    if step.e.prim in _NEUTRAL:
        fill = _NEUTRAL[step.e.prim](aval_of(updated).dtype)
        return step.apply([operand, indices, step.mask(updated, 2, rows, fill)], **_UNORDERED)
    if mode in ("clip", "promise_in_bounds"):
        indices = _clipped(step, indices, mapped, widths)
    moving = sorted(d for d in step.moving(1))
    indices = step.masking.mask(indices, step.ins[1], moving, np.array(_FAR).astype(aval_of(indices).dtype))
    return step.apply([operand, indices, updated], mode="fill", **_UNORDERED)


_UNORDERED = {"indices_are_sorted": False, "unique_indices": False}


def _check_vectors(step: Step) -> None:
    if len(step.ins[1]) - 1 in step.moving(1):
        raise step.refuse("the axis of an index vector is that of the rows")
    if aval_of_operand(step, 1).dtype.itemsize < 4:
        raise step.refuse("positions are of a narrow integer type", "convert them to int32")


def aval_of_operand(step: Step, operand: int) -> Any:
    """The type of an operand."""
    return step.e.inputs[operand].aval


def _update_widths(step: Step, numbers: Any) -> tuple[list[int], list[int]]:
    """Extents of an update along the axes of the operand, in both equations."""
    apart = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    result: tuple[list[int], list[int]] = ([], [])
    for e, widths in zip((step.e, step.o), result, strict=True):
        windows = iter([e.inputs[2].aval.shape[d] for d in numbers.update_window_dims])
        widths += [1 if d in apart else next(windows) for d in range(e.inputs[0].aval.ndim)]
    return result


def _check_windows(
    step: Step,
    operand: int,
    widths: Sequence[int],
    others: Sequence[int],
    mapped: Sequence[int],
    batching: Sequence[int],
) -> None:
    """Check that windows along rows are either all of them or of a fixed width."""
    for d, extent in enumerate(step.ins[operand]):
        width = step.size(widths[d], others[d])
        if (
            isinstance(extent, Size)
            and d not in batching
            and width != extent
            and (d not in mapped or isinstance(width, Size))
        ):
            raise step.refuse("windows of a size that depends on the number of rows are moved over them")
        if not isinstance(extent, Size) and isinstance(width, Size):
            raise step.refuse("windows of a size that depends on the number of rows are moved")


def _limits(step: Step, mapped: Sequence[int], widths: Sequence[int], dtype: Any) -> list[Any]:
    """The last position where a window fits, for each part of an index vector; None where it is a fixed one."""
    limits: list[Any] = []
    for d in mapped:
        extent = step.ins[0][d]
        if isinstance(extent, Size) and widths[d] != aval_of_operand(step, 0).shape[d]:
            limits.append(step.masking.valid(Size(extent.scale, extent.offset - widths[d]), dtype))
        else:
            limits.append(None)
    return limits


def _bounded(step: Step, indices: Any, mapped: Sequence[int], widths: Sequence[int], mode: str) -> Any:
    """Positions beyond the last valid one, by the mode: the last, or out of bounds."""
    aval = aval_of(indices)
    for k, limit in enumerate(_limits(step, mapped, widths, aval.dtype)):
        if limit is None:
            continue
        last = spread(limit, aval.shape)
        away = last if mode in ("clip", "promise_in_bounds") else spread(np.array(_FAR).astype(aval.dtype), aval.shape)
        beyond = elementwise.and_(elementwise.gt(indices, last), _part(aval.shape, k))
        indices = elementwise.select_n(beyond, indices, away)
    return indices


def _clipped(step: Step, indices: Any, mapped: Sequence[int], widths: Sequence[int]) -> Any:
    """Positions moved to where the window fits into the operand."""
    aval = aval_of(indices)
    known = [n - widths[d] for d, n in enumerate(aval_of_operand(step, 0).shape)]
    for k, (d, limit) in enumerate(zip(mapped, _limits(step, mapped, widths, aval.dtype), strict=True)):
        last = spread(np.array(known[d]).astype(aval.dtype) if limit is None else limit, aval.shape)
        zero = spread(np.array(0).astype(aval.dtype), aval.shape)
        moved = elementwise.max(elementwise.min(indices, last), zero)
        indices = elementwise.select_n(_part(aval.shape, k), indices, moved)
    return indices


def _part(shape: Sequence[int], k: int) -> Any:
    """Return for each element of index vectors whether it is the k-th of its vector."""
    places = structural.iota(dtype=np.dtype("int32"), shape=tuple(shape), dimension=len(shape) - 1)
    return elementwise.eq(places, spread(np.array(k, np.int32), shape))


# --------------------------------------------------------------------------------------- slices at computed places
def _dynamic_slice(step: Step, xs: Sequence[Any]) -> list[Any]:
    widths, others = step.params["slice_sizes"], step.o.params["slice_sizes"]
    return step.apply([xs[0], *_starts(step, xs[1:], widths, others)])


def _dynamic_update_slice(step: Step, xs: Sequence[Any]) -> list[Any]:
    widths, others = aval_of_operand(step, 1).shape, step.o.inputs[1].aval.shape
    operand, updated, *starts = xs
    moving = step.moving(1)
    for d in moving:
        if step.ins[0][d] != step.ins[1][d]:
            raise step.refuse("rows are written at a computed place, and their padding with them")
    return [dynamic_update_slice(operand, updated, *_starts(step, starts, widths, others))]


def _starts(step: Step, starts: Sequence[Any], widths: Sequence[int], others: Sequence[int]) -> list[Any]:
    """Starts of a window, moved to where it fits into the valid rows."""
    result = list(starts)
    for d, extent in enumerate(step.ins[0]):
        width = step.size(widths[d], others[d])
        if not isinstance(extent, Size):
            if isinstance(width, Size):
                raise step.refuse("a window as large as the number of rows is moved")
            continue
        if width == extent:
            continue
        if isinstance(width, Size):
            raise step.refuse("a window of a size that depends on the number of rows is moved over them")
        limit = step.masking.valid(Size(extent.scale, extent.offset - width), aval_of(result[d]).dtype)
        result[d] = elementwise.min(result[d], limit)
    return result


RULES: dict[Primitive, Rule] = {
    gather: _gather,
    **dict.fromkeys((scatter, *_NEUTRAL), _scatter),
    dynamic_slice: _dynamic_slice,
    dynamic_update_slice: _dynamic_update_slice,
}
