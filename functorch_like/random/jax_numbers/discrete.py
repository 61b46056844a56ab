"""Booleans, signs, integers, permutations and choices as JAX makes them of bits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functorch_like import dtypes, lax
from functorch_like import numpy as fnp
from functorch_like.numpy import promotion
from functorch_like.primitives.ordering.sort import sort
from functorch_like.random.drawing import streams
from functorch_like.random.generators import U64, raw_bits
from functorch_like.random.jax_numbers.continuous import gumbel, unit


def bernoulli(key: Any, p: Any, shape: tuple[int, ...], dtype: Any, mode: str) -> Any:
    """Draw booleans that are True with probability p."""
    p = promotion.convert(p, dtype)
    if mode == "low":
        return unit(key, shape, dtype) < p
    high, low = unit(key, (2, *shape), dtype)
    return low * np.array(2.0 ** -fnp.finfo(dtype).nmant, dtype) < p - high


def rademacher(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Draw -1 and 1."""
    positive = unit(key, shape, dtypes.default_float()) < 0.5
    return fnp.where(positive, 1, -1).astype(dtype)


def randint(key: Any, low: Any, high: Any, shape: tuple[int, ...], dtype: Any, closed: bool) -> Any:
    """Draw integers from a span: the remainder of two words, the first of which is worth a power of two."""
    info = fnp.iinfo(dtype)
    width = max(info.bits, 32)
    word = np.dtype(f"uint{width}")
    inside = word if np.dtype(dtype).kind == "u" and width == info.bits else np.dtype(f"int{width}")
    start, end = (promotion.convert(x, inside) for x in (low, high))
    span = promotion.convert(end - start, word) + word.type(closed)
    span = fnp.where(end >= start if closed else end > start, span, word.type(1))
    span = fnp.broadcast_to(span, shape)
    whole = span == 0  # all integers of the dtype
    divisor = fnp.where(whole, word.type(1), span)
    upper, lower = (raw_bits(one, shape, width) for one in streams(key, 2))
    power = word.type(2 ** (width // 2)) % divisor
    power = power * power % divisor
    offset = ((upper % divisor) * power + lower % divisor) % divisor
    return (start + fnp.where(whole, lower, offset).astype(inside)).astype(dtype)


def categorical(key: Any, logits: Any, lead: tuple[int, ...], axis: int, mode: str) -> Any:
    """Draw indices of categories with replacement."""
    logits = fnp.asarray(logits)
    noisy = gumbel(key, (*lead, *logits.shape), logits.dtype, mode) + logits
    return fnp.argmax(noisy, axis=len(lead) + axis)


def shuffled(key: Any, shape: tuple[int, ...], axis: int) -> Any:
    """Return 0 ... n-1 in random order along a dimension: sorted by random words, three times where there are many."""
    order = places = lax.broadcasted_iota("uint64", shape, axis)
    rounds = math.ceil(3 * math.log(max(1, math.prod(shape))) / math.log(2**32 - 1))
    for number in range(rounds):
        key, one = streams(key, 2)
        words = raw_bits(one, shape, 32).astype(U64)
        # Equal words keep their order; so each element is sorted together with its place.
        (packed,) = sort(words << 32 | places, dimension=axis, is_stable=False, num_keys=1)
        chosen = (packed & 0xFFFFFFFF).astype("int32")
        order = fnp.take_along_axis(order, chosen, axis=axis, mode="promise_in_bounds") if number else chosen
    return order.astype(dtypes.default_int())


def weighted_indices(key: Any, p: Any, n: int, shape: tuple[int, ...], replace: bool, mode: str) -> Any:
    """Draw from 0 ... n-1 with weights."""
    p = fnp.asarray(promotion.to_inexact(p))
    if replace:
        sums = fnp.cumsum(p)
        at = fnp.searchsorted(sums, sums[-1] * (1 - unit(key, shape, p.dtype)))
        return at.astype(dtypes.default_int())
    _, order = lax.top_k(gumbel(key, (n,), p.dtype, mode) + fnp.log(p), math.prod(shape))
    return order.reshape(shape).astype(dtypes.default_int())
