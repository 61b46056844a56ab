"""Arguments of functions that take lists, too."""

from __future__ import annotations

from typing import Any

import numpy as np

from functorch_like.core import ArrayImpl, Tracer
from functorch_like.numpy import promotion as P
from functorch_like.numpy.creation import asarray


def given(*xs: Any) -> tuple[Any, ...]:
    """Arguments for a kernel: anything array-like as an array, numbers made such that nothing is lost; None stays.

    Bodies of kernels that use operators need this: where they are inlined, NumPy's arrays would do NumPy's arithmetic.
    """
    return P.numbers(*(x if x is None or type(x) in P.NUMBERS else asarray(x) for x in xs))


def known(x: Any) -> np.ndarray[Any, Any] | None:
    """The value of an argument as a NumPy array; None where it is only traced."""
    if isinstance(x, Tracer):
        x = x.concrete()
        return None if x is None else np.asarray(x)
    if isinstance(x, (list, tuple)) and any(isinstance(v, (Tracer, ArrayImpl)) for v in x):
        values = [known(v) for v in x]
        return None if any(v is None for v in values) else np.asarray(values)
    return np.asarray(x)
