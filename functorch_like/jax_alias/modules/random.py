"""`jax.random`: keys as JAX makes them; `backends.random.numbers` gives its numbers, too."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import functorch_like as ft
from functorch_like import dtypes, random
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError
from functorch_like.jax_alias.modules.configuration import config
from functorch_like.jax_alias.modules.prng_impl import PRNGImpl
from functorch_like.random import generators, own_generators, typed_keys
from functorch_like.random.typed_keys import KeyArray

PRNGKeyArray = KeyArray


def key(seed: Any, *, impl: Any = None, dtype: Any = None) -> KeyArray:
    """Return a typed key from a seed, as `ft.random.key` takes it; the generator may be given as a dtype of keys."""
    typed_keys.made = True
    name = generators.named(_generator(impl, dtype), "random.key")
    own = own_generators.BY_NAME.get(name)
    if own is not None:
        return KeyArray(own.seeded(_seed(seed)), name)
    return KeyArray(random.key(seed, impl=_alike(name)), name)


def _seed(seed: Any) -> Any:
    """Return a seed as an integer array of rank 0, as functions of users take it.

    Raises:
        ArgumentError: for anything else.
    """
    array = ft.numpy.asarray(np.int64(seed) if type(seed) is int and -(2**63) <= seed < 2**63 else seed)
    if array.ndim or not dtypes.is_integer(array.dtype):
        raise ArgumentError(f"a seed is one integer, got {ft.typeof(array)!r}", fix="use vmap for an array of seeds")
    return array


def key_impl(keys: Any) -> Any:
    """Return the name of the generator that keys are for; of one that is defined by functions, its description."""
    name = random.key_impl(keys)
    return PRNGImpl.of(own_generators.BY_NAME[name]) if name in own_generators.BY_NAME else name


def key_dtype(impl: Any = None) -> typed_keys.KeyDtype:
    """Return the dtype of the keys of a generator."""
    return typed_keys.KeyDtype(generators.named(_generator(impl, None), "random.key_dtype"))


def _generator(impl: Any, dtype: Any) -> Any:
    """Return the generator that either of two arguments names, by itself or by its dtype of keys."""
    given = dtype if impl is None else impl
    if isinstance(given, PRNGImpl):
        return given.generator
    return given.impl if isinstance(given, typed_keys.KeyDtype) else given


def _alike(name: str) -> str:
    """Return the generator of untyped keys with the same number of words."""
    return generators.BY_WORDS[generators.WORDS[name]]


def PRNGKey(seed: Any, *, impl: Any = None) -> Any:
    """Return a key as a `uint32[2]` or `uint32[4]`; a typed one with the option `jax_enable_custom_prng`."""
    name = generators.named(_generator(impl, None), "random.PRNGKey")
    if name in own_generators.BY_NAME:
        made = key(seed, impl=name)
        return made if config.jax_enable_custom_prng else random.key_data(made)
    return key(seed, impl=name) if config.jax_enable_custom_prng else random.key(seed, impl=_alike(name))


def wrap_key_data(key_bits_array: Any, *, impl: Any = None, dtype: Any = None) -> KeyArray:
    """Return an array of typed keys from their words, a `uint32[..., 2]` or `uint32[..., 4]`."""
    words, name = ft.numpy.asarray(key_bits_array), generators.named(_generator(impl, dtype), "random.wrap_key_data")
    own = own_generators.BY_NAME.get(name)
    if own is not None:
        typed_keys.made = True
        return KeyArray(own.pack(words, words.shape[: words.ndim - len(own.key_shape)], "wrap_key_data"), name)
    if words.dtype != "uint32" or words.shape[-1:] != (generators.WORDS[name],):
        raise ArgumentError(
            f"random.wrap_key_data with impl={name!r} got a {ft.typeof(words)!r}",
            fix="give words as random.key_data returns them",
        )
    typed_keys.made = True
    return KeyArray(words, name)


def uniform(key: Any, shape: Any = (), dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0) -> Any:
    """Return `ft.random.uniform`; one number takes the shape of its bounds, if they are arrays of one element."""
    if not isinstance(shape, int) and not tuple(shape):
        bounds = np.broadcast_shapes(*map(ft.numpy.shape, (minval, maxval)))
        shape = bounds if math.prod(bounds) == 1 else shape
    return random.uniform(key, shape, dtype, minval, maxval)


def bits(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Return `ft.random.bits`, by default of the width of integers."""
    return random.bits(key, shape, f"uint{8 * dtypes.default_int().itemsize}" if dtype is None else dtype)


def gumbel(key: Any, shape: Any = (), dtype: Any = None, mode: Any = None) -> Any:
    """Return `ft.random.gumbel`; its mode is an option of JAX."""
    return random.gumbel(key, shape, dtype, _mode(mode))


def categorical(
    key: Any, logits: Any, axis: int = -1, shape: Any = None, replace: bool = True, mode: Any = None
) -> Any:
    """Return `ft.random.categorical`; its mode is an option of JAX."""
    return random.categorical(key, logits, axis, shape, replace, _mode(mode))


def choice(
    key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0, mode: Any = None
) -> Any:
    """Return `ft.random.choice`; its mode is an option of JAX."""
    return random.choice(key, a, shape, replace, p, axis, _mode(mode))


def _mode(mode: Any) -> Any:
    """Return a mode, by default that of the option `jax_high_dynamic_range_gumbel`."""
    return mode or ("high" if config.jax_high_dynamic_range_gumbel else "low")


def randint(key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = None) -> Any:
    """Return `ft.random.randint`; bounds may also be floats, which are truncated."""
    bounds = [_whole(x) for x in (minval, maxval)]
    return random.randint(key, shape, *bounds, dtype=dtype)


def fold_in(key: Any, data: Any) -> Any:
    """Return the key of `ft.random.fold_in`; float data is truncated."""
    if isinstance(data, (int, float, np.floating)):
        return random.fold_in(key, int(data))
    given = ft.numpy.asarray(data) if isinstance(data, (list, np.ndarray)) else data
    # 32 bits without a sign, as JAX does: int32 would take 2**31 and more for another number.
    return random.fold_in(key, given.astype("uint32") if dtypes.is_float(aval_of(given).dtype) else given)


def _whole(x: Any) -> Any:
    """Return a bound as an integer."""
    if isinstance(x, (int, float, np.floating)):
        return int(x)
    bound = ft.numpy.asarray(x) if isinstance(x, (list, np.ndarray)) else x
    return bound.astype(int) if dtypes.is_float(aval_of(bound).dtype) else bound


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
