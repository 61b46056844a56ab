"""fused_attention: attention by scaled dot products in one kernel, cuDNN's on NVIDIA's GPUs; its meaning elsewhere.

The kernel keeps the logarithms of the softmax's sums instead of its weights. The derivative computes these again, by a
second kernel: memory grows with T + S instead of T * S (T. Dao et al., "FlashAttention", arXiv:2205.14135).

Operands are query [B, T, N, H], key [B, S, K, H] and value [B, S, K, V]; each of K heads serves N / K of the query's.
With `causal`, position t takes part in sources 0 ... t only. In the functions below, logits are [B, K, T, N / K, S].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import core, dtypes
from functorch_like.avals import ShapedArray
from functorch_like.backends.xla import cudnn_attention
from functorch_like.compiler.lower import emit
from functorch_like.core import BatchAxis, Primitive, SampleInput, UndefinedPrimal, aval_of
from functorch_like.errors import DtypeError, ShapeError
from functorch_like.interpreters import forward
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.contractions.dot_general import dot_general
from functorch_like.primitives.reductions.reductions import reduce_max_number

_Values = Sequence[Any]


# ------------------------------------------------------------------------------------------------------------- meaning
def _dot(a: Any, b: Any, contract: Any, batch: Any) -> Any:
    return dot_general(a, b, dimension_numbers=(contract, batch), precision=None, preferred_element_type=None)


def _wide(x: Any) -> Any:
    """Return an array in the dtype of the logits."""
    return structural.convert_element_type(x, new_dtype=np.promote_types(aval_of(x).dtype, np.float32))


def _grouped(x: Any, like: Any) -> Any:
    """[B, T, N, W] -> [B, K, T, N / K, W], the heads of the query by those of the key."""
    b, t, n, width = aval_of(x).shape
    heads = aval_of(like).shape[2]
    grouped = structural.reshape(_wide(x), shape=(b, t, heads, n // heads, width))
    return structural.transpose(grouped, permutation=(0, 2, 1, 3, 4))


def _ungrouped(x: Any, dtype: Any) -> Any:
    """[B, K, T, N / K, W] -> [B, T, N, W]."""
    x = structural.transpose(x, permutation=(0, 2, 1, 3, 4))
    b, t, k, g, width = aval_of(x).shape
    return structural.convert_element_type(structural.reshape(x, shape=(b, t, k * g, width)), new_dtype=dtype)


def _stats_of(x: Any) -> Any:
    """[B, K, T, N / K] -> [B, N, T]."""
    x = structural.transpose(x, permutation=(0, 1, 3, 2))
    b, k, g, t = aval_of(x).shape
    return structural.reshape(x, shape=(b, k * g, t))


def _spread(x: Any, logits: Any) -> Any:
    """[B, K, T, N / K] -> [B, K, T, N / K, S]."""
    return structural.broadcast_in_dim(x, shape=aval_of(logits).shape, broadcast_dimensions=(0, 1, 2, 3))


def _by_logits(stats: Any, logits: Any) -> Any:
    """[B, N, T] -> [B, K, T, N / K, S]."""
    b, k, t, g, _ = aval_of(logits).shape
    x = structural.transpose(structural.reshape(stats, shape=(b, k, g, t)), permutation=(0, 1, 3, 2))
    return _spread(x, logits)


def _products(query: Any, key: Any, scale: float) -> Any:
    """Return scale * query @ key^T for each head."""
    x = _dot(_grouped(query, key), _wide(key), ((4,), (3,)), ((0, 1), (0, 2)))
    return elementwise.mul(x, structural.full_like(x, scale))


def _logits(query: Any, key: Any, scale: float, causal: bool) -> Any:
    x = _products(query, key, scale)
    if not causal:
        return x
    shape = aval_of(x).shape
    row, column = (structural.iota(dtype=dtypes.int32, shape=shape, dimension=d) for d in (2, 4))
    return elementwise.select_n(elementwise.ge(row, column), structural.full_like(x, -math.inf), x)


def _sum(x: Any) -> Any:
    """Return the sums over the sources."""
    return structural.reduce_sum(x, axes=(4,))


def _weights(logits: Any, stats: Any) -> Any:
    return elementwise.exp(elementwise.sub(logits, _by_logits(stats, logits)))


def _combined(weights: Any, value: Any) -> Any:
    return _dot(weights, _wide(value), ((4,), (1,)), ((0, 1), (0, 2)))


def _attention(query: Any, key: Any, value: Any, *, scale: float, causal: bool) -> list[Any]:
    logits = _logits(query, key, scale, causal)
    greatest = reduce_max_number(logits, axes=(4,))
    sums = _sum(elementwise.exp(elementwise.sub(logits, _spread(greatest, logits))))
    stats = _stats_of(elementwise.add(greatest, elementwise.log(sums)))
    return [_ungrouped(_combined(_weights(logits, stats), value), aval_of(query).dtype), stats]


def _tangent(
    query: Any, key: Any, value: Any, stats: Any, dq: Any, dk: Any, dv: Any, *, scale: float, causal: bool
) -> list[Any]:
    """dL = scale (dQ K^T + Q dK^T), and with weights P: dO = (P * (dL - rowsum(P * dL))) V + P dV."""
    weights = _weights(_logits(query, key, scale, causal), stats)
    change = elementwise.add(_products(dq, key, scale), _products(query, dk, scale))
    mean = _sum(elementwise.mul(weights, change))
    steeper = elementwise.mul(weights, elementwise.sub(change, _spread(mean, change)))
    out = elementwise.add(_combined(steeper, value), _combined(weights, dv))
    return [_ungrouped(out, aval_of(query).dtype), _stats_of(mean)]


def _gradient(
    query: Any, key: Any, value: Any, stats: Any, ct: Any, ct_stats: Any = None, *, scale: float, causal: bool
) -> list[Any]:
    """dP = dO V^T, and dL = scale P * (dP - rowsum(P * dP)): dQ = dL K, dK = dL^T Q, dV = P^T dO.

    The sum is that of dO * O, by which the kernel computes it.
    """
    weights = _weights(_logits(query, key, scale, causal), stats)
    rows, queries = _grouped(ct, value), _grouped(query, key)
    change = _dot(rows, _wide(value), ((4,), (3,)), ((0, 1), (0, 2)))
    change = elementwise.sub(change, _spread(_sum(elementwise.mul(weights, change)), weights))
    if ct_stats is not None:
        change = elementwise.add(change, _by_logits(ct_stats, weights))
    slope = elementwise.mul(weights, elementwise.mul(change, structural.full_like(change, scale)))

    def by_sources(x: Any, y: Any, like: Any) -> Any:
        made = _dot(x, y, ((2, 3), (2, 3)), ((0, 1), (0, 1)))  # [B, K, S, W]
        made = structural.transpose(made, permutation=(0, 2, 1, 3))
        return structural.convert_element_type(made, new_dtype=aval_of(like).dtype)

    of_query = _ungrouped(_dot(slope, _wide(key), ((4,), (1,)), ((0, 1), (0, 2))), aval_of(query).dtype)
    return [of_query, by_sources(slope, queries, key), by_sources(weights, rows, value)]


# --------------------------------------------------------------------------------------------------------------- shapes
def _check(query: ShapedArray, key: ShapedArray, value: ShapedArray) -> None:
    shown = f"query {query!r}, key {key!r}, value {value!r}"
    if not (query.dtype == key.dtype == value.dtype and query.dtype in dtypes.FLOATS):
        raise DtypeError(f"{shown} are not real floating point numbers of one dtype", fix="convert them with astype")
    fits = (
        query.ndim == key.ndim == value.ndim == 4
        and query.shape[0] == key.shape[0]
        and query.shape[3] == key.shape[3]
        and key.shape[:3] == value.shape[:3]
        and key.shape[1] > 0 < key.shape[2]
        and query.shape[2] % key.shape[2] == 0
    )
    if not fits:
        raise ShapeError(
            f"{shown} do not fit together",
            fix="give [B, T, N, H], [B, S, K, H] and [B, S, K, V], with K a divisor of N",
        )


def _shape(query: ShapedArray, key: ShapedArray, value: ShapedArray, **_: Any) -> tuple[ShapedArray, ...]:
    _check(query, key, value)
    b, t, n, _h = query.shape
    stats = ShapedArray((b, n, t), np.promote_types(query.dtype, np.float32))
    return ShapedArray((b, t, n, value.shape[3]), query.dtype), stats


def _gradient_shape(
    query: ShapedArray, key: ShapedArray, value: ShapedArray, out: ShapedArray, stats: ShapedArray, ct: ShapedArray,
    **_: Any,
) -> tuple[ShapedArray, ...]:  # fmt: skip
    expected = _shape(query, key, value)
    if (out.strong(), stats.strong()) != expected or ct.strong() != expected[0]:
        raise ShapeError(
            f"{out!r}, {stats!r} and {ct!r} are not the results and a cotangent of attention",
            fix=f"give {expected[0]!r}, {expected[1]!r} and {expected[0]!r}",
        )
    return query.strong(), key.strong(), value.strong()


# ------------------------------------------------------------------------------------------------------------ reference
def _ref_logits(query: Any, key: Any, scale: float, causal: bool) -> Any:
    x = scale * np.einsum("btnh,bsnh->bnts", query, key)
    return np.where(np.tri(*x.shape[-2:], dtype=bool), x, -np.inf) if causal else x


def _in_double(*arrays: Any, heads: int) -> list[Any]:
    """Return arrays in float64, with as many heads as the query."""
    return [np.repeat(x.astype(np.float64), heads // x.shape[2], axis=2) for x in arrays]


def _ref(query: Any, key: Any, value: Any, *, scale: float, causal: bool) -> Any:
    q, k, v = _in_double(query, key, value, heads=query.shape[2])
    logits = _ref_logits(q, k, scale, causal)
    stats = np.log(np.exp(logits - logits.max(-1, keepdims=True)).sum(-1)) + logits.max(-1)
    out = np.einsum("bnts,bsnv->btnv", np.exp(logits - stats[..., None]), v)
    return out.astype(query.dtype), stats.astype(np.promote_types(query.dtype, np.float32))


def _tangent_ref(
    query: Any, key: Any, value: Any, out: Any, stats: Any, *tangents: Any, scale: float, causal: bool
) -> Any:
    heads = query.shape[2]
    q, k, v = _in_double(query, key, value, heads=heads)
    dq, dk, dv = _in_double(*tangents, heads=heads)
    weights = np.exp(_ref_logits(q, k, scale, causal) - stats.astype(np.float64)[..., None])
    change = _ref_logits(dq, k, scale, False) + _ref_logits(q, dk, scale, False)
    mean = (weights * change).sum(-1)
    parts = (weights * (change - mean[..., None]), v), (weights, dv)
    result = sum(np.einsum("bnts,bsnv->btnv", *each) for each in parts)
    return result.astype(query.dtype), mean.astype(stats.dtype)


def _gradient_ref(
    query: Any, key: Any, value: Any, out: Any, stats: Any, ct: Any, *, scale: float, causal: bool
) -> Any:
    heads = query.shape[2]
    q, k, v = _in_double(query, key, value, heads=heads)
    (ct,) = _in_double(ct, heads=heads)
    weights = np.exp(_ref_logits(q, k, scale, causal) - stats.astype(np.float64)[..., None])
    change = np.einsum("btnv,bsnv->bnts", ct, v)
    slope = scale * weights * (change - (weights * change).sum(-1, keepdims=True))
    dq = np.einsum("bnts,bsnh->btnh", slope, k)
    whole = np.einsum("bnts,btnh->bsnh", slope, q), np.einsum("bnts,btnv->bsnv", weights, ct)
    of_key = [x.reshape(*key.shape[:3], heads // key.shape[2], x.shape[-1]).sum(3) for x in whole]
    return tuple(x.astype(query.dtype) for x in (dq, *of_key))


# ------------------------------------------------------------------------------------------------------------- lowering
def _written(e: Any, meaning: Callable[..., Any], operands: _Values) -> list[Any]:
    """Write the meaning of a primitive."""
    jaxpr, _ = stage(meaning, list(e.ins), name="fused_attention", parent=core.EVALUATE)
    return emit(e, jaxpr, operands)


def _has_kernel(e: Any) -> bool:
    """Return True if cuDNN's kernel can be called: XLA cannot split it over a mesh."""
    whole = e.partitioning is None or (e.manual is not None and e.manual.is_whole)
    return e.platform == "gpu" and whole and not e.portable and cudnn_attention.fits(*e.ins[:3])


