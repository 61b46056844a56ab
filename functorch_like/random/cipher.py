"""The Threefry cipher applied to vectors of counters under one key."""

from __future__ import annotations

from typing import Any

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.numpy import promotion
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.random.threefry import threefry2x32

U32, U64 = dtypes.uint32, dtypes.uint64


def count(n: int) -> Any:
    """Return the counters 0 ... n-1."""
    return structural.iota(dtype=U32, shape=(n,), dimension=0)


def long_words(high: Any, low: Any) -> Any:
    """Join two words of 32 bits to one of 64."""
    high, low = (structural.convert_element_type(w, new_dtype=U64) for w in (high, low))
    return elementwise.or_(elementwise.shift_left(high, structural.full_like(high, 32)), low)


def full(n: int, number: Any) -> Any:
    """Return u32[n] of one number: an int, or a u32[]."""
    if isinstance(number, int):
        return structural.full((n,), number, U32)
    return promotion.broadcast(structural.reshape(number, shape=()), (n,))


def part(key: Any, start: int, stop: int) -> Any:
    """Return some words of a key, or of a vector of bits."""
    return structural.slice(key, start_indices=(start,), limit_indices=(stop,), strides=None)


def words_of(key: Any, c0: Any, c1: Any) -> tuple[Any, Any]:
    """Apply Threefry with a key of two words to counters of one shape."""
    shape = aval_of(c0).shape
    half = lambda i: promotion.broadcast(structural.reshape(part(key, i, i + 1), shape=()), shape)
    return threefry2x32(half(0), half(1), c0, c1)


def hashed(key: Any, c0: Any, c1: Any) -> Any:
    """Return keys u32[n, w] from a key u32[w] and counters u32[n]: each pair of words is hashed by itself."""
    n, width = aval_of(c0).shape[0], aval_of(key).shape[0]
    words = [w for i in range(0, width, 2) for w in words_of(part(key, i, i + 2), c0, c1)]
    return structural.concatenate(*(structural.reshape(w, shape=(n, 1)) for w in words), dimension=1)
