"""Warning about donated arguments whose memory no result can take."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence

from functorch_like.avals import ShapedArray
from functorch_like.source_info import user_line


def warn_of_unused(name: str, donated: Sequence[ShapedArray], results: Sequence[ShapedArray]) -> None:
    """Warn if a program has fewer results of some size than donated arguments of this size.

    Args:
        name: the program's name.
        donated: avals of the donated arguments that the program reads.
        results: avals of its results.
    """
    free = Counter(aval.size for aval in results)
    unused = []
    for aval in donated:
        free[aval.size] -= 1
        if free[aval.size] < 0:
            unused.append(aval)
    if unused:
        line = user_line()
        texts = ", ".join(map(repr, unused))
        warnings.warn_explicit(
            f"Some donated buffers were not usable: {texts}. {name} has no result of their size left that could take "
            "their memory. Donate arguments that a result replaces, and return that result",
            UserWarning,
            *(("functorch_like", 0) if line is None else (line.file, line.line)),
        )
