"""Warning about donated arguments whose memory no result can take."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.source_info import user_line


def warn_of_unused(name: str, donated: Sequence[ShapedArray], results: Sequence[ShapedArray]) -> None:
    """Warn if a program has fewer results of some number of bytes than donated arguments of this number.

    Args:
        name: the program's name.
        donated: avals of the donated arguments that the program reads.
        results: avals of its results.
    """
    free = Counter(map(_bytes, results))
    unused = []
    for aval in donated:
        size = _bytes(aval)
        free[size] -= 1
        if free[size] < 0:
            unused.append(aval)
    if unused:
        line = user_line()
        texts = ", ".join(map(repr, unused))
        warnings.warn_explicit(
            f"Some donated buffers were not usable: {texts}. {name} has no result of as many bytes left to take "
            "their memory. Donate arguments that a result replaces, and return that result",
            UserWarning,
            *(("functorch_like", 0) if line is None else (line.file, line.line)),
        )


def _bytes(aval: ShapedArray) -> int:
    """Return the bytes of an array in a program: XLA gives a result the memory of an argument of as many bytes."""
    return -(-aval.size * dtypes.itemsize_bits(aval.dtype) // 8)
