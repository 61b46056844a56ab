"""`chunk_size`: a mapped axis taken in pieces, so that memory is bounded by one piece."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like.avals import ShapedArray
from functorch_like.core import Tracer, aval_of, state
from functorch_like.errors import ArgumentError
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives.base.shapes import full, move, reshape
from functorch_like.primitives.elementwise.arithmetic import mul
from functorch_like.primitives.structural import concatenate, iota
from functorch_like.transforms.tangents import error_context

Axes = Callable[[], Sequence[int | None]]


def check_chunk_size(chunk_size: Any, name: str) -> None:
    """Refuse a value that is neither None nor a positive int."""
    if chunk_size is None or (isinstance(chunk_size, (int, np.integer)) and chunk_size > 0):
        return
    raise ArgumentError(
        f"chunk_size of {name} must be None or a positive int, got {chunk_size!r}",
        fix="None takes the whole axis at once",
        **error_context(),
    )


def in_chunks(
    run: Callable[[Any, int], Sequence[Any]],
    size: int,
    chunk_size: int | None,
    axes: Axes,
) -> list[Any]:
    """Results of `run(start, count)` over 0 ... size-1, joined.

    All pieces but the last have one size, and their start is an operand, so at most two programs are compiled. While a
    program is staged, the pieces of one size are the steps of a scan.

    Args:
        run: gives flat results for the elements start ... start+count-1.
        size: how many elements there are.
        chunk_size: how many to take at once; None takes all.
        axes: called after the first run; gives the axis of elements of each result, None where it has none.
    """
    if chunk_size is None or chunk_size >= size:
        return list(run(np.int32(0), size))
    rounds, rest = divmod(size, int(chunk_size))
    parts: list[Sequence[Any]]
    if state.trace.staging and rounds > 1:
        parts = [_scanned(run, rounds, int(chunk_size), axes)]
    else:
        parts = [run(np.int32(k * chunk_size), int(chunk_size)) for k in range(rounds)]
    if rest:
        parts.append(run(np.int32(size - rest), rest))
    if len(parts) == 1:
        return list(parts[0])
    return [
        pieces[0] if axis is None else concatenate(*pieces, dimension=axis)
        for pieces, axis in zip(zip(*parts, strict=True), axes(), strict=True)
    ]


def _scanned(run: Callable[[Any, int], Sequence[Any]], rounds: int, count: int, axes: Axes) -> list[Any]:
    """Results of the pieces of one size, computed by a scan and joined."""
    from functorch_like.primitives.higher_order.control_flow.scan import scan

    jaxpr, consts = stage(lambda start: run(start, count), [_START], name="chunk", chain="")
    starts = mul(iota(dtype=_START.dtype, shape=(rounds,), dimension=0), full((rounds,), count, _START.dtype))
    stacks = scan(
        *consts, starts, jaxpr=jaxpr, num_consts=len(consts), num_carry=0, length=rounds, reverse=False, unroll=1
    )
    return [_joined(stack, axis) for stack, axis in zip(stacks, axes(), strict=True)]


_START = ShapedArray((), np.int32)


def _joined(stack: Any, axis: int | None) -> Any:
    """The results of all steps in one array; one of them where they are all the same."""
    if axis is None:
        return reshape(piece(stack, 0, np.int32(0), 1), shape=aval_of(stack).shape[1:])
    moved = move(stack, 0, axis)
    shape = aval_of(moved).shape
    return reshape(moved, shape=(*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))


def piece(x: Any, axis: int, start: Any, count: int) -> Any:
    """The elements start ... start+count-1 along an axis."""
    shape = aval_of(x).shape
    if shape[axis] == count:
        return x
    if isinstance(x, np.ndarray) and not isinstance(start, Tracer):
        return x[(slice(None),) * axis + (slice(int(start), int(start) + count),)]
    from functorch_like.primitives.updates.dynamic_slice import dynamic_slice  # few maps are in chunks

    starts = [start if d == axis else np.int32(0) for d in range(len(shape))]
    return dynamic_slice(x, *starts, slice_sizes=(*shape[:axis], count, *shape[axis + 1 :]))