def _lower(e: Any, *operands: Any, **params: Any) -> list[Any]:
    if _has_kernel(e):
        return cudnn_attention.forward(e, operands, **params)
    return _written(e, lambda *xs: _attention(*xs, **params), operands)


def _gradient_lower(e: Any, *operands: Any, **params: Any) -> list[Any]:
    if _has_kernel(e):
        return cudnn_attention.backward(e, operands, **params)
    return _written(e, lambda q, k, v, out, stats, ct: _gradient(q, k, v, stats, ct, **params), operands)


# --------------------------------------------------------------------------------------------------------------- rules
def _some(tangents: _Values, primals: _Values) -> list[Any]:
    return [structural.zeros(aval_of(x)) if t is None else t for x, t in zip(primals, tangents, strict=True)]


def _jvp(primals: _Values, tangents: _Values, **params: Any) -> tuple[Any, Any]:
    results = fused_attention(*primals, **params)
    return results, fused_attention_tangent(*primals, *results, *_some(tangents, primals), **params)


def _tangent_jvp(primals: _Values, tangents: _Values, **params: Any) -> tuple[Any, Any]:
    fixed, moving = primals[:5], primals[5:]
    if all(t is None for t in tangents[:5]):
        return (
            fused_attention_tangent(*primals, **params),
            fused_attention_tangent(*fixed, *_some(tangents[5:], moving), **params),
        )
    # The results of the forward pass move with query, key and value: they are computed again.
    again = lambda q, k, v, *more: _tangent(q, k, v, _attention(q, k, v, **params)[1], *more, **params)
    return forward.jvp(again, [*primals[:3], *moving], [*tangents[:3], *tangents[5:]])


