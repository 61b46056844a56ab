"""The dimensions of a product's operands."""

from __future__ import annotations

import math
from collections.abc import Sequence

from functorch_like.avals import ShapedArray


def free_dims(ndim: int, contracted: Sequence[int], batch: Sequence[int]) -> list[int]:
    """Return the dimensions that are neither contracted nor batch, in order."""
    return [d for d in range(ndim) if d not in contracted and d not in batch]


def free_size(aval: ShapedArray, contracted: Sequence[int], batch: Sequence[int]) -> int:
    """Return the number of elements along the free dimensions of an operand."""
    return math.prod(aval.shape[d] for d in free_dims(aval.ndim, contracted, batch))
