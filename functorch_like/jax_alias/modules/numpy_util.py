"""`jax._src.numpy.util`: functions of libraries' own that convert operands to one dtype, as those of jax.numpy do."""

from __future__ import annotations

from typing import Any

from functorch_like import numpy
from functorch_like.numpy import promotion


def promote_dtypes(*args: Any) -> list[Any]:
    """Return values as arrays of the dtype that they have together. Shapes stay."""
    return [numpy.asarray(x) for x in promotion.promote(*args, notify=False)]


def promote_dtypes_inexact(*args: Any) -> list[Any]:
    """Return values as arrays of the float or complex dtype that they have together. Shapes stay."""
    return [promotion.to_inexact(x) for x in promote_dtypes(*args)]
