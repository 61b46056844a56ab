"""The frequencies that belong to the elements of a Fourier transform, and their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError
from functorch_like.numpy import promotion, shapes
from functorch_like.numpy.axes import axis_of
from functorch_like.numpy.creation import asarray
from functorch_like.numpy.repeating import roll
from functorch_like.transforms.eager_jit import with_kernel

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, Axis, DeviceLike, DTypeLike


def _count(n: Any, name: str) -> int:
    if not isinstance(n, (int, np.integer)) or n < 1:
        raise promotion.error(ArgumentError, f"fnp.fft.{name}: n={n!r}", "give the length, an int of at least 1")
    return int(n)


def _frequencies(whole: Any, n: int, d: Any, dtype: Any, device: Any) -> Any:
    dtype = dtypes.default_float() if dtype is None else np.dtype(dtype)
    if isinstance(d, (int, float, np.number)):
        return asarray((whole / (n * float(d))).astype(dtype), device=device)
    return asarray(whole.astype(dtype), device=device) / (n * d)


def fftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: DeviceLike = None) -> Array:
    """The frequencies, in cycles per unit of d, that the elements of `fft` belong to.

    Args:
        n: the number of points.
        d: the distance between two points.
        dtype: the default float by default.
        device: the device of the result.

    Returns:
        (n,), in floating point.

    Raises:
        ArgumentError: where n is not an int of at least 1.

    >>> fnp.fft.fftfreq(4, 0.5).tolist()
    [0.0, 0.5, -1.0, -0.5]
    """
    n = _count(n, "fftfreq")
    return _frequencies((np.arange(n) + n // 2) % n - n // 2, n, d, dtype, device)


def rfftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: DeviceLike = None) -> Array:
    """The frequencies, in cycles per unit of d, that the elements of `rfft` belong to.

    Args:
        n: the number of points.
        d: the distance between two points.
        dtype: the default float by default.
        device: the device of the result.

    Returns:
        (n // 2 + 1,), in floating point.

    Raises:
        ArgumentError: where n is not an int of at least 1.

    >>> fnp.fft.rfftfreq(4, 0.5).tolist()
    [0.0, 0.5, 1.0]
    """
    n = _count(n, "rfftfreq")
    return _frequencies(np.arange(n // 2 + 1), n, d, dtype, device)


def _shift(x: Any, axes: Any, name: str, back: bool) -> Any:
    x = shapes.arr(x, f"fnp.fft.{name}")
    shape = aval_of(x).shape
    dims = range(len(shape)) if axes is None else axes if isinstance(axes, Sequence) else (axes,)
    over = tuple(axis_of(d, len(shape), f"fnp.fft.{name}") for d in dims)
    return roll(x, tuple(-(shape[d] // 2) if back else shape[d] // 2 for d in over), over)


@with_kernel(1)
def fftshift(x: ArrayLike, axes: Axis = None) -> Array:
    """Move elements cyclically so that frequency 0 is in the middle.

    Args:
        x: array.
        axes: int, or several; all by default.

    Returns:
        An array of the shape and dtype of x.

    >>> fnp.fft.fftshift(fnp.fft.fftfreq(4)).tolist()
    [-0.5, -0.25, 0.0, 0.25]
    """
    return _shift(x, axes, "fftshift", back=False)


@with_kernel(1)
def ifftshift(x: ArrayLike, axes: Axis = None) -> Array:
    """The inverse of `fftshift`.

    Args:
        x: array.
        axes: int, or several; all by default.

    Returns:
        An array of the shape and dtype of x.

    >>> fnp.fft.ifftshift(fnp.fft.fftshift(np.arange(5.0))).tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0]
    """
    return _shift(x, axes, "ifftshift", back=True)
