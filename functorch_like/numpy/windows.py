"""Windows to taper signals with. Their lengths are fixed, so all but Kaiser's are constants."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, FtError
from functorch_like.numpy import promotion
from functorch_like.numpy.operands import given
from functorch_like.primitives.elementwise.bessel import bessel_i0e
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


def _points(M: Any) -> int:
    """Return a number of points, which may be a float without a fraction."""
    try:
        return operator.index(M)
    except (TypeError, FtError):
        count = float(M)
    if not count.is_integer():
        raise promotion.error(ArgumentError, f"a window has a whole number of points, not M={M!r}", "round it")
    return int(count)


_DOC = """{summary}

    Args:
        M: number of points, which is not traced; the result is empty if it is below 1.

    Returns:
        (M,), symmetric, in the default float.

    >>> bool(np.allclose(fnp.{name}(5), np.{name}(5), atol=1e-6))
    True
    """


def _window(name: str, summary: str) -> Callable[[int], Array]:
    def function(M: int) -> Array:
        return fnp.asarray(getattr(np, name)(_points(M)), dtypes.default_float())

    return promotion.named(function, name, _DOC.format(summary=summary, name=name), __name__)


bartlett = _window("bartlett", "Bartlett's window: a triangle that is 0 at both ends.")
blackman = _window("blackman", "Blackman's window: 0.42 - 0.5 cos(2 pi t) + 0.08 cos(4 pi t), t from 0 to 1.")
hamming = _window("hamming", "Hamming's window: 0.54 - 0.46 cos(2 pi t), t from 0 to 1.")
hanning = _window("hanning", "Von Hann's window: 0.5 - 0.5 cos(2 pi t), t from 0 to 1.")


def kaiser(M: int, beta: ArrayLike) -> Array:
    """Kaiser's window: I0(beta sqrt(1 - t**2)) / I0(beta), t from -1 to 1.

    Args:
        M: number of points, which is not traced; the result is empty if it is below 1.
        beta: number, which may be traced; a larger one makes the window narrower.

    Returns:
        (M,), symmetric.

    >>> bool(np.allclose(fnp.kaiser(5, 14.0), np.kaiser(5, 14.0), atol=1e-6))
    True
    """
    dtype = dtypes.inexact_dtype(aval_of(beta).dtype) if promotion.is_array(beta) else dtypes.default_float()
    # A Python number by itself would count as float32.
    shape = np.asarray(beta, np.float64) if type(beta) in promotion.NUMBERS else given(beta)[0]
    return _kaiser(shape, points=max(_points(M), 0), dtype=dtype)


@eager_jit(static=("points", "dtype"), ints=True)
def _kaiser(beta: Any, points: int, dtype: Any) -> Any:
    beta = promotion.convert(beta, dtypes.float64)
    t = np.linspace(-1, 1, points) if points != 1 else np.zeros(1)
    root = fnp.asarray(np.sqrt(np.maximum(1 - t * t, 0)))
    beta = fnp.abs(promotion.broadcast(beta, (points,)))
    # exp(x) I0e(x) in place of I0(x), which overflows.
    return promotion.convert(fnp.exp(beta * (root - 1)) * bessel_i0e(beta * root) / bessel_i0e(beta), dtype)
