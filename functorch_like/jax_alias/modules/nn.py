"""`jax.nn`: attention that also returns the logarithms of its sums."""

from __future__ import annotations

import functools
import inspect
import math
from typing import Any

from functorch_like import nn
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.nn.attention import restricted
from functorch_like.scipy.special import logsumexp


@functools.wraps(nn.dot_product_attention)
def dot_product_attention(*args: Any, return_residual: bool = False, **kwargs: Any) -> Any:
    """Return `nn.dot_product_attention`, with `return_residual` also the logsumexp of each target's logits.

    The logsumexp has the shape [B, T, N], or [T, N], and the dtype float32, or that of wider operands. It is -inf for
    a target without sources.
    """
    out = nn.dot_product_attention(*args, **kwargs)
    if not return_residual:
        return out
    given = inspect.signature(nn.dot_product_attention).bind(*args, **kwargs)
    given.apply_defaults()
    return out, _residual(**given.arguments)


def _residual(
    query: Any, key: Any, value: Any, bias: Any, mask: Any, *, scale: Any, is_causal: bool, query_seq_lengths: Any,
    key_value_seq_lengths: Any, local_window_size: Any, implementation: Any,
) -> Any:  # fmt: skip
    query, key = fnp.asarray(query), fnp.asarray(key)
    single = query.ndim == 3
    if single:
        query, key = fnp.expand_dims(query, 0), fnp.expand_dims(key, 0)
    mask = restricted(aval_of(query), aval_of(key), mask, query_seq_lengths, key_value_seq_lengths, local_window_size)
    targets, heads, length = query.shape[1:]
    wide = fnp.promote_types(query.dtype, "float32")
    repeated = fnp.repeat(key, heads // key.shape[2], axis=2).astype(wide)
    logits = fnp.einsum("btnh,bsnh->bnts", query.astype(wide), repeated)
    logits = logits * (1 / math.sqrt(max(length, 1)) if scale is None else scale)
    if bias is not None:
        logits = logits + bias
    if is_causal:
        logits = fnp.where(fnp.tri(targets, key.shape[1], dtype=bool), logits, -fnp.inf)
    if mask is not None:
        logits = fnp.where(mask, logits, -fnp.inf)
    result = fnp.transpose(logsumexp(logits, axis=-1), (0, 2, 1))
    return result[0] if single else result
