"""Attention by scaled dot products."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from functorch_like import dtypes, lax
from functorch_like import numpy as fnp
from functorch_like.backends import mha
from functorch_like.backends.precision_names import Fp32
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, DtypeError, ShapeError
from functorch_like.nn.blockwise import Parts, by_keys, by_queries
from functorch_like.nn.softmax import logsumexp, masked_softmax, over, shift_of
from functorch_like.numpy import promotion
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.contractions.dot_general import dot_general
from functorch_like.primitives.higher_order.fused_attention import fused_attention
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike

#: Precision of derivatives by query and key of 16 bits. They are products with derivatives of logits, in float32: on
#: GPUs products of full float32 take several times as long, and the result has 16 bits. float16 has the digits of TF32,
#: but not its range.
_PRECISIONS = {
    dtypes.bfloat16: Fp32(gpu="BF16_BF16_F32", cpu="highest"),
    dtypes.float16: Fp32(gpu="TF32_TF32_F32", cpu="highest"),
}


@overload
def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: Literal[False] = False,
) -> Array: ...
@overload
def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: Literal[True],
) -> tuple[Array, Array]: ...
def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Array | tuple[Array, Array]:
    """softmax(scale query @ key^T + bias) @ value, for each head.

    A. Vaswani et al., "Attention is all you need", arXiv:1706.03762.

    Args:
        query: floats [B, T, N, H]: batch, target positions, heads, features; or [T, N, H].
        key: floats [B, S, K, H] with S source positions. K divides N; each key head serves N/K query heads.
        value: floats [B, S, K, H], the shape of key (the last dimension may differ).
        bias: array that broadcasts to [B, N, T, S]; it is added to the logits.
        mask: booleans that broadcast to [B, N, T, S]. Targets attend to sources where it is True; a target without
            any gives 0.
        scale: factor of the logits; 1/sqrt(H) by default.
        is_causal: True if target t attends to sources 0 ... t only.
        query_seq_lengths: integers [B]: number of valid targets; the others give 0.
        key_value_seq_lengths: integers [B]: number of valid sources.
        local_window_size: pair (l, r): target t attends to sources t - l ... t + r only; an int stands for both.
        implementation: "math" (or "xla") computes all logits at once. "flash" computes blocks of keys in turn,
            "mem_efficient" blocks of queries: both need little memory, and compute blocks again for derivatives.
            "cudnn" is cuDNN's kernel, for 16-bit floats without bias or mask on GPUs. None follows the settings of
            `backends.mha`: "cudnn" where it can be used, and else "math" unless the logits are large.
        return_residual: True to return the logarithms of the sums of exponentials of the logits, too. They are
            computed from all logits at once, whatever the implementation is.

    Returns:
        An array [B, T, N, H], or [T, N, H], in the dtype of query. Logits of 16-bit floats are computed in float32.
        With `return_residual`, a pair of it and the residual, [B, T, N] or [T, N]: -inf for targets without sources.

    Raises:
        ShapeError: if the shapes of query, key, value and lengths do not fit together.
        DtypeError: if the three dtypes differ or are not floating-point; for a mask that is not of booleans.
        ArgumentError: for a bias or mask that does not broadcast; for an implementation that cannot be used.

    >>> q = np.ones((1, 4, 2, 8), np.float32)
    >>> nn.dot_product_attention(q, q, q, is_causal=True).shape
    (1, 4, 2, 8)
    """
    q, k, v = (aval_of(x) for x in (query, key, value))
    _check(q, k, v)
    mask = _restricted(q, k, mask, query_seq_lengths, key_value_seq_lengths, local_window_size)
    length = q.shape[-1]
    factor = (1 / math.sqrt(length) if length else 1.0) if scale is None else float(scale)
    form = _form(mha.SDPAParams(q, k, v, bias if mask is None else mask, is_causal=is_causal), implementation)
    out = _attention(query, key, value, bias, mask, scale=factor, is_causal=bool(is_causal), form=form)
    if not return_residual:
        return out
    return out, _residual(query, key, value, bias, mask, scale=factor, is_causal=bool(is_causal))


def _restricted(q: Any, k: Any, mask: Any, query_lengths: Any, key_lengths: Any, window: Any) -> Any:
    """Return the mask combined with those of the lengths and the window."""
    rows, columns = np.arange(q.shape[-3])[:, None], np.arange(k.shape[-3])[None, :]
    masks = [] if mask is None else [mask]
    if window is not None:
        left, right = (window, window) if isinstance(window, (int, np.integer)) else window
        masks.append((columns >= rows - left) & (columns <= rows + right))
    for lengths, places, name in ((query_lengths, rows, "query"), (key_lengths, columns, "key_value")):
        if lengths is not None:
            aval = aval_of(lengths)
            if aval.shape != (q.shape[0] if q.ndim == 4 else 1,) or not dtypes.is_integer(aval.dtype):
                raise promotion.error(
                    ShapeError, f"{name}_seq_lengths is {aval!r}", "give one integer for each of the batch"
                )
            masks.append(lax.lt(fnp.asarray(places[None, None], "int32"), _wide(lengths, places.shape)))
    return None if not masks else functools.reduce(fnp.logical_and, masks)


def _wide(lengths: Any, shape: tuple[int, ...]) -> Any:
    return fnp.broadcast_to(fnp.asarray(lengths, "int32")[:, None, None, None], (aval_of(lengths).shape[0], 1, *shape))


def _form(params: mha.SDPAParams, implementation: str | None) -> str:
    if implementation is None:
        *batch, t, n, _ = params.query.shape
        form = mha.choose(params, math.prod(batch) * n * t * params.key.shape[-3] * max(4, params.query.dtype.itemsize))
        if not form:
            raise promotion.error(
                ArgumentError, "backends.mha allows no form of attention here", "turn backends.mha.math on"
            )
        return form
    if implementation in ("math", "xla"):
        return "math"
    if implementation not in ("flash", "mem_efficient", "cudnn"):
        raise promotion.error(
            ArgumentError,
            f"there is no implementation {implementation!r}",
            "use 'math', 'flash', 'mem_efficient', 'cudnn' or None",
        )
    why = mha.unfit(implementation, params)
    if why and implementation == "cudnn":
        raise promotion.error(ArgumentError, f"cuDNN's attention cannot be used: {why}", "leave implementation out")
    if why:
        fix = "pad them and mask the padding, or use implementation='math'"
        raise promotion.error(ArgumentError, f"{why}, which {implementation!r} needs", fix)
    return implementation


def _check(q: Any, k: Any, v: Any) -> None:
    shown = f"query {q!r}, key {k!r}, value {v!r}"
    if not (q.dtype == k.dtype == v.dtype and q.dtype in dtypes.FLOATS):
        raise promotion.error(DtypeError, f"{shown} are not of one floating dtype", "convert them with astype")
    if (
        q.ndim not in (3, 4)
        or not q.ndim == k.ndim == v.ndim
        or k.shape[:-1] != v.shape[:-1]
        or q.shape[-1] != k.shape[-1]
    ):
        raise promotion.error(
            ShapeError, f"{shown} do not fit together", "give [B, T, N, H], [B, S, K, H] and [B, S, K, H]"
        )
    if q.shape[:-3] != k.shape[:-3] or not k.shape[-2] or q.shape[-2] % k.shape[-2]:
        raise promotion.error(
            ShapeError, f"{shown} do not fit together",
            f"make the batches equal, and the {q.shape[-2]} heads of query a multiple of the {k.shape[-2]} of key",
        )  # fmt: skip


@eager_jit(static=("scale", "is_causal", "form"))
def _attention(query: Any, key: Any, value: Any, bias: Any, mask: Any, scale: float, is_causal: bool, form: str) -> Any:
    given, (query, key, value) = query, _batches(query, key, value)
    if form == "cudnn":
        out, _ = fused_attention(query, key, value, scale=scale, causal=is_causal)
    else:
        parts = _parts(query, key, value, bias, mask, scale, is_causal)
        if form == "math":
            out = parts.combine(parts.softmax(parts.logits(parts.query, key, np.int32(0), np.int32(0))), value)
        else:
            out = (by_keys if form == "flash" else by_queries)(parts)
        out = promotion.convert(structural.transpose(out, permutation=(0, 2, 1, 3)), aval_of(query).dtype)
    return _as_given(out, given)


@eager_jit(static=("scale", "is_causal"))
def _residual(query: Any, key: Any, value: Any, bias: Any, mask: Any, scale: float, is_causal: bool) -> Any:
    given, (query, key, value) = query, _batches(query, key, value)
    parts = _parts(query, key, value, bias, mask, scale, is_causal)
    total = logsumexp(parts.logits(parts.query, key, np.int32(0), np.int32(0)), axis=3)
    return _as_given(promotion.convert(structural.transpose(total, permutation=(0, 2, 1)), aval_of(query).dtype), given)


def _batches(*xs: Any) -> list[Any]:
    """Return arrays [B, T, N, H]; those without a batch are one of 1."""
    return [x if aval_of(x).ndim == 4 else structural.reshape(x, shape=(1, *aval_of(x).shape)) for x in xs]


def _as_given(out: Any, query: Any) -> Any:
    """Return a result without its batch if the query was given without one."""
    return out if aval_of(query).ndim == 4 else structural.reshape(out, shape=aval_of(out).shape[1:])


def _parts(query: Any, key: Any, value: Any, bias: Any, mask: Any, scale: float, is_causal: bool) -> Parts:
    dtype = aval_of(query).dtype
    wide = dtype if dtype == dtypes.float64 else dtypes.float32
    b, t, n, h = aval_of(query).shape
    s, kv = aval_of(key).shape[1:3]
    whole = (b, n, t, s)
    if bias is not None:
        bias = _fit(promotion.convert(bias, wide), whole, "bias")
    if mask is not None:
        if aval_of(mask).dtype != dtypes.bool_:
            raise promotion.error(DtypeError, f"the mask {aval_of(mask)!r} is not of booleans", "add numbers as bias")
        mask = _fit(mask, whole, "mask")

    def logits(query: Any, key: Any, row: Any, column: Any) -> Any:
        scores = dot_general(
            query, key, dimension_numbers=(((4,), (3,)), ((0, 1), (0, 2))), precision=_PRECISIONS.get(dtype),
            preferred_element_type=None if wide == dtype else wide,
        )  # fmt: skip
        shape = (b, n, aval_of(query).shape[3], aval_of(key).shape[1])
        scores = structural.reshape(elementwise.mul(scores, structural.full_like(scores, scale)), shape=shape)
        if bias is not None:
            scores = elementwise.add(scores, _block(bias, shape, row, column))
        allowed = None if mask is None else _block(mask, shape, row, column)
        if is_causal:
            rows, columns = (
                elementwise.add(
                    structural.iota(dtype=dtypes.int32, shape=shape, dimension=d), promotion.broadcast(start, shape)
                )
                for d, start in ((2, row), (3, column))
            )
            past = elementwise.ge(rows, columns)
            allowed = past if allowed is None else elementwise.and_(allowed, past)
        return (
            scores
            if allowed is None
            else elementwise.select_n(allowed, structural.full_like(scores, -math.inf), scores)
        )

    def combine(weights: Any, value: Any) -> Any:
        grouped = structural.reshape(
            promotion.convert(weights, dtype), shape=(b, kv, n // kv, *aval_of(weights).shape[2:])
        )
        numbers = (((4,), (1,)), ((0, 1), (0, 2)))
        out = dot_general(grouped, value, dimension_numbers=numbers, precision=None, preferred_element_type=None)
        return structural.reshape(out, shape=(b, n, *aval_of(out).shape[3:]))

    def softmax(logits: Any) -> Any:
        if mask is None and not is_causal:
            e = elementwise.exp(elementwise.sub(logits, shift_of(logits, (3,))))
            return elementwise.div(e, over(structural.reduce_sum, e, (3,)))
        return masked_softmax(logits, elementwise.gt(logits, structural.full_like(logits, -math.inf)), (3,))

    # [B, T, N, H] -> [B, K, G, T, H]: G heads of the query for each of the key.
    grouped = structural.transpose(structural.reshape(query, shape=(b, t, kv, n // kv, h)), permutation=(0, 2, 3, 1, 4))
    return Parts(grouped, key, value, logits, combine, softmax)


def _fit(x: Any, whole: tuple[int, ...], name: str) -> Any:
    """Return a bias or mask with as many dimensions as the logits, each whole or 1."""
    aval = aval_of(x)
    if aval.ndim > 4 or promotion.broadcast_shapes(aval.shape, whole) != whole:
        raise promotion.error(
            ArgumentError, f"the {name} {aval!r} does not broadcast to {whole}", "give [B, N, T, S], or 1 in places"
        )
    return structural.reshape(x, shape=(1,) * (4 - aval.ndim) + aval.shape)


def _block(x: Any, shape: tuple[int, ...], row: Any, column: Any) -> Any:
    """Return the part of a bias or mask for a block of the logits of this shape."""
    sizes = [size if full > 1 else 1 for size, full in zip(shape, aval_of(x).shape, strict=True)]
    if tuple(sizes) != aval_of(x).shape:
        starts = [start if full > 1 else 0 for start, full in zip((0, 0, row, column), aval_of(x).shape, strict=True)]
        x = lax.dynamic_slice(x, starts, sizes)
    return promotion.broadcast(x, shape)
