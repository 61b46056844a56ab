"""Arguments of functions that also take lists."""

from __future__ import annotations

from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import ArrayImpl, Tracer, aval_of
from functorch_like.numpy import promotion
from functorch_like.numpy.creation import asarray, leaf_types


def given(*xs: Any) -> tuple[Any, ...]:
    """Convert arguments of an `eager_jit` function: lists to arrays, numbers without loss; None stays.

    Bodies that use operators need this: where they are inlined, operators of NumPy's arrays would compute in NumPy.
    """
    wide = any(isinstance(x, (list, tuple)) for x in xs) and any(_is_wide(x) for x in xs)
    return promotion.numbers(*(x if x is None or type(x) in promotion.NUMBERS else _array(x, wide) for x in xs))


def _is_wide(x: Any) -> bool:
    return promotion.is_array(x) and aval_of(x).dtype in (dtypes.float64, dtypes.complex128)


def _array(x: Any, wide: bool) -> Any:
    """Convert anything array-like to an array; lists of Python floats keep their digits beside 64-bit arrays."""
    if wide and isinstance(x, (list, tuple)):
        kinds: set[type] = set()
        leaf_types(x, kinds)
        if kinds <= promotion.NUMBERS and kinds & {float, complex}:
            return asarray(x, dtypes.complex128 if complex in kinds else dtypes.float64)
    return asarray(x)


def known(x: Any) -> np.ndarray[Any, Any] | None:
    """Return the value of an argument as a NumPy array; None where it is only traced."""
    if isinstance(x, Tracer):
        x = x.concrete()
        return None if x is None else np.asarray(x)
    if isinstance(x, (list, tuple)) and any(isinstance(v, (Tracer, ArrayImpl)) for v in x):
        values = [known(v) for v in x]
        return None if any(v is None for v in values) else np.asarray(values)
    return np.asarray(x)
