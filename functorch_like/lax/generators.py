"""Random bits from a generator. `functorch_like.random` has distributions, and keys that can be split."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError
from functorch_like.lax.operands import error, ints, value
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.random import philox

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike, Shape


class RandomAlgorithm(enum.IntEnum):
    """Algorithm that turns counters into bits. The default is Philox, as in XLA on CPUs and GPUs."""

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


def rng_bit_generator(
    key: ArrayLike,
    shape: Shape,
    dtype: DTypeLike = "uint32",
    algorithm: RandomAlgorithm | str = RandomAlgorithm.RNG_DEFAULT,
) -> tuple[Array, Array]:
    """Random bits, the same on every platform.

    Args:
        key: the state: two uint64, a key and a counter, or the same as four uint32, low words first.
        shape: shape of the bits.
        dtype: uint8, uint16, uint32 or uint64.
        algorithm: a RandomAlgorithm, or "three_fry" or "philox".

    Returns:
        The next state, in the form of the key, and the bits.

    Raises:
        ArgumentError: where the key is not such a state, or the algorithm is unknown.
        DtypeError: for other dtypes.

    >>> state, bits = lax.rng_bit_generator(np.zeros(2, np.uint64), (2,))
    >>> [hex(word) for word in bits.tolist()], state.tolist()
    (['0x6627e8d5', '0xe169c58d'], [0, 1])
    """
    key = value(key)
    aval = aval_of(key)
    if isinstance(algorithm, str):
        name = algorithm.lower().removeprefix("rng_")
        name = "philox" if name == "default" else name
    else:
        name = ("philox", "three_fry", "philox")[RandomAlgorithm(algorithm)]
    params = {"shape": ints(shape, "shape"), "dtype": dtypes.as_dtype(dtype), "algorithm": name}
    if aval.dtype == dtypes.uint32 and aval.shape == (4,):
        state, bits = philox.rng_bit_generator(
            elementwise.bitcast_convert_type(structural.reshape(key, shape=(2, 2)), new_dtype=dtypes.uint64), **params
        )
        return structural.reshape(elementwise.bitcast_convert_type(state, new_dtype=dtypes.uint32), shape=(4,)), bits
    if aval.shape != (2,) or aval.dtype != dtypes.uint64:
        raise error(ArgumentError, f"{aval!r} is not a state of the generator", "give two uint64, or four uint32")
    state, bits = philox.rng_bit_generator(key, **params)
    return state, bits
