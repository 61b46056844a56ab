"""Words that JAX makes of a Threefry key, where they are made otherwise than this package's.

Since JAX 0.5.0 the i-th word depends on the key and i alone: it is the exclusive or of the two words that the cipher
makes of the counter i. In earlier releases, and with `jax_threefry_partitionable=False`, the counters of a whole array
are halved, and each one of the first half is enciphered with its partner in the second.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functorch_like.backends import random as settings
from functorch_like.core import aval_of
from functorch_like.primitives import elementwise, structural
from functorch_like.random.cipher import count, full, long_words, part, words_of


def bits(key: Any, shape: tuple[int, ...], width: int) -> Any:
    """Return unsigned integers of a width."""
    n = math.prod(shape)
    made = _numbered(key, n, width) if settings.are_partitionable() else _halved_bits(key, n, width)
    return structural.reshape(made, shape=shape)


def _numbered(key: Any, n: int, width: int) -> Any:
    first, second = words_of(key, full(n, 0), count(n))
    if width == 64:
        return long_words(first, second)
    word = elementwise.xor(first, second)
    return word if width == 32 else structural.convert_element_type(word, new_dtype=np.dtype(f"uint{width}"))


def _halved_bits(key: Any, n: int, width: int) -> Any:
    words = _halved(key, -(-n * width // 32))
    if width == 64:
        return long_words(part(words, 0, n), part(words, n, 2 * n))
    if width == 32:
        return words
    pieces = elementwise.bitcast_convert_type(words, new_dtype=np.dtype(f"uint{width}"))
    return part(structural.reshape(pieces, shape=(math.prod(aval_of(pieces).shape),)), 0, n)


def split(key: Any, n: int) -> Any:
    """Return keys u32[n, w] of a key u32[w] as earlier releases of JAX do; the halves of a key of four words apart."""
    width = aval_of(key).shape[0]
    pairs = [structural.reshape(_halved(part(key, i, i + 2), 2 * n), shape=(n, 2)) for i in range(0, width, 2)]
    return structural.concatenate(*pairs, dimension=1)


def _halved(key: Any, n: int) -> Any:
    """Return u32[n]: the counters 0 ... n-1, of which the first half is enciphered with the second."""
    half = -(-n // 2)
    first = count(half)
    second = elementwise.add(first, full(half, half))
    if n % 2:  # the last counter has no partner, and gets 0
        last = elementwise.eq(first, full(half, half - 1))
        second = elementwise.select_n(last, second, full(half, 0))
    return part(structural.concatenate(*words_of(key, first, second), dimension=0), 0, n)
