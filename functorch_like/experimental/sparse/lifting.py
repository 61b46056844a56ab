"""Functions of arrays without batch dimensions, lifted over those of sparse arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functorch_like import tree
from functorch_like.core import aval_of
from functorch_like.numpy.shapes import broadcast_to, expand_dims, squeeze
from functorch_like.transforms.vmap import vmap


def over_batches(fun: Callable[..., Any], n_batch: int, *args: Any) -> Any:
    """Return the results of a function mapped over leading dimensions.

    Args:
        fun: takes and gives pytrees of arrays.
        n_batch: number of dimensions to map over, one after the other.
        args: arrays that all have these dimensions, of size 1 where all elements share a value; None is passed on.
    """
    if not n_batch:
        return fun(*args)
    there = [a for a in args if a is not None]
    sizes = [aval_of(a).shape[0] for a in there]
    size = next((n for n in sizes if n != 1), 1)
    shared = iter([n == 1 for n in sizes])
    axes = [None if a is None or next(shared) else 0 for a in args]
    inner = [squeeze(a, 0) if a is not None and axis is None else a for a, axis in zip(args, axes, strict=True)]
    rest = lambda *xs: over_batches(fun, n_batch - 1, *xs)
    if size == 1:
        return tree.map(lambda out: expand_dims(out, 0), rest(*inner))
    return vmap(rest, in_axes=tuple(axes))(*inner)


def merge_batch(x: Any, axis: int, size: int) -> Any:
    """Return an array with a batch dimension in full, where elements shared its values."""
    shape = aval_of(x).shape
    return x if shape[axis] == size else broadcast_to(x, (*shape[:axis], size, *shape[axis + 1 :]))
