"""`jax.random`: keys as JAX makes them; the numbers are this package's."""

from __future__ import annotations

from typing import Any

import functorch_like as ft
from functorch_like import random
from functorch_like.errors import ArgumentError
from functorch_like.jax_alias.modules.configuration import config
from functorch_like.random import typed_keys
from functorch_like.random.typed_keys import IMPLEMENTATIONS, KeyArray, is_keys

PRNGKeyArray = KeyArray


def _check_impl(impl: Any) -> str:
    name = "threefry2x32" if impl is None else str(impl)
    if name not in IMPLEMENTATIONS:
        raise ArgumentError(f"there is no generator {name!r}", fix="use 'threefry2x32'")
    return name


def key(seed: Any, *, impl: Any = None) -> KeyArray:
    """Return a typed key from a seed, as `ft.random.key` takes it."""
    typed_keys.made = True
    return KeyArray(random.key(seed), _check_impl(impl))


def PRNGKey(seed: Any, *, impl: Any = None) -> Any:
    """Return a key as a `uint32[2]`; a typed one with the option `jax_enable_custom_prng`."""
    _check_impl(impl)
    return key(seed) if config.jax_enable_custom_prng else random.key(seed)


def wrap_key_data(key_bits_array: Any, *, impl: Any = None) -> KeyArray:
    """Return an array of typed keys from their words, a `uint32[..., 2]`."""
    words = ft.numpy.asarray(key_bits_array)
    if words.dtype != "uint32" or words.shape[-1:] != (2,):
        raise ArgumentError(
            f"random.wrap_key_data was given a {ft.typeof(words)!r}", fix="give words as random.key_data returns them"
        )
    typed_keys.made = True
    return KeyArray(words, _check_impl(impl))


def key_impl(keys: Any) -> str:
    """Return the name of the generator that keys are for."""
    return keys._impl if is_keys(keys) else "threefry2x32"


def threefry_2x32(keypair: Any, count: Any) -> Any:
    """Return the Threefry-2x32 cipher of counters, the first half of which pairs with the second."""
    from functorch_like.primitives.random.threefry import threefry2x32

    flat = ft.numpy.ravel(count)
    odd = flat.size % 2
    padded = ft.numpy.concatenate([flat, ft.numpy.zeros(odd, "uint32")])
    first, second = ft.numpy.split(padded, 2)
    words = [ft.numpy.broadcast_to(ft.numpy.asarray(k), first.shape) for k in keypair]
    joined = ft.numpy.concatenate(threefry2x32(*words, first, second))
    return joined[: flat.size].reshape(ft.numpy.shape(count))


def random_bits(key: Any, *, bit_width: int, shape: Any) -> Any:
    """Return random bits of a width."""
    return random.bits(key, shape, f"uint{bit_width}")
