"""Keys: creation from seeds, split, fold_in, and random bits.

A key is an array of two uint32. With it, the Threefry cipher turns counters into bits: the same on every platform,
in eager mode, under `jit`, and under `vmap` over keys. A key of four uint32 is for XLA's generator (`impl="rbg"`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes
from functorch_like.backends import random as settings
from functorch_like.backends import xla
from functorch_like.core import aval_of, state
from functorch_like.errors import ArgumentError, DtypeError, NumberError, ShapeError
from functorch_like.ir import trace_constants
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import shape_of
from functorch_like.primitives import elementwise, structural
from functorch_like.random import generators
from functorch_like.random.arguments import check_key, impl_of, like
from functorch_like.random.cipher import U32, U64
from functorch_like.random.generators import raw_bits
from functorch_like.random.typed_keys import KeyArray, data_of
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike, Shape


# --------------------------------------------------------------------------------------------------------------- seeds
def key(seed: ArrayLike, *, impl: str | None = None) -> Array:
    """A key from a seed.

    Args:
        seed: Python int of at most 64 bits (negative ones too), or an integer scalar, traced or not. Equal seeds
            give equal keys, whatever their dtype.
        impl: the generator: None or "threefry2x32"; or "rbg", XLA's own (`lax.rng_bit_generator`), which is faster on
            some devices. "unsafe_rbg", which splits keys faster but makes them less independent, is only for typed
            keys, as programs written for JAX have them.

    Returns:
        uint32[2], the high and the low word of the seed; uint32[4], these twice, for "rbg".

    Raises:
        ArgumentError: for an unknown generator.
        NumberError: for a Python int of more than 64 bits.
        DtypeError: for a seed that is not an integer.
        ShapeError: for an array of seeds; use vmap.

    >>> random.key(7).tolist()
    [0, 7]
    """
    name = _untyped(impl, "random.key")
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
        if not -(2**63) <= seed < 2**64:
            raise promotion.error(NumberError, f"the seed {seed} does not fit 64 bits", "take it modulo 2**64")
        word = _word(seed)
        words = np.array([word >> 32, word % 2**32] * (generators.WORDS[name] // 2), np.uint32)
        # No literal of a trace: XLA would fold the cipher.
        return xla.device_put(words) if state.trace.staging else trace_constants.put_by_default(words)
    aval = aval_of(seed)
    if not dtypes.is_integer(aval.dtype):
        raise promotion.error(DtypeError, f"a seed is an integer, got {aval!r}", "give an int")
    if aval.shape:
        raise promotion.error(
            ShapeError, f"a seed is a scalar, got {aval!r}", "use vmap(random.key) for an array of seeds"
        )
    return _seed(seed, impl=name)


PRNGKey = key


def _word(seed: Any) -> int:
    """Return a seed as 64 bits; of JAX's numbers, as those of its int."""
    narrow = not settings.are_native() and dtypes.default_int() == dtypes.int32
    return int(seed) % 2 ** (32 if narrow else 64)


def _untyped(impl: Any, what: str) -> str:
    """Return the checked name of a generator of untyped keys."""
    name = "threefry2x32" if impl is None else generators.named(impl, what)
    if name not in ("threefry2x32", "rbg"):
        raise promotion.error(
            ArgumentError, f"{what} got impl={name!r}, whose untyped keys look like those of 'rbg'", "use 'rbg'"
        )
    return name


@eager_jit(static=("impl",))
def _seed(x: Any, impl: str) -> Any:
    return generators.from_words(_words(x), impl)


def _words(x: Any) -> tuple[Any, Any]:
    """Return the high and low 32 bits of an integer scalar, its sign extended."""
    dtype = aval_of(x).dtype
    if not settings.are_native() and dtype.itemsize < 8:
        return structural.full((), 0, U32), structural.convert_element_type(x, new_dtype=U32)
    wide = structural.convert_element_type(x, new_dtype=dtypes.int64 if dtypes.is_signed(dtype) else U64)
    bits = structural.convert_element_type(wide, new_dtype=U64)
    high = elementwise.shift_right_logical(bits, structural.full((), 32, U64))
    return tuple(structural.convert_element_type(w, new_dtype=U32) for w in (high, bits))  # type: ignore[return-value]


def key_data(keys: ArrayLike | KeyArray) -> Array:
    """The words of keys; untyped keys are their own words.

    Args:
        keys: array of keys.

    Returns:
        A uint32 array of shape (..., 2), or (..., 4) for keys of "rbg".

    >>> random.key_data(random.key(7)).dtype.name
    'uint32'
    """
    return data_of(keys) if type(keys) is KeyArray else keys  # pyright: ignore[reportReturnType]