def _tangent_transpose(cts: _Values, args: _Values, **params: Any) -> list[Any]:
    ct, ct_stats = cts
    query, key, value, out, stats, *moving = args
    if ct is None:
        ct = structural.zeros(aval_of(out))
    if ct_stats is None:
        grads = fused_attention_grad(query, key, value, out, stats, ct, **params)
    else:
        grads = _gradient(query, key, value, stats, ct, ct_stats, **params)
    wanted = [g if isinstance(x, UndefinedPrimal) else None for g, x in zip(grads, moving, strict=True)]
    return [None] * 5 + wanted


def _gradient_jvp(primals: _Values, tangents: _Values, **params: Any) -> tuple[Any, Any]:
    *fixed, ct = primals
    if all(t is None for t in tangents[:5]):
        return fused_attention_grad(*primals, **params), fused_attention_grad(*fixed, tangents[5], **params)
    again = lambda q, k, v, ct: _gradient(q, k, v, _attention(q, k, v, **params)[1], ct, **params)
    return forward.jvp(again, [*primals[:3], ct], [*tangents[:3], tangents[5]])


def _gradient_transpose(cts: _Values, args: _Values, **params: Any) -> list[Any]:
    """Gradients depend on the cotangent by the transpose of the tangent map."""
    fixed = args[:5]
    moved = fused_attention_tangent(*fixed, *_some(cts, fixed[:3]), **params)[0]
    return [None] * 5 + [moved]


