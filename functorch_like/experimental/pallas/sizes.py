"""Arithmetic of sizes, for grids and index maps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from functorch_like.calling.type_variables import X

if TYPE_CHECKING:
    from functorch_like.core import Array


def cdiv(a: int | Array, b: int | Array) -> int | Array:
    """Return a / b, rounded up.

    Args:
        a: an int, or an integer array.
        b: a positive one.

    Example:
        >>> from functorch_like.experimental import pallas as pl
        >>> pl.cdiv(7, 2)
        4
    """
    return -(-a // b) if isinstance(a, int) and isinstance(b, int) else (a + b - 1) // b


def align_to(a: int | Array, alignment: int | Array) -> int | Array:
    """Return the least multiple of `alignment` that is not below a.

    Args:
        a: an int, or an integer array.
        alignment: a positive one.

    Example:
        >>> from functorch_like.experimental import pallas as pl
        >>> pl.align_to(7, 4)
        8
    """
    return cdiv(a, alignment) * alignment


def next_power_of_2(x: int) -> int:
    """Return the least power of 2 that is not below x.

    Args:
        x: an int; 1 for those below 1.

    Example:
        >>> from functorch_like.experimental import pallas as pl
        >>> pl.next_power_of_2(5)
        8
    """
    return 1 if x < 1 else 1 << (x - 1).bit_length()


def strides_from_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the distance, in elements, between neighbours along each axis of a row-major array.

    Args:
        shape: sizes of the axes.

    Example:
        >>> from functorch_like.experimental import pallas as pl
        >>> pl.strides_from_shape((2, 3, 4))
        (12, 4, 1)
    """
    return tuple(math.prod(shape[k + 1 :]) for k in range(len(shape)))


def multiple_of(x: X, values: int | Sequence[int]) -> X:
    """Return x, which is known to be a multiple of some numbers. XLA makes no use of it.

    Args:
        x: an integer array.
        values: the numbers.

    Example:
        >>> from functorch_like.experimental import pallas as pl
        >>> pl.multiple_of(8, 4)
        8
    """
    return x


def max_contiguous(x: X, values: int | Sequence[int]) -> X:
    """Return x, which is known to count up in runs of some length. XLA makes no use of it.

    Args:
        x: an integer array.
        values: the lengths.

    Example:
        >>> from functorch_like.experimental.pallas import triton as plgpu
        >>> plgpu.max_contiguous(8, 4)
        8
    """
    return x
