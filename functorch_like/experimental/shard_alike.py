"""`shard_alike`: two values that the compiler splits alike."""

from __future__ import annotations

from typing import Any

from functorch_like import tree
from functorch_like.calling import api_boundary
from functorch_like.calling.type_variables import T
from functorch_like.core import Tracer, aval_of
from functorch_like.errors import ShapeError
from functorch_like.primitives.structural.annotations import shard_alike as primitive


@api_boundary.public
def shard_alike(x: T, y: T) -> tuple[T, T]:
    """Have the compiler split two values in the same way, whichever it chooses.

    Args:
        x: array, or pytree of arrays.
        y: a pytree of the same structure, with leaves of the same shapes.

    Returns:
        Both, with the same values. Outside of programs on several devices nothing is split.

    Raises:
        ShapeError: for leaves of different shapes.
        TreeError: for different structures.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> from functorch_like.experimental.shard_alike import shard_alike
    >>> [z.tolist() for z in ft.jit(lambda x: shard_alike(x, 2 * x))(fnp.arange(2))]
    [[0, 1], [0, 2]]
    """
    leaves, structure = tree.flatten(x)
    others = tree.broadcast_prefix(y, x, "the second argument of shard_alike")
    pairs = [_pair(a, b) for a, b in zip(leaves, others, strict=True)]
    return structure.unflatten([a for a, _ in pairs]), structure.unflatten([b for _, b in pairs])


def _pair(x: Any, y: Any) -> Any:
    first, second = aval_of(x), aval_of(y)
    if first.shape != second.shape:
        raise ShapeError(f"shard_alike got {first!r} and {second!r}", fix="give arrays of one shape")
    return primitive(x, y) if isinstance(x, Tracer) or isinstance(y, Tracer) else (x, y)
