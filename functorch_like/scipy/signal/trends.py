"""`detrend`: data without their mean, or without a line."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import axis_of
from functorch_like.numpy.operands import given
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


def detrend(
    data: ArrayLike, axis: int = -1, type: str = "linear", bp: int | Sequence[int] = 0, overwrite_data: None = None
) -> Array:
    """Data without the line that fits them best, or without their mean.

    Args:
        data: array.
        axis: the axis.
        type: "linear" or "constant".
        bp: positions where another line begins.
        overwrite_data: not supported: arrays are immutable.

    Returns:
        Floats, of the shape of data.

    Raises:
        ArgumentError: for another type, and positions out of bounds.

    >>> ft.scipy.signal.detrend(fnp.asarray([1.0, 2.0, 6.0]), type="constant").tolist()
    [-2.0, -1.0, 3.0]
    """
    if type not in ("linear", "l", "constant", "c"):
        raise promotion.error(ArgumentError, f"signal.detrend with type={type!r}", "use 'linear' or 'constant'")
    (data,) = given(data)
    d = axis_of(axis, aval_of(data).ndim, "signal.detrend")
    n = aval_of(data).shape[d]
    breaks = sorted({0, n, *np.atleast_1d(np.asarray(bp, int)).tolist()}) if n else [0, 0]
    if breaks[0] < 0 or breaks[-1] > n:
        raise promotion.error(ArgumentError, f"signal.detrend of {n} samples with bp={bp!r}", f"use 0 to {n}")
    return _detrend(data, d=d, breaks=tuple(breaks), linear=type[0] == "l")


@eager_jit(static=("d", "breaks", "linear"))
def _detrend(x: Any, d: int, breaks: tuple[int, ...], linear: bool) -> Any:
    x = fnp.moveaxis(promotion.to_inexact(x), d, -1)
    if not linear:
        return fnp.moveaxis(x - fnp.mean(x, -1, keepdims=True), -1, d)
    parts = []
    for start, stop in itertools.pairwise(breaks):
        part = x[..., start:stop]
        place = np.arange(stop - start) - (stop - start - 1) / 2  # orthogonal to the constant
        size = float(place @ place) or 1.0
        place = fnp.asarray(place, fnp.real(x).dtype)
        part = part - fnp.mean(part, -1, keepdims=True)
        parts.append(part - fnp.sum(part * place, -1, keepdims=True) / size * place)
    return fnp.moveaxis(fnp.concatenate(parts, -1), -1, d)
