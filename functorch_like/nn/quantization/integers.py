"""Floats as small integers with scales, and int4 packed in bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError

#: The largest integer for a number of bits. Ranges are symmetric, so that zero is zero.
LARGEST = {8: 127, 4: 7}


def largest(bits: int) -> int:
    """Return the largest integer for a number of bits.

    Raises:
        ArgumentError: for a number that is not supported.
    """
    if bits not in LARGEST:
        raise ArgumentError(f"quantisation takes 8 or 4 bits, not bits={bits!r}", fix="use 8 or 4")
    return LARGEST[bits]


def scale_of(x: Any, bits: int, axes: Sequence[int]) -> Any:
    """Return the size of one step, so that the largest magnitude along axes is the largest integer.

    Args:
        x: floats.
        bits: 8 or 4.
        axes: the axes that share a scale; they have size 1 in the result.
    """
    top = fnp.max(fnp.abs(x.astype(dtypes.float32)), axis=tuple(axes), keepdims=True, initial=0.0)
    return fnp.where(top > 0, top, 1.0) / np.float32(largest(bits))


def rounded(x: Any, scale: Any, bits: int) -> Any:
    """Return floats as integers of type int8, to the nearest step."""
    top = largest(bits)
    return fnp.clip(fnp.round(x.astype(dtypes.float32) / scale), -top, top).astype(np.int8)


def packed(values: Any) -> Any:
    """Return integers of 4 bits, two in each byte: one of each half of the last axis, an odd half padded with zero."""
    n = aval_of(values).shape[-1]
    half = (n + 1) // 2
    low, high = values[..., :half], values[..., half:]
    if n % 2:
        high = fnp.pad(high, [*((0, 0) for _ in aval_of(high).shape[:-1]), (0, 1)])
    return (low & np.int8(15)) | fnp.left_shift(high, np.int8(4))


def unpacked(stored: Any, size: int) -> Any:
    """Return the integers that bytes hold, `size` of them along the last axis."""
    low = fnp.right_shift(fnp.left_shift(stored, np.int8(4)), np.int8(4))
    both = fnp.concatenate([low, fnp.right_shift(stored, np.int8(4))], axis=-1)
    return both[..., :size]


def products_fit(count: int) -> bool:
    """Return True if a sum of `count` products of int8 fits int32."""
    return count * LARGEST[8] ** 2 <= np.iinfo(np.int32).max


def volume(shape: Sequence[int], axes: Sequence[int]) -> int:
    """Return the number of elements along axes."""
    return math.prod(shape[a] for a in axes)
