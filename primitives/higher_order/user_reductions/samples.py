"""Computations that the samples of `reduce` and `reduce_window` fold by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functorch_like import core
from functorch_like.avals import ShapedArray
from functorch_like.ir.jaxpr import Jaxpr
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives import elementwise

REAL, INTEGER = ShapedArray((), "float32"), ShapedArray((), "int32")
#: Neutral elements of the reductions below.
LOW, ZERO, ONE = np.array(-np.inf, np.float32), np.array(0, np.int32), np.array(1, np.float32)


def body(fun: Callable[..., list[Any]], *avals: ShapedArray) -> Jaxpr:
    """A computation of pairs of such scalars."""
    return stage(fun, avals * 2, name="body", parent=core.EVALUATE)[0]


def greatest_and_where() -> Jaxpr:
    """Pick the greater of two numbers, each with its position."""

    def first(x: Any, i: Any, y: Any, j: Any) -> list[Any]:
        wins = elementwise.gt(y, x)
        return [elementwise.select_n(wins, x, y), elementwise.select_n(wins, i, j)]

    return body(first, REAL, INTEGER)
