"""Generators that users define by functions of keys: their keys as words, among which those of other generators are.

A key of such a generator is a `uint32[*key_shape]`. It is kept as a vector of words whose number no other generator
has, so that functions that get the words of a key know the generator. The words after the key's own are 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import ShapeError
from functorch_like.numpy import promotion
from functorch_like.primitives import structural


class OwnGenerator(NamedTuple):
    """A generator.

    Attributes:
        name: unique name.
        tag: its name in dtypes of keys, `key<tag>`.
        key_shape: shape of a key.
        words: number of words that a key is kept in.
        seed: `(int[]) -> key`.
        split: `(key, shape) -> keys`.
        random_bits: `(key, width, shape) -> unsigned integers`.
        fold_in: `(key, uint32[]) -> key`.
    """

    name: str
    tag: str
    key_shape: tuple[int, ...]
    words: int
    seed: Callable[..., Any]
    split: Callable[..., Any]
    random_bits: Callable[..., Any]
    fold_in: Callable[..., Any]

    def pack(self, keys: Any, shape: tuple[int, ...], what: str) -> Any:
        """Return keys `uint32[*shape, *key_shape]` as words `uint32[*shape, words]`.

        Raises:
            ShapeError: for another shape or dtype.
        """
        aval, own = aval_of(keys), math.prod(self.key_shape)
        if aval.shape != (*shape, *self.key_shape) or aval.dtype != dtypes.uint32:
            raise promotion.error(
                ShapeError,
                f"{what} of the generator {self.name!r} gave {aval!r}",
                f"return a uint32[{','.join(map(str, (*shape, *self.key_shape)))}]",
            )
        flat = structural.reshape(keys, shape=(*shape, own))
        rest = structural.full((*shape, self.words - own), 0, dtypes.uint32)
        return structural.concatenate(flat, rest, dimension=len(shape))

    def unpack(self, words: Any) -> Any:
        """Return keys from their words."""
        shape, own = tuple(aval_of(words).shape[:-1]), math.prod(self.key_shape)
        zeros = (0,) * len(shape)
        flat = structural.slice(words, start_indices=(*zeros, 0), limit_indices=(*shape, own), strides=None)
        return structural.reshape(flat, shape=(*shape, *self.key_shape))

    def seeded(self, seed: Any) -> Any:
        """Return the words of the key of a seed, an integer array of rank 0."""
        return self.pack(self.seed(seed), (), "seed")

    def split_into(self, words: Any, shape: tuple[int, ...]) -> Any:
        """Return the words of keys that are split from one."""
        return self.pack(self.split(self.unpack(words), shape), shape, "split")

    def folded(self, words: Any, number: Any) -> Any:
        """Return the words of the key that depends on a key and a uint32[]."""
        return self.pack(self.fold_in(self.unpack(words), number), (), "fold_in")

    def bits(self, words: Any, shape: tuple[int, ...], width: int) -> Any:
        """Return random bits of a key.

        Raises:
            ShapeError: if the generator returns another shape or dtype.
        """
        made = self.random_bits(self.unpack(words), width, shape)
        aval = aval_of(made)
        if aval.shape != tuple(shape) or aval.dtype.name != f"uint{width}":
            raise promotion.error(
                ShapeError,
                f"random_bits of the generator {self.name!r} gave {aval!r}",
                f"return a uint{width}[{','.join(map(str, shape))}]",
            )
        return made


#: The generators by name, and by their numbers of words.
BY_NAME: dict[str, OwnGenerator] = {}
BY_WORDS: dict[int, OwnGenerator] = {}
