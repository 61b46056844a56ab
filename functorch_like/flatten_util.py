"""Pytrees as vectors: `ravel_pytree`, for algorithms that are written for vectors."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from functorch_like import dtypes, tree
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import DtypeError, ShapeError
from functorch_like.numpy import promotion


def ravel_pytree(pytree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Concatenate the leaves of a pytree to one vector, and return the inverse function, too.

    Args:
        pytree: pytree of arrays and numbers.

    Returns:
        A vector of the dtype that the leaves promote to; and `unravel`, which takes a vector of that length and dtype
        and returns a pytree whose leaves have the original shapes and dtypes.

    Raises:
        ShapeError: from `unravel`, for a vector of another length.
        DtypeError: from `unravel`, for a vector of another dtype; for a leaf that is not an array or number.

    >>> vector, unravel = ft.flatten_util.ravel_pytree({"a": fnp.ones(2), "b": 3.0})
    >>> vector.tolist(), unravel(2 * vector)["b"].item()
    ([1.0, 1.0, 3.0], 6.0)
    """
    leaves, structure = tree.flatten(pytree)
    if not leaves:
        return fnp.zeros(0), lambda vector: structure.unflatten([])
    avals = [aval_of(x) for x in leaves]
    dtype, weak, widens = dtypes.promotion_of(avals)
    if widens:
        promotion.notice(leaves, avals, dtype)
    vector = fnp.concatenate([fnp.ravel(promotion.convert(x, dtype, weak)) for x in leaves])
    ends = list(itertools.accumulate(a.size for a in avals))

    def unravel(vector: Any) -> Any:
        aval = aval_of(vector)
        if aval.shape != (ends[-1],):
            raise promotion.error(ShapeError, f"unravel of {aval!r}", f"give a vector of {ends[-1]} elements")
        if aval.dtype != dtype:
            raise promotion.error(DtypeError, f"unravel of {aval!r}", f"convert it to {dtype.name}, which was ravelled")
        starts = [0, *ends[:-1]]
        parts = [
            promotion.convert(fnp.reshape(vector[start:end], a.shape), a.dtype, a.weak_type)
            for start, end, a in zip(starts, ends, avals, strict=True)
        ]
        return structure.unflatten(parts)

    return vector, unravel
