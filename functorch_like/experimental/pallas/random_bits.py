"""Random bits in kernels: a key that `prng_seed` sets, and each draw advances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import random
from functorch_like.errors import ArgumentError
from functorch_like.experimental.pallas.environment import current
from functorch_like.lax.shapes import bitcast_convert_type
from functorch_like.ref.reference import Ref

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


def _state(name: str) -> Ref:
    state = current(name).random
    if state is None:
        raise ArgumentError(f"{name} in a function without random numbers", fix="call it in the kernel itself")
    return state


def prng_seed(*seeds: ArrayLike) -> None:
    """Seed the random numbers of the kernel, from this step on.

    Args:
        seeds: integer scalars, such as a number and `pl.program_id(0)`.

    Raises:
        ArgumentError: outside of kernels, and without seeds.

    Example:
        >>> import functorch_like as ft
        >>> from functorch_like.experimental import pallas as pl
        >>> from functorch_like.experimental.pallas import tpu as pltpu
        >>> def kernel(o_ref):
        ...     pltpu.prng_seed(0, pl.program_id(0))
        ...     o_ref[...] = pltpu.prng_random_bits((4,))
        >>> pl.pallas_call(kernel, ft.ShapeDtypeStruct((4,), "int32"), grid=1)().shape
        (4,)
    """
    if not seeds:
        raise ArgumentError("prng_seed got no seeds", fix="give an integer, e.g. pl.program_id(0)")
    key: Any = random.PRNGKey(0)
    for seed in seeds:
        key = random.fold_in(key, seed)
    _state("prng_seed")[...] = key


def prng_random_bits(shape: Sequence[int]) -> Array:
    """Draw random bits from the numbers of the kernel. They are not those of a TPU.

    Args:
        shape: sizes of the axes.

    Returns:
        An int32 array.

    Raises:
        ArgumentError: outside of kernels.

    Example:
        >>> pltpu.prng_random_bits((8, 128))  # doctest: +SKIP
    """
    state = _state("prng_random_bits")
    following, key = random.split(state[...])
    state[...] = following
    return bitcast_convert_type(random.bits(key, tuple(shape), "uint32"), np.int32)
