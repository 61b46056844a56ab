"""Counters and rounds of the generators of random bits, over any arithmetic; and drawing by rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.random.threefry import threefry2x32 as threefry

_MULTIPLIERS, _WEYL = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)


def philox(
    key: Sequence[Any],
    words: Sequence[Any],
    product: Callable[[Any, int], tuple[Any, Any]],
    xor: Callable[[Any, Any], Any],
    raised: Callable[[Any, int], Any],
) -> tuple[Any, ...]:
    """Philox-4x32-10: `product` gives the high and the low word, `raised` adds a constant."""
    (k0, k1), (a, b, c, d) = key, words
    for turn in range(10):
        if turn:
            k0, k1 = raised(k0, _WEYL[0]), raised(k1, _WEYL[1])
        (high0, low0), (high1, low1) = product(a, _MULTIPLIERS[0]), product(c, _MULTIPLIERS[1])
        a, b, c, d = xor(xor(high1, b), k0), low1, xor(xor(high0, d), k1), low0
    return a, b, c, d


def split_dim(shape: Sequence[int]) -> int:
    """The dimension along which Threefry's two words are woven: the first even one, or else the longest."""
    even = [d for d, n in enumerate(shape) if n % 2 == 0]
    return even[0] if even else max(range(len(shape)), key=lambda d: (shape[d], -d))


# ------------------------------------------------------------------------------------------------------ draws by rows
def _as(x: Any, dtype: Any) -> Any:
    return structural.convert_element_type(x, new_dtype=np.dtype(dtype))


def _words(x: Any) -> tuple[Any, Any]:
    return _as(x, np.uint32), _as(elementwise.shift_right_logical(x, structural.full_like(x, 32)), np.uint32)


def _joined(low: Any, high: Any) -> Any:
    high = _as(high, np.uint64)
    return elementwise.or_(_as(low, np.uint64), elementwise.shift_left(high, structural.full_like(high, 32)))


def _element(states: Any, which: int) -> Any:
    n = aval_of(states).shape[0]
    part = structural.slice(states, start_indices=(0, which), limit_indices=(n, which + 1), strides=None)
    return structural.reshape(part, shape=(n,))


def _counted(start: Any, count: int) -> Any:
    """start, start + 1, ... in a row for each state."""
    places = structural.iota(dtype=dtypes.uint64, shape=(aval_of(start).shape[0], count), dimension=1)
    return elementwise.add(_repeated(start, count), places)


def _repeated(x: Any, count: int) -> Any:
    return structural.widen(x, count, 1)


def draw(states: Any, shape: tuple[int, ...], dtype: np.dtype[Any], algorithm: str, cipher: Any) -> tuple[Any, Any]:
    """Return new states and bits for a batch of states u64[n, 2]; `cipher` is the primitive of Philox."""
    n = aval_of(states).shape[0]
    key, counter = _element(states, 0), _element(states, 1)
    by = _by_threefry if algorithm == "three_fry" else _by_philox
    bits, used = by(n, key, counter, shape, dtype.itemsize == 8, cipher)
    column = lambda x: structural.reshape(x, shape=(n, 1))
    moved = elementwise.add(counter, structural.full_like(counter, used))
    return structural.concatenate(column(key), column(moved), dimension=1), _as(bits, dtype)


def _by_threefry(n: int, key: Any, counter: Any, shape: tuple[int, ...], wide: bool, _: Any) -> tuple[Any, int]:
    at = split_dim(shape) if shape else 0
    half = shape if wide else tuple(-(-m // 2) if d == at else m for d, m in enumerate(shape))
    count = math.prod(half)
    keys = [_repeated(w, count) for w in _words(key)]
    pair = threefry(*keys, *_words(_counted(counter, count)))
    if wide:
        return structural.reshape(_joined(*pair), shape=(n, *shape)), count
    if not shape:
        return structural.reshape(pair[0], shape=(n,)), count
    apart = [structural.reshape(x, shape=(n, *half[: at + 1], 1, *half[at + 1 :])) for x in pair]
    whole = (n, *half[:at], 2 * half[at], *half[at + 1 :])
    woven = structural.reshape(structural.concatenate(*apart, dimension=at + 2), shape=whole)
    return structural.slice(woven, start_indices=(0,) * len(whole), limit_indices=(n, *shape), strides=None), count


def _by_philox(n: int, key: Any, counter: Any, shape: tuple[int, ...], wide: bool, cipher: Any) -> tuple[Any, int]:
    size = math.prod(shape)
    count = -(-size * (2 if wide else 1) // 4)
    low = _counted(counter, count)
    over = _as(elementwise.lt(low, _repeated(counter, count)), np.uint64)
    high = elementwise.add(_repeated(key, count), over)  # the upper half of the counter starts as the key
    out = cipher(*(_repeated(w, count) for w in _words(key)), *_words(low), *_words(high))
    parts = [_joined(out[0], out[1]), _joined(out[2], out[3])] if wide else out
    woven = structural.concatenate(*(structural.reshape(x, shape=(n, count, 1)) for x in parts), dimension=2)
    flat = structural.reshape(woven, shape=(n, count * len(parts)))
    flat = structural.slice(flat, start_indices=(0, 0), limit_indices=(n, size), strides=None)
    return structural.reshape(flat, shape=(n, *shape)), count
