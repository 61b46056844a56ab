"""Derivatives with respect to integers among the results of functions: float0 zeros, which no program can compute.

They are NumPy's, of dtype `float0`, and have a shape and nothing else. So they are kept in the structure of results
instead of among their leaves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functorch_like import dtypes, tree
from functorch_like.backends import xla


class _Zeros:
    """Stand-in for float0 zeros in a structure, without leaves; unflattening gives the zeros."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape


tree.register_pytree_node(
    _Zeros, lambda zeros: ((), zeros.shape), lambda shape, _: np.zeros(shape, dtypes.float0), lambda z: ((), z.shape)
)


def is_float0(x: Any) -> bool:
    """Return True for a derivative with respect to an integer."""
    return type(x) is np.ndarray and x.dtype == dtypes.float0


def flatten_results(out: Any) -> tuple[list[Any], Any]:
    """Return those leaves of a function's result that are values, and a structure that holds everything else."""
    leaves, structure = xla.flatten(out)
    if not any(map(is_float0, leaves)):
        return leaves, structure
    return xla.flatten(structure.unflatten([_Zeros(x.shape) if is_float0(x) else x for x in leaves]))


def without_axis(x: Any, axis: int) -> Any:
    """Return float0 zeros for one element of a map over this axis."""
    return np.zeros(x.shape[:axis] + x.shape[axis + 1 :], dtypes.float0)


def with_axis(x: Any, axis: int | None, size: int) -> Any:
    """Float0 zeros of one element, for all elements of a map."""
    shape = x.shape
    if axis is None:
        return x
    at = axis % (len(shape) + 1)
    return np.zeros((*shape[:at], size, *shape[at:]), dtypes.float0)
