"""Attention by blocks of queries or keys, without the whole matrix of logits. Derivatives compute blocks again.

Memory grows with T + S instead of T * S.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.backends.mha import block_of
from functorch_like.core import aval_of
from functorch_like.transforms.checkpoint import checkpoint


class Parts(NamedTuple):
    """Operands and options of attention, for any block of rows (queries) and columns (keys).

    Attributes:
        query: [B, K, G, T, H]: G heads of the query for each of the K of the key.
        key, value: [B, S, K, H].
        logits: `(query, key, row, column) -> [B, N, T, S]` of a block that begins at that row and column; -inf where
            masked.
        combine: `(weights [B, N, T, S], value) -> [B, N, T, V]`.
        softmax: softmax over the last axis; rows of -inf give zeros.
    """

    query: Any
    key: Any
    value: Any
    logits: Callable[[Any, Any, Any, Any], Any]
    combine: Callable[[Any, Any], Any]
    softmax: Callable[[Any], Any]


def by_queries(parts: Parts) -> Any:
    """Compute attention for one block of queries after the other, each with all keys, as the whole matrix would.

    M. Rabe and C. Staats, "Self-attention does not need O(n^2) memory", arXiv:2112.05682.
    """
    b, k, g, t, h = aval_of(parts.query).shape
    size = block_of(t) or t

    @checkpoint
    def attend(row: Any, query: Any, key: Any, value: Any) -> Any:
        return parts.combine(parts.softmax(parts.logits(query, key, row, np.int32(0))), value)

    blocks = fnp.moveaxis(parts.query.reshape((b, k, g, t // size, size, h)), 3, 0)
    rows = fnp.arange(t // size, dtype=fnp.int32) * size
    outs = lax.map(lambda x: attend(x[0], x[1], parts.key, parts.value), (rows, blocks))
    return fnp.moveaxis(outs, 0, 2).reshape((b, k * g, t, -1))


def by_keys(parts: Parts) -> Any:
    """Compute attention for one block of keys after the other; sums are rescaled when greater logits appear.

    M. Milakov and N. Gimelshein, "Online normalizer calculation for softmax", arXiv:1805.02867; T. Dao et al.,
    "FlashAttention", arXiv:2205.14135.
    """
    b, k, g, t, _ = aval_of(parts.query).shape
    _, s, _, width = aval_of(parts.value).shape
    size = block_of(s) or s
    wide = fnp.promote_types(aval_of(parts.query).dtype, fnp.float32)

    @checkpoint
    def accumulate(sums: Any, block: Any) -> Any:
        greatest, total, weighted = sums
        column, key, value = block
        logits = parts.logits(parts.query, key, np.int32(0), column)
        # The result does not depend on the subtracted values, so its derivative leaves them out.
        higher = fnp.maximum(greatest, lax.stop_gradient(fnp.max(logits, axis=-1)))
        safe = fnp.where(fnp.isfinite(higher), higher, 0)
        weights = fnp.exp(logits - safe[..., None])
        scale = fnp.exp(fnp.where(fnp.isfinite(greatest), greatest - safe, -fnp.inf))
        total = total * scale + weights.sum(axis=-1)
        weighted = weighted * scale[..., None] + parts.combine(weights, value)
        return (higher, total, weighted), None

    column = fnp.arange(s // size, dtype=fnp.int32) * size
    keys, values = (fnp.moveaxis(x.reshape((b, s // size, size, k, -1)), 1, 0) for x in (parts.key, parts.value))
    start = (
        fnp.full((b, k * g, t), -fnp.inf, wide),
        fnp.zeros((b, k * g, t), wide),
        fnp.zeros((b, k * g, t, width), wide),
    )
    (_, total, weighted), _ = lax.scan(accumulate, start, (column, keys, values))
    return weighted / fnp.where(total == 0, 1, total)[..., None]
