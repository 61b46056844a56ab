"""The dimensions of a product's operands."""

from __future__ import annotations

from collections.abc import Sequence


def free_dims(ndim: int, contracted: Sequence[int], batch: Sequence[int]) -> list[int]:
    """Return the dimensions that are neither contracted nor batch, in order."""
    return [d for d in range(ndim) if d not in contracted and d not in batch]
