"""`jax.extend.random`: generators of random numbers as functions of their keys, the package's and the user's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import functorch_like as ft
from functorch_like import random
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError
from functorch_like.jax_alias.modules.prng_impl import PRNGImpl
from functorch_like.jax_alias.modules.random import key
from functorch_like.random import generators, keys

__all__ = [
    "PRNGImpl", "define_prng_impl", "random_seed", "rbg_prng_impl", "seed_with_impl", "threefry_prng_impl",
    "unsafe_rbg_prng_impl",
]  # fmt: skip


def define_prng_impl(
    *, key_shape: Sequence[int], seed: Callable[..., Any], split: Callable[..., Any],
    random_bits: Callable[..., Any], fold_in: Callable[..., Any], name: str = "<unnamed>", tag: str = "?",
) -> PRNGImpl:  # fmt: skip
    """Return a generator of random numbers that is defined by functions of its keys.

    The functions are traced. They get one key each; arrays of keys are mapped over.

    Args:
        key_shape: shape of a key, a `uint32[*key_shape]`.
        seed: `(int[]) -> key`.
        split: `(key, shape) -> uint32[*shape, *key_shape]`.
        random_bits: `(key, width, shape) -> uint{width}[*shape]`, for widths 8, 16, 32 and 64.
        fold_in: `(key, uint32[]) -> key`.
        name: its name.
        tag: its name in dtypes of keys, `key<tag>`.

    Returns:
        The generator, for `jax.random.key(seed, impl=...)`.

    Raises:
        ArgumentError: for a key of no words.

    Example:
        >>> import numpy as np
        >>> import functorch_like.numpy as fnp
        >>> counting = define_prng_impl(
        ...     key_shape=(1,),
        ...     seed=lambda s: s.astype("uint32")[None],
        ...     split=lambda key, shape: key + fnp.arange(int(np.prod(shape)), dtype="uint32").reshape(*shape, 1),
        ...     random_bits=lambda key, width, shape: fnp.full(shape, key[0].astype(f"uint{width}")),
        ...     fold_in=lambda key, number: key + number,
        ...     tag="counting",
        ... )
        >>> from functorch_like.jax_alias.modules.random import bits
        >>> key(3, impl=counting).dtype, bits(key(3, impl=counting), (2,), "uint8").tolist()
        (key<counting>, [3, 3])
    """
    shape = tuple(map(int, key_shape))
    if min(shape, default=1) < 1:
        raise ArgumentError(f"define_prng_impl: key_shape={shape} has no words", fix="give positive sizes")
    functions = {"seed": seed, "split": split, "random_bits": random_bits, "fold_in": fold_in}
    made = PRNGImpl.of(generators.define(name, tag, shape, functions))
    return made._replace(name=name)


def _builtin(name: str, tag: str) -> PRNGImpl:
    """Return the description of a generator of the package."""
    alike = generators.BY_WORDS[generators.WORDS[name]]

    def fold_in(words: Any, number: Any) -> Any:
        low = ft.numpy.asarray(number, "uint32")
        return generators.fold_in(words, ft.numpy.zeros((), "uint32"), low, name)

    return PRNGImpl(
        key_shape=(generators.WORDS[name],),
        seed=lambda seed: random.key(seed, impl=alike),
        split=lambda words, shape: keys._split(words, shape=tuple(shape), impl=name),
        random_bits=lambda words, width, shape: random.bits(words, tuple(shape), f"uint{width}"),
        fold_in=fold_in,
        name=name,
        tag=tag,
        generator=name,
    )


threefry_prng_impl = _builtin("threefry2x32", "fry")
rbg_prng_impl = _builtin("rbg", "rbg")
unsafe_rbg_prng_impl = _builtin("unsafe_rbg", "urbg")


def random_seed(seeds: Any, impl: PRNGImpl) -> Any:
    """Return typed keys from an array of integer seeds.

    Args:
        seeds: integers of any shape.
        impl: the generator.

    Returns:
        An array of keys of that shape.
    """
    make: Callable[..., Any] = lambda seed: key(seed, impl=impl)
    for _ in range(aval_of(seeds).ndim):
        make = ft.vmap(make)
    return make(seeds)


def seed_with_impl(impl: PRNGImpl, seed: Any) -> Any:
    """Return a typed key of a generator from a seed."""
    return random_seed(seed, impl)


def __getattr__(name: str) -> Any:
    if name != "threefry2x32_p":
        raise AttributeError(name)
    from functorch_like.jax_alias.modules import core_primitives  # late: it loads all primitives

    return core_primitives.__getattr__(name)
