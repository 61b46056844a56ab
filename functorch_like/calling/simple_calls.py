"""Calls of public functions that a compiled form answers: those with arrays and simple options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from functorch_like import core


class Kernels(NamedTuple):
    """Compiled forms of a public function; `eager_jit.with_kernel` makes them, `api_boundary.public` calls them.

    Attributes:
        operands: number of leading parameters that are arrays.
        most: number of leading parameters that are arrays or options.
        options: names of all options.
        plain: for calls with these arrays alone.
        with_options: returns the form for calls with options, too, which are compiled in. (C++ compares them at each
            call, which takes time.)
    """

    operands: int
    most: int
    options: frozenset[str]
    plain: Any
    with_options: Callable[[], Any]


_SIMPLE = frozenset({int, bool, str, type(None)})


def is_simple(operands: int, most: int, options: frozenset[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return True for arguments that C++ passes and compares exactly.

    These are arrays, NumPy's with dimensions (others would be numbers) and native bytes, followed by options of simple
    types, or tuples of ints.
    """
    if len(args) > most:
        return False
    array, numpys, simple = core.ArrayImpl, np.ndarray, _SIMPLE
    left = operands
    for x in args:
        kind = type(x)
        if left:
            left -= 1
            if kind is not array and not (kind is numpys and x.ndim and x.dtype.isnative):
                return False
        elif kind not in simple and not (kind is tuple and all(type(n) is int for n in x)):
            return False
    for name, x in kwargs.items():
        if name not in options or not (type(x) in simple or (type(x) is tuple and all(type(n) is int for n in x))):
            return False
    return True