def wrap_key_data(key_bits_array: ArrayLike, *, impl: str | None = None) -> Array:
    """A key from its words: the array itself, checked.

    Args:
        key_bits_array: uint32[2], as `key_data` gives it; uint32[4] for "rbg".
        impl: the generator, "threefry2x32" or "rbg". By default, the one whose keys have this number of words.

    Returns:
        The key.

    Raises:
        ArgumentError: for an unknown generator, or one whose keys have another number of words.
        DtypeError: for another dtype.
        ShapeError: for another shape.

    >>> random.wrap_key_data(random.key_data(random.key(7))).tolist()
    [0, 7]
    """
    made = check_key(key_bits_array, "random.wrap_key_data")
    if impl is not None and _untyped(impl, "random.wrap_key_data") != impl_of(made):
        raise promotion.error(
            ArgumentError,
            f"random.wrap_key_data with impl={impl!r} got {aval_of(made)!r}",
            f"give {generators.WORDS[impl]} words",
        )
    return made


def key_impl(keys: ArrayLike | KeyArray) -> str:
    """The name of the generator that keys are for.

    Args:
        keys: array of keys.

    Returns:
        The generator's name.

    >>> random.key_impl(random.key(7))
    'threefry2x32'
    """
    return impl_of(keys)


def clone(key: ArrayLike) -> Array:
    """The key itself, allowed one more use in a block of `check_key_reuse`.

    Args:
        key: the key.

    Returns:
        The key.

    >>> random.clone(random.key(7)).tolist()
    [0, 7]
    """
    return like(key, check_key(key, "random.clone"))


# -------------------------------------------------------------------------------------------------- split and fold in
def split(key: ArrayLike, num: Shape = 2) -> Array:
    """New keys, independent of each other and of the key's own bits. Use each key once.

    Args:
        key: the key.
        num: the number of keys, or their shape. The i-th key does not depend on it.

    Returns:
        uint32[*num, 2], or [*num, 4] for a key of four words.

    Raises:
        DtypeError: for anything but a key.
        ShapeError: for an array of keys.

    >>> first, second = random.split(random.key(0))
    >>> random.split(random.key(0), (2, 3)).shape
    (2, 3, 2)
    """
    return like(key, _split(check_key(key, "random.split"), shape=shape_of(num, "random.split"), impl=impl_of(key)))


@eager_jit(static=("shape", "impl"))
def _split(key: Any, shape: tuple[int, ...], impl: str) -> Any:
    return generators.split(key, shape, impl)


def fold_in(key: ArrayLike, data: ArrayLike) -> Array:
    """A new key that depends on a key and an integer, such as the number of a step.

    Args:
        key: the key.
        data: Python int of at most 64 bits, or an integer scalar. Different ones give different keys.

    Returns:
        A key of the same shape.

    Raises:
        DtypeError: for anything but a key, or data that is not an integer.
        ShapeError: for an array of keys or of integers.
        NumberError: for a Python int of more than 64 bits.

    >>> bool((random.fold_in(random.key(0), 1) == random.fold_in(random.key(0), 2)).all())
    False
    """
    return like(key, _fold_in(check_key(key, "random.fold_in"), data, impl_of(key)))


def _fold_in(key: Any, data: Any, impl: str) -> Any:
    if isinstance(data, (int, np.integer)) and not isinstance(data, bool):
        if not -(2**63) <= data < 2**64:
            raise promotion.error(NumberError, f"{data} does not fit 64 bits", "take it modulo 2**64")
        word = int(data) % 2**64
        return _fold_words(key, np.uint32(word >> 32), np.uint32(word % 2**32), impl=impl)
    aval = aval_of(data)
    if not dtypes.is_integer(aval.dtype) or aval.shape:
        raise promotion.error(
            ShapeError if aval.shape else DtypeError,
            f"random.fold_in folds in an integer scalar, got {aval!r}",
            "give an int",
        )
    return _fold(key, data, impl=impl)


@eager_jit(static=("impl",))
def _fold(key: Any, data: Any, impl: str) -> Any:
    high, low = _words(data)
    # JAX folds in 32 bits.
    high = high if settings.are_native() else structural.full((), 0, U32)
    return generators.fold_in(key, high, low, impl)


@eager_jit(static=("impl",))
def _fold_words(key: Any, high: Any, low: Any, impl: str) -> Any:
    return generators.fold_in(key, high, low, impl)


# ---------------------------------------------------------------------------------------------------------------- bits
def bits(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = "uint32") -> Array:
    """Random bits: unsigned integers, every value equally likely.

    Args:
        key: the key.
        shape: shape of the result; int or sequence of ints.
        dtype: uint8, uint16, uint32 or uint64.

    Returns:
        Unsigned integers of that shape.

    Raises:
        DtypeError: for another dtype, or anything but a key.

    >>> random.bits(random.key(0), 3).shape
    (3,)
    """
    result_dtype = dtypes.as_dtype(dtype)
    if result_dtype not in dtypes.UNSIGNED:
        raise promotion.error(
            DtypeError, f"random.bits gives unsigned integers, not {result_dtype.name}", "use random.randint"
        )
    return _bits(check_key(key, "random.bits"), shape=shape_of(shape, "random.bits"), dtype=result_dtype)


@eager_jit(static=("shape", "dtype"))
def _bits(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    return raw_bits(key, shape, dtype.itemsize * 8)
