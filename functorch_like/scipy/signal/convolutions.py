"""Convolutions and correlations in any number of dimensions, directly or by Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import axis_of
from functorch_like.numpy.convolving import check_mode, slide
from functorch_like.numpy.matrix_products import _static
from functorch_like.numpy.operands import given
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, PrecisionLike

_BOUNDARIES = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}


def _operands(in1: Any, in2: Any, name: str, mode: Any, rank: int | None = None) -> tuple[Any, Any]:
    check_mode(mode, f"signal.{name}")
    in1, in2 = given(in1, in2)
    in1, in2 = fnp.asarray(in1), fnp.asarray(in2)
    left, right = aval_of(in1), aval_of(in2)
    if left.ndim != right.ndim or (rank is not None and left.ndim != rank) or 0 in left.shape + right.shape:
        what = "two dimensions each" if rank else "as many dimensions each"
        raise promotion.error(ShapeError, f"signal.{name} of {left!r} and {right!r}", f"give {what}, none of size 0")
    if mode == "valid":
        more = [m > n for n, m in zip(left.shape, right.shape, strict=True)]
        less = [m < n for n, m in zip(left.shape, right.shape, strict=True)]
        if any(more) and any(less):
            raise promotion.error(
                ShapeError, f"signal.{name} of {left!r} and {right!r}, mode='valid'", "one must fit into the other"
            )
    return in1, in2


def convolve(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto", precision: PrecisionLike = None
) -> Array:
    """Convolution in all dimensions.

    Args:
        in1: array of n dimensions.
        in2: another array of n dimensions.
        mode: "full" gives all sums; "same" those in the middle, as many as `in1` has elements; "valid" those for which
            the two overlap completely.
        method: "direct", or "fft" by Fourier transforms, in floating point; "auto" is direct.
        precision: precision of the products, as for `fnp.dot`.

    Returns:
        An array of the dtype that both promote to; its size depends on the mode.

    Raises:
        ArgumentError: for another mode or method.
        ShapeError: for other numbers of dimensions, and size 0.

    >>> ft.scipy.signal.convolve(fnp.asarray([1, 2, 3]), fnp.asarray([0, 1])).tolist()
    [0, 1, 2, 3]
    """
    in1, in2 = _operands(in1, in2, "convolve", mode)
    return _dispatched(in1, in2, mode, method, precision, False)


def correlate(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto", precision: PrecisionLike = None
) -> Array:
    """Correlation in all dimensions: convolution with `in2` conjugated and reversed; arguments as for `convolve`.

    Args:
        in1: array.
        in2: array of the same rank.
        mode: "full", "same" (of the size of `in1`) or "valid".
        method: "direct", "fft" or "auto".
        precision: precision of the products: None, a name such as "highest", or a pair of these.

    Returns:
        An array of the dtype that both promote to; its size depends on the mode.

    >>> ft.scipy.signal.correlate(fnp.asarray([1, 2, 3]), fnp.asarray([0, 1])).tolist()
    [1, 2, 3, 0]
    """
    in1, in2 = _operands(in1, in2, "correlate", mode)
    return _dispatched(in1, in2, mode, method, precision, True)


def _dispatched(in1: Any, in2: Any, mode: str, method: str, precision: Any, reverse: bool) -> Any:
    if method not in ("auto", "direct", "fft"):
        raise promotion.error(ArgumentError, f"signal.convolve with method={method!r}", "use 'auto', 'direct' or 'fft'")
    if method == "fft":
        axes = tuple(range(aval_of(in1).ndim))
        return _by_fft(in1, in2, mode=mode, axes=axes, reverse=reverse)
    return _direct(in1, in2, mode=mode, precision=_static(precision, None)[0], reverse=reverse)


def _reversed(x: Any) -> Any:
    return fnp.conj(fnp.flip(x)) if aval_of(x).ndim else fnp.conj(x)


@eager_jit(static=("mode", "precision", "reverse"))
def _direct(in1: Any, in2: Any, mode: str, precision: Any, reverse: bool) -> Any:
    in1, in2 = promotion.promote(in1, in2)
    in2 = _reversed(in2) if reverse else in2
    n, m = aval_of(in1).shape, aval_of(in2).shape
    if not n:
        return in1 * in2
    if mode == "valid" and any(b > a for a, b in zip(n, m, strict=True)):
        in1, in2, m = in2, in1, n
    pads = {
        "full": [(k - 1, k - 1) for k in m],
        "same": [(k // 2, (k - 1) // 2) for k in m],
        "valid": [(0, 0) for _ in m],
    }[mode]
    return slide(in1, fnp.flip(in2), pads, precision)


def convolve2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: ArrayLike = 0,
    precision: PrecisionLike = None,
) -> Array:
    """Convolution of matrices.

    Args:
        in1: (m, n).
        in2: (k, l).
        mode: as for `convolve`.
        boundary: the values around `in1`: "fill" (`fillvalue`), "wrap" (the matrix repeated) or "symm" (mirrored).
        fillvalue: a number.
        precision: precision of the products, as for `fnp.dot`.

    Returns:
        A matrix of the dtype that both promote to; its size depends on the mode.

    Raises:
        ArgumentError: for another mode or boundary.
        ShapeError: for other shapes.

    >>> ft.scipy.signal.convolve2d(fnp.eye(2), fnp.ones((1, 2))).tolist()
    [[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]
    """
    return _two(in1, in2, mode, boundary, fillvalue, precision, "convolve2d")


def correlate2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: ArrayLike = 0,
    precision: PrecisionLike = None,
) -> Array:
    """Correlation of matrices: convolution with `in2` conjugated and reversed; arguments as for `convolve2d`.

    Args:
        in1: matrix.
        in2: matrix.
        mode: "full", "same" (of the size of `in1`) or "valid".
        boundary: "fill", "wrap" or "symm".
        fillvalue: value around `in1`, for boundary "fill".
        precision: precision of the products: None, a name such as "highest", or a pair of these.

    Returns:
        A matrix of the dtype that both promote to; its size depends on the mode.

    >>> ft.scipy.signal.correlate2d(fnp.eye(2), fnp.asarray([[1.0, 0.0]])).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    return _two(in1, in2, mode, boundary, fillvalue, precision, "correlate2d")


def _two(in1: Any, in2: Any, mode: str, boundary: str, fillvalue: Any, precision: Any, name: str) -> Any:
    if boundary not in _BOUNDARIES:
        raise promotion.error(
            ArgumentError, f"signal.{name} with boundary={boundary!r}", "use 'fill', 'wrap' or 'symm'"
        )
    in1, in2 = _operands(in1, in2, name, mode, 2)
    in1, in2 = promotion.promote(in1, in2)
    n, m = aval_of(in1).shape, aval_of(in2).shape
    reverse = name == "correlate2d"
    if mode != "valid":
        around = [(k - 1, k - 1) for k in m] if mode == "full" else [(k // 2, (k - 1) // 2) for k in m]
        if reverse and mode == "same":
            around = [(high, low) for low, high in around]
        how = _BOUNDARIES[boundary]
        in1 = fnp.pad(in1, around, how, constant_values=fillvalue) if how == "constant" else fnp.pad(in1, around, how)
        n = aval_of(in1).shape
    elif reverse and any(b > a for a, b in zip(n, m, strict=True)):
        return _reversed(_direct(in2, in1, mode="valid", precision=_static(precision, None)[0], reverse=True))
    return _direct(in1, in2, mode="valid", precision=_static(precision, None)[0], reverse=reverse)


def fftconvolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: int | Sequence[int] | None = None) -> Array:
    """Convolution by Fourier transforms, in floating point.

    Args:
        in1: array of n dimensions.
        in2: another array of n dimensions.
        mode: as for `convolve`.
        axes: the axes; all by default. The other dimensions broadcast.

    Returns:
        An array of the dtype that both promote to; its size depends on the mode.

    Raises:
        ArgumentError: for another mode.
        ShapeError: for other numbers of dimensions, and size 0.

    >>> ft.scipy.signal.fftconvolve(fnp.asarray([1.0, 2.0]), fnp.asarray([0.0, 1.0])).round(3).tolist()
    [0.0, 1.0, 2.0]
    """
    in1, in2 = _operands(in1, in2, "fftconvolve", "full")
    check_mode(mode, "signal.fftconvolve")
    rank = aval_of(in1).ndim
    listed = range(rank) if axes is None else axes if isinstance(axes, Sequence) else (axes,)
    return _by_fft(in1, in2, mode=mode, axes=tuple(axis_of(a, rank, "fftconvolve") for a in listed), reverse=False)


def fast_length(n: int) -> int:
    """Return the least number from n on without prime factors above 5, whose transforms are fast."""
    while True:
        rest = n
        for p in (2, 3, 5):
            while rest % p == 0 and rest:
                rest //= p
        if rest <= 1:
            return n
        n += 1


@eager_jit(static=("mode", "axes", "reverse"))
def _by_fft(in1: Any, in2: Any, mode: str, axes: tuple[int, ...], reverse: bool) -> Any:
    in1, in2 = map(promotion.to_inexact, promotion.promote(in1, in2))
    in2 = _reversed(in2) if reverse else in2
    n, m = aval_of(in1).shape, aval_of(in2).shape
    if not axes:
        return in1 * in2
    full = [n[d] + m[d] - 1 for d in axes]
    sizes = [fast_length(k) for k in full]
    complex_ = aval_of(in1).dtype.kind == "c"
    forth, back = (fnp.fft.fftn, fnp.fft.ifftn) if complex_ else (fnp.fft.rfftn, fnp.fft.irfftn)
    out = back(forth(in1, sizes, axes) * forth(in2, sizes, axes), sizes, axes)
    cut = [slice(None)] * len(n)
    for d, k in zip(axes, full, strict=True):
        count = {"full": k, "same": n[d], "valid": abs(n[d] - m[d]) + 1}[mode]
        start = (k - count) // 2
        cut[d] = slice(start, start + count)
    return out[tuple(cut)]