def _folded(name: str) -> Callable[..., Any]:
    """Return the batch rule: the mapped axis becomes part of B."""

    def batch(axis: BatchAxis, args: _Values, dims: _Values, **params: Any) -> tuple[list[Any], list[int]]:
        leading = [
            structural.widen(x, axis.size) if d is None else structural.move(x, d, 0)
            for x, d in zip(args, dims, strict=True)
        ]
        size = aval_of(leading[0]).shape[1]
        fold = lambda x: structural.reshape(x, shape=(axis.size * size, *aval_of(x).shape[2:]))
        unfold = lambda x: structural.reshape(x, shape=(axis.size, size, *aval_of(x).shape[1:]))
        outs = core.TABLE[name](*map(fold, leading), **params)
        return [*map(unfold, outs)], [0] * len(outs)

    return batch


# ----------------------------------------------------------------------------------------------------------- primitives
def _operands(b: int, t: int, s: int, n: int, k: int, h: int, v: int, dtype: str) -> list[ShapedArray]:
    return [ShapedArray(shape, dtype) for shape in ((b, t, n, h), (b, s, k, h), (b, s, k, v))]


_SIZES: list[tuple[Any, ...]] = [
    (2, 3, 4, 2, 2, 3, 2, "float32", False),
    (1, 3, 3, 4, 2, 2, 2, "float64", True),
    (1, 4, 2, 2, 1, 8, 8, "float32", True),
    (2, 3, 4, 2, 1, 8, 8, "bfloat16", False),
    (0, 3, 4, 2, 2, 3, 2, "float32", False),
]


