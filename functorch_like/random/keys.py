"""Keys: made of seeds, split, folded; and the random bits that they give.

A key is an array of two uint32. Under it, the Threefry cipher turns counters into bits: the same on every platform,
in eager mode, under `jit`, and under `vmap` over keys. Bits, splits and folds count in domains of their own, so that
a key that was split does not repeat its children's words among its bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes
from functorch_like.backends import xla
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, DtypeError, NumberError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.random.threefry import draw, fold, threefry2x32
from functorch_like.random.arguments import check_key, like, shape_of
from functorch_like.random.typed_keys import KeyArray
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike, Shape

U32, U64 = dtypes.uint32, dtypes.uint64


#: The first counter word of the domain that splitting counts in: bits count from 0 up.
_SPLIT = 0x80000000


# --------------------------------------------------------------------------------------------------------------- seeds
def key(seed: ArrayLike) -> Array:
    """A key from a seed.

    Args:
        seed: Python int of at most 64 bits (negative ones too), or an integer scalar, traced or not. Equal seeds
            give equal keys, whatever their dtype.

    Returns:
        uint32[2]: the high and the low word of the seed.

    Raises:
        NumberError: for a Python int of more than 64 bits.
        DtypeError: for a seed that is no integer.
        ShapeError: for an array of seeds; use vmap.

    >>> random.key(7).tolist()
    [0, 7]
    """
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
        if not -(2**63) <= seed < 2**64:
            raise promotion.error(NumberError, f"the seed {seed} does not fit 64 bits", "take it modulo 2**64")
        word = int(seed) % 2**64
        return xla.device_put(np.array([word >> 32, word % 2**32], np.uint32))
    aval = aval_of(seed)
    if not dtypes.is_integer(aval.dtype):
        raise promotion.error(DtypeError, f"a seed is an integer, got {aval!r}", "give an int")
    if aval.shape:
        raise promotion.error(
            ShapeError, f"a seed is a scalar, got {aval!r}", "use vmap(random.key) for an array of seeds"
        )
    return _seed(seed)


PRNGKey = key


@eager_jit
def _seed(x: Any) -> Any:
    return structural.concatenate(*(structural.reshape(w, shape=(1,)) for w in _words(x)), dimension=0)


def _words(x: Any) -> tuple[Any, Any]:
    """The high and low 32 bits of an integer scalar, its sign extended."""
    wide = structural.convert_element_type(x, new_dtype=dtypes.int64 if dtypes.is_signed(aval_of(x).dtype) else U64)
    bits = structural.convert_element_type(wide, new_dtype=U64)
    high = elementwise.shift_right_logical(bits, structural.full((), 32, U64))
    return tuple(structural.convert_element_type(w, new_dtype=U32) for w in (high, bits))  # type: ignore[return-value]


def key_data(keys: ArrayLike | KeyArray) -> Array:
    """The words of keys: those themselves, unless they are typed.

    Args:
        keys: array of keys.

    Returns:
        A uint32 array of shape (..., 2).

    >>> random.key_data(random.key(7)).dtype.name
    'uint32'
    """
    return keys._words if type(keys) is KeyArray else keys  # pyright: ignore[reportReturnType]


def wrap_key_data(key_bits_array: ArrayLike, *, impl: str | None = None) -> Array:
    """A key from its words: the array itself, checked.

    Args:
        key_bits_array: uint32[2], as `key_data` gives it.
        impl: None or "threefry2x32", the one generator there is.

    Returns:
        An array of keys, (..., 2) unless they are typed.

    Raises:
        ArgumentError: for another generator.
        DtypeError: for another dtype.
        ShapeError: for another shape.

    >>> random.wrap_key_data(random.key_data(random.key(7))).tolist()
    [0, 7]
    """
    if impl not in (None, "threefry2x32"):
        raise promotion.error(ArgumentError, f"random.wrap_key_data with impl={impl!r}", "use 'threefry2x32'")
    return check_key(key_bits_array, "random.wrap_key_data")


def key_impl(keys: ArrayLike | KeyArray) -> str:
    """The name of the generator that keys are for.

    Args:
        keys: array of keys.

    Returns:
        The generator's name.

    >>> random.key_impl(random.key(7))
    'threefry2x32'
    """
    return "threefry2x32"


def clone(key: ArrayLike) -> Array:
    """The key itself, for a second use of it that is meant; nothing checks that keys are used once.

    Args:
        key: key.

    Returns:
        The key.

    >>> random.clone(random.key(7)).tolist()
    [0, 7]
    """
    return like(key, check_key(key, "random.clone"))


# -------------------------------------------------------------------------------------------------- split and fold in
def hash_words(k: Any, c0: Any, c1: Any) -> tuple[Any, Any]:
    """The cipher under a key, of counters of one shape."""
    shape = aval_of(c0).shape
    half = lambda i: promotion.broadcast(
        structural.reshape(structural.slice(k, start_indices=(i,), limit_indices=(i + 1,), strides=None), shape=()),
        shape,
    )
    return threefry2x32(half(0), half(1), c0, c1)


def count(n: int) -> Any:
    """The counters 0 ... n-1."""
    return structural.iota(dtype=U32, shape=(n,), dimension=0)


def _pairs(words: Sequence[Any], shape: tuple[int, ...]) -> Any:
    return structural.concatenate(*(structural.reshape(w, shape=(*shape, 1)) for w in words), dimension=len(shape))


def split(key: ArrayLike, num: Shape = 2) -> Array:
    """New keys, independent of each other and of what the key itself gives. Use each key once.

    Args:
        key: uint32[2].
        num: how many: int, or a shape. The i-th does not depend on how many there are.

    Returns:
        uint32[*num, 2].

    Raises:
        DtypeError: for what is no key.
        ShapeError: for an array of keys.

    >>> first, second = random.split(random.key(0))
    >>> random.split(random.key(0), (2, 3)).shape
    (2, 3, 2)
    """
    return like(key, _split(check_key(key, "random.split"), shape=shape_of(num, "random.split")))


@eager_jit(static=("shape",))
def _split(key: Any, shape: tuple[int, ...]) -> Any:
    n = math.prod(shape)
    return _pairs(hash_words(key, structural.full((n,), _SPLIT, U32), count(n)), shape)


def fold_in(key: ArrayLike, data: ArrayLike) -> Array:
    """A new key that depends on a key and an integer, such as the number of a step.

    Args:
        key: uint32[2].
        data: Python int of at most 64 bits, or an integer scalar. Different ones give different keys.

    Returns:
        uint32[2].

    Raises:
        DtypeError: for what is no key, or no integer.
        ShapeError: for an array of keys or of integers.
        NumberError: for a Python int of more than 64 bits.

    >>> bool((random.fold_in(random.key(0), 1) == random.fold_in(random.key(0), 2)).all())
    False
    """
    return like(key, _fold_in(check_key(key, "random.fold_in"), data))


def _fold_in(key: Any, data: Any) -> Any:
    if isinstance(data, (int, np.integer)) and not isinstance(data, bool):
        if not -(2**63) <= data < 2**64:
            raise promotion.error(NumberError, f"{data} does not fit 64 bits", "take it modulo 2**64")
        return _fold(key, np.uint64(int(data) % 2**64))
    aval = aval_of(data)
    if not dtypes.is_integer(aval.dtype) or aval.shape:
        raise promotion.error(
            ShapeError if aval.shape else DtypeError,
            f"random.fold_in folds in an integer scalar, got {aval!r}",
            "give an int",
        )
    return _fold(key, data)


@eager_jit
def _fold(key: Any, data: Any) -> Any:
    return fold(key, *_words(data))


# ---------------------------------------------------------------------------------------------------------------- bits
def bits(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = "uint32") -> Array:
    """Random bits: integers of which every value is equally likely.

    Args:
        key: uint32[2].
        shape: of the result; int or sequence of ints.
        dtype: uint8, uint16, uint32 or uint64.

    Returns:
        Unsigned integers of that shape.

    Raises:
        DtypeError: for another dtype, or what is no key.

    >>> random.bits(random.key(0), 3).shape
    (3,)
    """
    wanted = dtypes.as_dtype(dtype)
    if wanted not in dtypes.UNSIGNED:
        raise promotion.error(
            DtypeError, f"random.bits gives unsigned integers, not {wanted.name}", "use random.randint"
        )
    return _bits(check_key(key, "random.bits"), shape=shape_of(shape, "random.bits"), dtype=wanted)


@eager_jit(static=("shape", "dtype"))
def _bits(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    return raw_bits(key, shape, dtype.itemsize * 8)


def raw_bits(key: Any, shape: tuple[int, ...], width: int) -> Any:
    """Unsigned integers of a width; both words that the cipher gives for a counter are used."""
    n = math.prod(shape)
    words = -(-n * width // 32)
    half = -(-words // 2)
    if half >= 2**32:
        raise promotion.error(
            ArgumentError, f"{n} random numbers of {width} bits exhaust a key's counters", "split the key"
        )
    first, second = hash_words(draw(key), structural.full((half,), 0, U32), count(half))
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


def long_words(high: Any, low: Any) -> Any:
    """Two words of 32 bits as one of 64."""
    high, low = (structural.convert_element_type(w, new_dtype=U64) for w in (high, low))
    return elementwise.or_(elementwise.shift_left(high, structural.full_like(high, 32)), low)
