"""Systems of equations with right-hand sides whose leading dimensions broadcast with those of the matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from functorch_like.core import aval_of
from functorch_like.numpy import promotion
from functorch_like.primitives import structural


def solutions(a: Any, b: Any, solve: Callable[[Any, Any], Any]) -> Any:
    """Solve systems, after promotion of both operands.

    Where one matrix belongs to many right-hand sides, it is factored once: they become columns of one system.

    Args:
        a: matrices (..., n, n).
        b: right-hand sides (n,), or (..., n, k). Leading dimensions broadcast.
        solve: `(matrices, right-hand sides) -> solutions`, all with the same leading dimensions.

    Returns:
        Solutions, of the broadcast shape; a vector for a vector.
    """
    a, b = map(promotion.to_inexact, promotion.promote(a, b))
    if aval_of(b).ndim == 1:
        x = solutions(a, structural.reshape(b, shape=(*aval_of(b).shape, 1)), solve)
        return structural.reshape(x, shape=aval_of(x).shape[:-1])
    *of_a, n, _ = aval_of(a).shape
    *of_b, _, k = aval_of(b).shape
    lead = promotion.broadcast_shapes(tuple(of_a), tuple(of_b))
    of_a = [1] * (len(lead) - len(of_a)) + of_a
    b = promotion.broadcast(b, (*lead, n, k))
    apart = [d for d, size in enumerate(lead) if of_a[d] == size]
    joined = [d for d in range(len(lead)) if d not in apart]
    if not joined:
        return solve(structural.reshape(a, shape=(*lead, n, n)), b)
    last = len(lead)
    order = (*apart, last, *joined, last + 1)
    wide = structural.transpose(b, permutation=order)
    outer = tuple(lead[d] for d in apart)
    columns = math.prod(lead[d] for d in joined) * k
    x = solve(structural.reshape(a, shape=(*outer, n, n)), structural.reshape(wide, shape=(*outer, n, columns)))
    x = structural.reshape(x, shape=aval_of(wide).shape)
    return structural.transpose(x, permutation=tuple(order.index(d) for d in range(len(order))))
