"""Attention by scaled dot products."""

from __future__ import annotations

import math
from typing import Any

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, DtypeError, ShapeError
from functorch_like.kernels import kernel
from functorch_like.nn.softmax import masked_softmax, over, shift_of
from functorch_like.numpy import promotion as P
from functorch_like.primitives import elementwise as E
from functorch_like.primitives import structure as S
from functorch_like.primitives.contract import dot_general


def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
) -> Any:
    """softmax(scale query keyT + bias) value, for each head.

    A. Vaswani et al., "Attention is all you need", arXiv:1706.03762.

    Args:
        query: floats [B, T, N, H]: batch, target positions, heads, features; or [T, N, H].
        key: [B, S, K, H], source positions; K divides N, and each head of it serves N/K heads of the query.
        value: [B, S, K, H], the shape of key (the last dimension may differ).
        bias: added to the logits; broadcasts to [B, N, T, S].
        mask: booleans that broadcast to [B, N, T, S]: True takes part. Where nothing does the result is 0.
        scale: of the logits; 1/sqrt(H) by default.
        is_causal: position t takes part in sources 0 ... t only.

    Returns:
        An array [B, T, N, H], or [T, N, H], in the dtype of query. Logits of 16-bit floats are kept in float32.

    Raises:
        ShapeError: where the shapes do not fit together.
        DtypeError: where the three dtypes differ or are not of floats.
        ArgumentError: for a bias or mask that does not broadcast.

    >>> q = np.ones((1, 4, 2, 8), np.float32)
    >>> nn.dot_product_attention(q, q, q, is_causal=True).shape
    (1, 4, 2, 8)
    """
    avals = [aval_of(x) for x in (query, key, value)]
    _check(*avals)
    length = avals[0].shape[-1]
    factor = (1 / math.sqrt(length) if length else 1.0) if scale is None else float(scale)
    return _attention(query, key, value, bias, mask, scale=factor, is_causal=bool(is_causal))


def _check(q: Any, k: Any, v: Any) -> None:
    shown = f"query {q!r}, key {k!r}, value {v!r}"
    if not (q.dtype == k.dtype == v.dtype and q.dtype in dtypes.FLOATS):
        raise P.error(DtypeError, f"{shown} are not of one floating dtype", "convert them with astype")
    if (
        q.ndim not in (3, 4)
        or not q.ndim == k.ndim == v.ndim
        or k.shape[:-1] != v.shape[:-1]
        or q.shape[-1] != k.shape[-1]
    ):
        raise P.error(ShapeError, f"{shown} do not fit together", "give [B, T, N, H], [B, S, K, H] and [B, S, K, H]")
    if q.shape[:-3] != k.shape[:-3] or not k.shape[-2] or q.shape[-2] % k.shape[-2]:
        raise P.error(
            ShapeError, f"{shown} do not fit together",
            f"make the batches equal, and the {q.shape[-2]} heads of query a multiple of the {k.shape[-2]} of key",
        )  # fmt: skip


@kernel(static=("scale", "is_causal"))
def _attention(query: Any, key: Any, value: Any, bias: Any, mask: Any, scale: float, is_causal: bool) -> Any:
    single = aval_of(query).ndim == 3
    if single:
        query, key, value = (S.reshape(x, shape=(1, *aval_of(x).shape)) for x in (query, key, value))
    dtype = aval_of(query).dtype
    wide = dtype if dtype == dtypes.float64 else dtypes.float32
    b, t, n, h = aval_of(query).shape
    s, kv = aval_of(key).shape[1:3]
    # [B, T, N, H] -> [B, K, G, T, H]: G heads of the query for each of the key.
    q = S.transpose(S.reshape(query, shape=(b, t, kv, n // kv, h)), permutation=(0, 2, 3, 1, 4))
    logits = dot_general(
        q, key, dimension_numbers=(((4,), (3,)), ((0, 1), (0, 2))), precision=None,
        preferred_element_type=None if wide == dtype else wide,
    )  # fmt: skip
    logits = S.reshape(E.mul(logits, S.full_like(logits, scale)), shape=(b, n, t, s))
    if bias is not None:
        logits = E.add(logits, _fit(P.convert(bias, wide), logits, "bias"))
    weights = _weights(logits, mask, is_causal)
    grouped = S.reshape(P.convert(weights, dtype), shape=(b, kv, n // kv, t, s))
    numbers = (((4,), (1,)), ((0, 1), (0, 2)))
    out = dot_general(grouped, value, dimension_numbers=numbers, precision=None, preferred_element_type=None)
    out = S.transpose(out, permutation=(0, 3, 1, 2, 4))
    shape = (t, n, aval_of(value).shape[3])
    return S.reshape(out, shape=shape if single else (b, *shape))


def _weights(logits: Any, mask: Any, is_causal: bool) -> Any:
    aval = aval_of(logits)
    allowed = None
    if mask is not None:
        if aval_of(mask).dtype != dtypes.bool_:
            raise P.error(DtypeError, f"the mask {aval_of(mask)!r} is not of booleans", "add numbers as bias")
        allowed = _fit(mask, logits, "mask")
    if is_causal:
        rows, columns = (S.iota(dtype=dtypes.int32, shape=aval.shape, dimension=d) for d in (2, 3))
        past = E.ge(rows, columns)
        allowed = past if allowed is None else E.and_(allowed, past)
    if allowed is not None:
        return masked_softmax(logits, allowed, (3,))
    e = E.exp(E.sub(logits, shift_of(logits, (3,))))
    return E.div(e, over(S.reduce_sum, e, (3,)))


def _fit(x: Any, logits: Any, name: str) -> Any:
    shape = aval_of(logits).shape
    if aval_of(x).ndim > 4 or P.broadcast_shapes(aval_of(x).shape, shape) != shape:
        raise P.error(
            ArgumentError,
            f"the {name} {aval_of(x)!r} does not broadcast to {shape}",
            "give [B, N, T, S], or 1 in places",
        )
    return P.broadcast(x, shape)
