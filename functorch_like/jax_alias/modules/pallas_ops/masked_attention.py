"""Attention by logits that callers mask, cap and scale themselves, with the sums that decoding in parts needs."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from functorch_like import dtypes, lax
from functorch_like import numpy as fnp
from functorch_like.core import aval_of

#: What JAX's kernels put in place of a masked logit: finite, so that a row without any source gives a mean, not NaN.
MASKED = -0.7 * float(dtypes.finfo(dtypes.float32).max)


class Attended(NamedTuple):
    """Results of `attend`.

    Attributes:
        out: [..., G, T, E], the weighted means of the values.
        sums: [..., G, T], the sums of the exponentials of the logits less the largest.
        largest: [..., G, T], the largest logits.
    """

    out: Any
    sums: Any
    largest: Any

    def log_sum(self) -> Any:
        """Return the logarithms of the sums of the exponentials of the logits."""
        return self.largest + fnp.log(self.sums)


def grouped(query: Any, heads: int, axis: int) -> Any:
    """Split an axis of query heads in (heads of the key, heads of the query for each of them)."""
    shape = aval_of(query).shape
    return fnp.reshape(query, (*shape[:axis], heads, shape[axis] // heads, *shape[axis + 1 :]))


def logits(query: Any, key: Any, scale: float = 1.0, soft_cap: float | None = None) -> Any:
    """Return the scaled products of queries [..., G, T, H] and keys [..., S, H], in at least float32.

    Args:
        query: G heads for each head of the key.
        key: in any dtype.
        scale: factor of the products.
        soft_cap: bound that a hyperbolic tangent keeps the logits within.
    """
    wide = dtypes.accumulator(aval_of(query).dtype)
    scores = scale * fnp.einsum("...gth,...sh->...gts", fnp.astype(query, wide), fnp.astype(key, wide))
    return scores if not soft_cap else soft_cap * fnp.tanh(scores / soft_cap)


def attend(scores: Any, value: Any, allowed: Any = None, masked: float = MASKED, sinks: Any = None) -> Attended:
    """Return the means of values [..., S, E] by the softmax of logits [..., G, T, S].

    Args:
        scores: the logits.
        value: in any dtype.
        allowed: booleans that broadcast to the logits; the others are replaced.
        masked: what replaces them.
        sinks: logits, which broadcast to [..., G, T], of sources that take weight and have no value.
    """
    scores = scores if allowed is None else fnp.where(allowed, scores, masked)
    largest = lax.stop_gradient(fnp.max(scores, axis=-1, initial=-math.inf))
    largest = largest if sinks is None else fnp.maximum(largest, lax.stop_gradient(sinks))
    weights = fnp.exp(scores - largest[..., None])
    sums = fnp.sum(weights, axis=-1)
    sums = sums if sinks is None else sums + fnp.exp(sinks - largest)
    out = fnp.einsum("...gts,...se->...gte", weights / sums[..., None], fnp.astype(value, aval_of(weights).dtype))
    return Attended(out, sums, largest)


def same_segment(query: Any, key: Any) -> Any:
    """Return booleans [..., T, S]: True where a target and a source have the same number."""
    return fnp.expand_dims(query, -1) == fnp.expand_dims(key, -2)
