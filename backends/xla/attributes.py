"""Attributes of operations, as methods of the emitter: a rule writes `e.i64s(dims)`. `mlir.py` caches them by value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like.backends.xla import mlir


class Attributes:
    """Makes MLIR attributes from Python values."""

    __slots__ = ()

    def attr(self, text: str) -> Any:
        """The attribute written as `text`: "#stablehlo<comparison_direction LT>"."""
        return mlir.parsed(text)

    def layouts(self, orders: Sequence[Sequence[int]]) -> Any:
        """Layouts of arrays, each as its dimensions from the fastest varying to the slowest."""
        texts = (f"dense<{list(order) or ''}> : tensor<{len(order)}xindex>" for order in orders)
        return mlir.parsed(f"[{', '.join(texts)}]")

    def i64s(self, values: Sequence[int]) -> Any:
        """array<i64: ...>, StableHLO's attribute for dimensions."""
        return mlir.i64_array(tuple(values))

    def bools(self, values: Sequence[bool]) -> Any:
        """array<i1: ...>."""
        return mlir.bool_array(tuple(values))

    def i64(self, value: int) -> Any:
        """A 64-bit integer."""
        return mlir.integer(value, 64)

    def i32(self, value: int) -> Any:
        """A 32-bit integer."""
        return mlir.integer(value, 32)

    def flag(self, value: bool) -> Any:
        """True or false."""
        return mlir.flags[bool(value)]

    def string(self, text: str) -> Any:
        """A string."""
        return mlir.string(text)

    def dense_i64(self, values: Any) -> Any:
        """dense<...> of 64-bit integers, in as many dimensions as the nesting has (padding: n by 2)."""
        return mlir.dense(np.asarray(values, np.int64))

    def dense(self, value: Any) -> Any:
        """dense<...> of a NumPy array."""
        return mlir.dense(np.asarray(value))
