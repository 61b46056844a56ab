"""The description of a generator of random numbers, the value of `impl=`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from functorch_like.random.own_generators import OwnGenerator


class PRNGImpl(NamedTuple):
    """A generator, the value of `impl=`.

    Attributes:
        key_shape: shape of a key, a `uint32[*key_shape]`.
        seed: `(int[]) -> key`.
        split: `(key, shape) -> keys`.
        random_bits: `(key, width, shape) -> unsigned integers`.
        fold_in: `(key, uint32[]) -> key`.
        name: its name.
        tag: its name in dtypes of keys, `key<tag>`.
        generator: unique name among all generators of the process.
    """

    key_shape: tuple[int, ...]
    seed: Callable[..., Any]
    split: Callable[..., Any]
    random_bits: Callable[..., Any]
    fold_in: Callable[..., Any]
    name: str
    tag: str
    generator: str

    @classmethod
    def of(cls, own: OwnGenerator) -> PRNGImpl:
        """Return the description of a generator of the user's."""
        return cls(own.key_shape, own.seed, own.split, own.random_bits, own.fold_in, own.name, own.tag, own.name)

    def __str__(self) -> str:
        return self.tag

    def __hash__(self) -> int:
        return hash(self.generator)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PRNGImpl) and self.generator == other.generator

    def __ne__(self, other: object) -> bool:
        return not self == other
