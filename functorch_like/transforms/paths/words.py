"""Values of guards as 64-bit integers, on the host and inside of programs: guards are compared bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import aval_of
from functorch_like.primitives import elementwise, structural

INT64 = np.dtype(np.int64)
Words = tuple[int, ...]

#: Elements of a guarded array: each value is a path of its own, so guarding large arrays would never pay.
LARGEST_GUARD = 16


def words_of(value: Any) -> Words:
    """Return a number or small array as integers, one for each element; two for a complex number."""
    flat = np.asarray(value).ravel()
    if flat.dtype.kind == "c":
        flat = flat.view(f"float{4 * flat.dtype.itemsize}")
    if dtypes.is_inexact(flat.dtype):
        flat = flat.view(f"int{8 * flat.dtype.itemsize}")
    return tuple(flat.astype(INT64).tolist())


def value_of(words: Sequence[int], aval: ShapedArray) -> np.ndarray[Any, Any]:
    """Return the array of an aval that has these words."""
    flat = np.array(words, INT64)
    if dtypes.is_inexact(aval.dtype):
        width = aval.dtype.itemsize // (2 if dtypes.is_complex(aval.dtype) else 1)
        return flat.astype(f"int{8 * width}").view(aval.dtype).reshape(aval.shape)
    return flat.astype(aval.dtype).reshape(aval.shape)


def staged_words(x: Any) -> Any:
    """Return the words of a traced value, as an int64 array of one dimension."""
    aval = aval_of(x)
    x = structural.reshape(x, shape=(aval.size,))
    if dtypes.is_complex(aval.dtype):
        parts = [structural.reshape(part(x), shape=(aval.size, 1)) for part in (elementwise.real, elementwise.imag)]
        x = structural.reshape(structural.concatenate(*parts, dimension=1), shape=(2 * aval.size,))
    dtype = aval_of(x).dtype
    if dtypes.is_inexact(dtype):
        x = elementwise.bitcast_convert_type(x, new_dtype=np.dtype(f"int{8 * dtype.itemsize}"))
    return structural.convert_element_type(x, new_dtype=INT64, weak_type=False)


def constant_words(words: Sequence[int]) -> Any:
    """Return known words as an operand of 64 bits, also where NumPy's arrays become arrays of 32 bits.

    Constants of rank 0 keep their dtype there (`dtypes.is_constant`), and are values of the program itself.
    """
    host = np.array(words, INT64)
    if not dtypes.is_narrowed(host):
        return host
    parts = [np.array(word, INT64) for word in words]
    for part in parts:
        part.flags.writeable = False
    return structural.concatenate(*(structural.reshape(part, shape=(1,)) for part in parts), dimension=0)