def _samples() -> list[SampleInput]:
    return [SampleInput(tuple(_operands(*s)), {"scale": 0.7, "causal": c}) for *s, c in _SIZES]


def _with_results(more: Callable[[list[Any], Any], list[Any]]) -> list[SampleInput]:
    """Return samples with the results of the forward pass, of small operands, and more operands."""
    made: list[SampleInput] = []
    draw = np.random.default_rng(0)
    for *sizes, causal in _SIZES:
        params = {"scale": 0.7, "causal": causal}
        arrays = [draw.uniform(-1, 1, x.shape).astype(x.dtype) for x in _operands(*sizes)]
        results = _ref(*arrays, **params)
        made.append(SampleInput((*arrays, *results, *more(arrays, results[0])), params, smooth=False))
    return made


def _like(x: Any) -> ShapedArray:
    return ShapedArray(x.shape, x.dtype)


#: out and, in the dtype of the logits, stats [B, N, T]: the logarithms of the sums of exp(logits).
fused_attention = Primitive(
    "fused_attention",
    shape=_shape,
    ref=_ref,
    lower=_lower,
    jvp=_jvp,
    transpose=core.NotDefined("attention is not linear in any operand; differentiate it first"),
    batch=_folded("fused_attention"),
    samples=_samples,
    multiple_results=True,
)
#: The tangents of both, of the operands, the results and the operands' tangents.
fused_attention_tangent = Primitive(
    "fused_attention_tangent",
    shape=lambda q, k, v, out, stats, *_tangents, **params: _shape(q, k, v, **params),
    ref=_tangent_ref,
    lower=lambda e, *operands, **params: _written(
        e, lambda q, k, v, out, stats, *ts: _tangent(q, k, v, stats, *ts, **params), operands
    ),
    jvp=_tangent_jvp,
    transpose=_tangent_transpose,
    batch=_folded("fused_attention_tangent"),
    samples=lambda: _with_results(lambda operands, out: [_like(x) for x in operands]),
    multiple_results=True,
)
#: The gradients of the operands, of these, the results and a cotangent of out.
fused_attention_grad = Primitive(
    "fused_attention_grad",
    shape=_gradient_shape,
    ref=_gradient_ref,
    lower=_gradient_lower,
    jvp=_gradient_jvp,
    transpose=_gradient_transpose,
    batch=_folded("fused_attention_grad"),
    samples=lambda: _with_results(lambda operands, out: [_like(out)]),
    linear=5,
    multiple_results=True,
)
