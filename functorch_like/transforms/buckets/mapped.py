"""`vmap(f, buckets=...)`: the mapped axis is padded to a bucket's size, and the results are cut.

Elements are independent, so nothing is masked; effects run for the padding, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functorch_like.core import Tracer, aval_of, state
from functorch_like.errors import ArgumentError
from functorch_like.transforms.buckets import padding, sizes


def check(name: str, buckets: Any, axis_name: Any, axis_size: int | None) -> tuple[int, ...] | None:
    """Return the bucket sizes in ascending order; None stands for powers of two.

    Raises:
        ArgumentError: for other sizes, and for buckets together with `axis_name` or `axis_size`.
    """
    if axis_name is not None:
        raise ArgumentError(
            f"vmap({name}) has buckets and axis_name={axis_name!r}: a collective would include the padding",
            fix="give one of them; jit(vmap(...), buckets=...) masks reductions over rows",
        )
    if axis_size is not None:
        raise ArgumentError(f"vmap({name}) has buckets and axis_size={axis_size}", fix="give one of them")
    return sizes.checked(buckets, f"buckets of vmap({name})")


def padded(
    mapped: Callable[[Sequence[Any], int], list[Any]],
    leaves: Sequence[Any],
    dims: Sequence[int | None],
    rows: int,
    allowed: tuple[int, ...] | None,
    name: str,
    out_dims: Callable[[], Sequence[int | None]],
) -> list[Any]:
    """Map over all rows of a bucket, and cut the results to the given number of rows.

    Args:
        mapped: the mapped function, of leaves and their number of rows.
        leaves: the leaves of the arguments.
        dims: the mapped axis of each.
        rows: their size along it.
        allowed: bucket sizes.
        name: of the function.
        out_dims: called afterwards, gives the mapped axis of each result.
    """
    size = sizes.bucket(rows, allowed, f"vmap({name})") if rows else 0
    if size == rows or state.trace.staging or any(isinstance(x, Tracer) for x in leaves):
        return mapped(leaves, rows)  # a trace around this one has fixed sizes; padding would also get derivatives
    outs = mapped(
        [x if d is None else _resized(padding.pad, x, d, size) for x, d in zip(leaves, dims, strict=True)], size
    )
    return [y if d is None else _resized(padding.cut, y, d, rows) for y, d in zip(outs, out_dims(), strict=True)]


def _resized(by: Callable[[Any, Sequence[int]], Any], x: Any, axis: int, size: int) -> Any:
    shape = aval_of(x).shape
    return by(x, (*shape[:axis], size, *shape[axis + 1 :]))
