"""Random generators: their keys, splits, folds and bits.

| generator | key | splits, folds | bits |
|---|---|---|---|
| threefry2x32 | u32[2] | Threefry | Threefry |
| rbg | u32[4] | Threefry, of each half | XLA's generator with Philox |
| unsafe_rbg | u32[4] | XLA's generator with Philox | the same |

Bits, splits and folds of Threefry use separate ranges of counters, called domains. So the bits of a key do not contain
the keys that were split from it. Where `backends.random.numbers` asks for JAX's numbers, all of them count from 0.
Users may define more (`own_generators.py`).
Keys, splits, folds and bits of the other two generators are always those of JAX 0.10.2 on CPUs. Under vmap over keys,
the bits of each element depend on its own key only.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import core
from functorch_like.backends import random as settings
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError
from functorch_like.numpy import promotion
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.random.philox import rng_bit_generator
from functorch_like.primitives.random.threefry import draw, fold
from functorch_like.random import own_generators
from functorch_like.random.cipher import U32, U64, count, full, hashed, long_words, part, words_of
from functorch_like.random.jax_numbers import words as jax_words
from functorch_like.random.own_generators import OwnGenerator

#: Number of words of each generator's keys.
WORDS = {"threefry2x32": 2, "rbg": 4, "unsafe_rbg": 4}
#: The generator of untyped keys, by their number of words.
BY_WORDS = {2: "threefry2x32", 4: "rbg"}
DEFAULT = core.DEFAULT_GENERATOR

#: The first counter word of the domain of splits; bits count from 0 up.
_SPLIT = 0x80000000
#: Number of draws of unsafe_rbg for each one that is used; the others are skipped, to hash the key.
_ROUNDS = 10


def named(impl: Any, what: str) -> str:
    """Return the checked name of a generator; for None, the default.

    Raises:
        ArgumentError: for an unknown generator.
    """
    name = DEFAULT.value if impl is None else str(impl)
    if name not in WORDS:
        one = " or ".join(filter(None, [", ".join(map(repr, list(WORDS)[:-1])), repr(list(WORDS)[-1])]))
        raise promotion.error(ArgumentError, f"{what}: there is no generator {name!r}", f"use {one}")
    return name


def define(name: str, tag: str, key_shape: tuple[int, ...], functions: dict[str, Callable[..., Any]]) -> OwnGenerator:
    """Add a generator of the user's, by functions `seed`, `split`, `random_bits` and `fold_in`; return it.

    If another generator has the name, a number is added to it.
    """
    unique = name
    while unique in WORDS:
        unique = f"{name}_{len(WORDS)}"
    least = max(6, math.prod(key_shape) + math.prod(key_shape) % 2)  # even: words are hashed in pairs
    words = next(n for n in itertools.count(least, 2) if n not in BY_WORDS)
    made = OwnGenerator(unique, tag, key_shape, words, **functions)
    WORDS[unique], BY_WORDS[words] = words, unique
    own_generators.BY_NAME[unique] = own_generators.BY_WORDS[words] = made
    return made


# ------------------------------------------------------------------------------------------------- XLA's generator
def _generated(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return bits of XLA's generator for a key u32[4]; Philox is its default on CPUs."""
    state = elementwise.bitcast_convert_type(structural.reshape(key, shape=(2, 2)), new_dtype=U64)
    return rng_bit_generator(state, shape=shape, dtype=np.dtype(dtype), algorithm="philox")[1]


# ---------------------------------------------------------------------------------------------------- splits and folds
def from_words(words: Sequence[Any], impl: str) -> Any:
    """Return a key from the two words of a seed, each u32[]."""
    pair = [structural.reshape(w, shape=(1,)) for w in words]
    return structural.concatenate(*(pair * (WORDS[impl] // 2)), dimension=0)


def split(key: Any, shape: tuple[int, ...], impl: str) -> Any:
    """Return keys u32[*shape, w]."""
    if impl in own_generators.BY_NAME:
        return own_generators.BY_NAME[impl].split_into(key, shape)
    n = math.prod(shape)
    if impl == "unsafe_rbg":
        many = _generated(key, (_ROUNDS * n, 4), U32)
        made = structural.slice(many, start_indices=(0, 0), limit_indices=(_ROUNDS * n, 4), strides=(_ROUNDS, 1))
    elif settings.are_partitionable():
        made = children(key, _SPLIT if impl == "threefry2x32" and settings.are_native() else 0, n)
    else:
        made = jax_words.split(key, n)
    return structural.reshape(made, shape=(*shape, WORDS[impl]))


def children(key: Any, domain: int, n: int) -> Any:
    """Return keys u32[n, w], numbered in a domain of counters."""
    return hashed(key, full(n, domain), count(n))


def fold_in(key: Any, high: Any, low: Any, impl: str) -> Any:
    """Return a key from a key and the two words of an integer."""
    if impl in own_generators.BY_NAME:
        return own_generators.BY_NAME[impl].folded(key, low)  # as in JAX, which folds in 32 bits
    if impl == "threefry2x32" and settings.are_native():
        return fold(key, high, low)
    if impl != "unsafe_rbg":
        words = (structural.reshape(w, shape=(1,)) for w in (high, low))
        return structural.reshape(hashed(key, *words), shape=(WORDS[impl],))
    many = _generated(from_words((high, low), impl), (_ROUNDS, 4), U32)
    last = structural.slice(many, start_indices=(_ROUNDS - 1, 0), limit_indices=(_ROUNDS, 4), strides=None)
    return elementwise.xor(key, structural.reshape(last, shape=(4,)))


# --------------------------------------------------------------------------------------------------------------- bits
def raw_bits(key: Any, shape: tuple[int, ...], width: int) -> Any:
    """Return unsigned integers of a width; both words that the cipher makes of a counter are used."""
    own = own_generators.BY_WORDS.get(aval_of(key).shape[0])
    if own is not None:
        return own.bits(draw(key), shape, width)
    if aval_of(key).shape[0] == 4:
        return _generated(draw(key), shape, f"uint{width}")
    n = math.prod(shape)
    words = -(-n * width // 32)
    half = -(-words // 2)
    if (half if settings.are_native() else max(n, words)) >= 2**32:
        raise promotion.error(
            ArgumentError, f"{n} random numbers of {width} bits exhaust a key's counters", "split the key"
        )
    if not settings.are_native():
        return jax_words.bits(draw(key), shape, width)
    first, second = numbered(draw(key), 0, half)
    if width == 64:
        flat = long_words(first, second)
    else:
        flat = structural.concatenate(first, second, dimension=0)
        if width < 32:
            flat = elementwise.bitcast_convert_type(flat, new_dtype=np.dtype(f"uint{width}"))
            flat = structural.reshape(flat, shape=(2 * half * (32 // width),))
        if aval_of(flat).shape[0] != n:
            flat = structural.slice(flat, start_indices=(0,), limit_indices=(n,), strides=None)
    return structural.reshape(flat, shape=shape)


def numbered(key: Any, domain: Any, n: int) -> tuple[Any, Any]:
    """Return two vectors u32[n] of bits, in a domain of counters: an int, or u32[] for the number of a round."""
    own = own_generators.BY_WORDS.get(aval_of(key).shape[0])
    if own is not None:
        number = structural.full((), domain, U32) if isinstance(domain, int) else structural.reshape(domain, shape=())
        both = own.bits(own.folded(key, number), (2 * n,), 32)
        return part(both, 0, n), part(both, n, 2 * n)
    if aval_of(key).shape[0] == 2:
        return words_of(key, full(n, domain), count(n))
    own = structural.reshape(hashed(key, full(1, domain), structural.full((1,), 0, U32)), shape=(4,))
    both = _generated(own, (2, n), U32)
    row = lambda i: structural.slice(both, start_indices=(i, 0), limit_indices=(i + 1, n), strides=None)
    return structural.reshape(row(0), shape=(n,)), structural.reshape(row(1), shape=(n,))
