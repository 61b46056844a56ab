"""Spectra of signals, by Fourier transforms of windows of them."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import axis_of
from functorch_like.numpy.operands import given
from functorch_like.scipy.signal.trends import _detrend
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike

_WINDOWS = {
    "hann": np.hanning, "hanning": np.hanning, "hamming": np.hamming, "blackman": np.blackman,
    "bartlett": np.bartlett, "boxcar": np.ones, "rectangular": np.ones,
}  # fmt: skip
_ARGS = """fs: number of samples per unit of time.
        window: "hann", "hamming", "blackman", "bartlett", "boxcar", ("kaiser", beta), or an array.
        nperseg: the number of samples of a window: 256 by default, or the size of an array given as window.
        noverlap: the number of samples that neighbouring windows share; half of them by default.
        nfft: length to which windows are padded with zeros."""


def _window(window: Any, nperseg: int | None, size: int, name: str) -> tuple[Any, int]:
    """Return the window's values, on the host where it has a name, and its length."""
    if isinstance(window, str) or (isinstance(window, tuple) and window and isinstance(window[0], str)):
        n = operator.index(256 if nperseg is None else nperseg)
        if n < 1:
            raise promotion.error(ArgumentError, f"signal.{name} with nperseg={n}", "use at least 1")
        n = min(n, size)
        title, *more = (window,) if isinstance(window, str) else window
        if title == "kaiser" and len(more) == 1:
            return np.kaiser(n + 1, float(more[0]))[:-1], n
        if title not in _WINDOWS or more:
            raise promotion.error(ArgumentError, f"signal.{name} with window={window!r}", "give the values as an array")
        return (_WINDOWS[title](n + 1)[:-1] if n > 1 else np.ones(n)), n
    (values,) = given(window)
    aval = aval_of(values)
    if aval.ndim != 1 or aval.size > size or (nperseg is not None and nperseg != aval.size):
        raise promotion.error(ShapeError, f"signal.{name}: a window {aval!r} for {size} samples", "give one dimension")
    return values, aval.size


def _plan(nperseg: int, noverlap: Any, nfft: Any, name: str) -> tuple[int, int]:
    overlap = nperseg // 2 if noverlap is None else operator.index(noverlap)
    length = nperseg if nfft is None else operator.index(nfft)
    if not 0 <= overlap < nperseg or length < nperseg:
        raise promotion.error(
            ArgumentError,
            f"signal.{name} with nperseg={nperseg}, noverlap={noverlap}, nfft={nfft}",
            "noverlap must be less than nperseg, and nfft not less",
        )
    return nperseg - overlap, length


@eager_jit(static=("step", "nfft", "trend", "onesided", "size"))
def _segments(x: Any, window: Any, step: int, nfft: int, trend: str, onesided: bool, size: int) -> Any:
    """Return the transforms of the windows along the last axis: (..., windows, frequencies)."""
    count = (aval_of(x).shape[-1] - size) // step + 1
    places = np.arange(size)[None] + step * np.arange(count)[:, None]
    parts = x[..., places]
    if trend:
        parts = _detrend.inline(parts, d=aval_of(parts).ndim - 1, breaks=(0, size), linear=trend == "linear")
    parts = parts * promotion.convert(window, fnp.real(parts).dtype)
    if onesided:
        return fnp.fft.rfft(parts, nfft)
    return fnp.fft.fft(parts, nfft)


def _frequencies(nfft: int, onesided: bool, fs: Any, dtype: Any) -> Any:
    numbers = np.fft.rfftfreq(nfft) if onesided else np.fft.fftfreq(nfft)
    return fnp.asarray(numbers, dtype) * fs


def _trend(detrend: Any, name: str) -> str:
    if detrend is False or detrend is None:
        return ""
    if detrend in ("constant", "linear"):
        return detrend
    raise promotion.error(ArgumentError, f"signal.{name} with detrend={detrend!r}", "use 'constant', 'linear' or False")


def _signals(name: str, axis: int, *xs: Any) -> tuple[list[Any], int]:
    result = [promotion.to_inexact(fnp.asarray(x)) for x in given(*xs)]
    result = promotion.promote(*result)
    result = [promotion.convert(x, dtypes.float32) if aval_of(x).dtype.itemsize < 4 else x for x in result]
    axes = [axis_of(axis, aval_of(x).ndim, f"signal.{name}") for x in result]
    if any(not aval_of(x).shape[d] for x, d in zip(result, axes, strict=True)):
        raise promotion.error(ShapeError, f"signal.{name} of {aval_of(result[0])!r}", "give at least one sample")
    return [fnp.moveaxis(x, d, -1) for x, d in zip(result, axes, strict=True)], axes[0]


def csd(
    x: ArrayLike,
    y: ArrayLike | None,
    fs: ArrayLike = 1.0,
    window: str | ArrayLike | tuple[str, float] = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: str | bool = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The cross spectrum of two signals by Welch's method: the mean over windows of conj(X) Y.

    Args:
        x: signals along an axis.
        y: further ones; None, or x itself, gives the power spectrum.
        {args}
        detrend: the part removed from each window: "constant", "linear" or False.
        return_onesided: leave out negative frequencies of real signals.
        scaling: "density" (per unit of frequency) or "spectrum".
        axis: the axis.
        average: "mean" or "median" of the windows.

    Returns:
        The frequencies, and the spectrum.

    Raises:
        ArgumentError: for numbers that do not fit together, and other settings.
        ShapeError: for signals that do not broadcast, or are empty.

    >>> f, p = ft.scipy.signal.csd(fnp.ones(8), fnp.arange(8.0), nperseg=4)
    >>> f.tolist(), p.shape
    ([0.0, 0.25, 0.5], (3,))
    """
    if scaling not in ("density", "spectrum") or average not in ("mean", "median"):
        raise promotion.error(
            ArgumentError, f"signal.csd with scaling={scaling!r}, average={average!r}",
            "use 'density' or 'spectrum', and 'mean' or 'median'",
        )  # fmt: skip
    same = y is None or y is x
    xs, d = _signals("csd", axis, *([x] if same else [x, y]))
    size = max(aval_of(v).shape[-1] for v in xs)
    xs = [fnp.pad(v, [(0, 0)] * (aval_of(v).ndim - 1) + [(0, size - aval_of(v).shape[-1])]) for v in xs]
    values, n = _window(window, nperseg, size, "csd")
    step, length = _plan(n, noverlap, nfft, "csd")
    real = not any(dtypes.is_complex(aval_of(v).dtype) for v in xs)
    onesided = bool(return_onesided) and real
    parts = [
        _segments(v, values, step=step, nfft=length, trend=_trend(detrend, "csd"), onesided=onesided, size=n)
        for v in xs
    ]
    power = fnp.conj(parts[0]) * parts[-1]
    power = fnp.real(power) if same else power
    total = fnp.asarray(values, fnp.real(power).dtype)
    power = power / (fs * fnp.sum(total * total) if scaling == "density" else fnp.sum(total) ** 2)
    if onesided:
        double = np.full(length // 2 + 1, 2.0)
        double[0] = 1
        if length % 2 == 0:
            double[-1] = 1
        power = power * fnp.asarray(double, fnp.real(power).dtype)
    count = aval_of(power).shape[-2]
    if average == "mean":
        power = fnp.mean(power, -2)
    else:
        bias = 1 + sum(1 / (k + 1) - 1 / k for k in range(2, count, 2))
        middle = fnp.median(fnp.real(power), -2)
        power = (middle if same else middle + 1j * fnp.median(fnp.imag(power), -2)) / bias
    return _frequencies(length, onesided, fs, fnp.real(power).dtype), fnp.moveaxis(power, -1, d)


def welch(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: str | ArrayLike | tuple[str, float] = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: str | bool = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The power spectrum of a signal by Welch's method; arguments as for `csd`.

    Args:
        x: array of samples.
        fs: samples per unit of time.
        window: name of a window, or its values.
        nperseg: int: samples of a segment; 256 if None.
        noverlap: int: samples that segments share; half a segment if None.
        nfft: int: length of the transform; a segment's if None.
        detrend: "constant", "linear" or False.
        return_onesided: leave out negative frequencies of real samples.
        scaling: "density" or "spectrum".
        axis: int: the axis.
        average: "mean" or "median" of the segments.

    Returns:
        A pair: frequencies of shape (k,), and powers.

    >>> ft.scipy.signal.welch(fnp.arange(8.0), nperseg=4)[1].shape
    (3,)
    """
    return csd(
        x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average
    )  # fmt: skip


def stft(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: str | ArrayLike | tuple[str, float] = "hann",
    nperseg: int | None = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: str | bool = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Array, Array, Array]:
    """The short-time Fourier transform: the Fourier transform of each window.

    Args:
        x: signals along an axis.
        {args}
        detrend: the part removed from each window: "constant", "linear" or False.
        return_onesided: leave out negative frequencies of real signals.
        boundary: the content of half a window at both ends: "zeros", "even" or "odd" (mirrored), "constant" (the
            last number), or None to leave the signal as it is.
        padded: pad the end with zeros so that the last window is complete.
        axis: the axis of samples; in the result, frequencies lie along it, and windows along the last axis.

    Returns:
        The frequencies, the times of the windows, and the transform.

    Raises:
        ArgumentError: for numbers that do not fit together, and other settings.
        ShapeError: for empty signals.

    >>> [a.shape for a in ft.scipy.signal.stft(fnp.arange(8.0), nperseg=4)]
    [(3,), (5,), (3, 5)]
    """
    (x,), d = _signals("stft", axis, x)
    if not isinstance(window, (str, tuple)):
        nperseg = None
    values, n = _window(window, nperseg, aval_of(x).shape[-1], "stft")
    step, length = _plan(n, noverlap, nfft, "stft")
    x = _bordered(x, n // 2, boundary)
    total = aval_of(x).shape[-1]
    if padded:
        more = -(total - n) % step if total >= n else n - total
        x = fnp.pad(x, [(0, 0)] * (aval_of(x).ndim - 1) + [(0, more)])
    onesided = bool(return_onesided) and not dtypes.is_complex(aval_of(x).dtype)
    trend = _trend(detrend, "stft")
    out = _segments(x, values, step=step, nfft=length, trend=trend, onesided=onesided, size=n)
    real = fnp.real(out).dtype
    out = out / fnp.abs(fnp.sum(fnp.asarray(values, real)))
    count = aval_of(out).shape[-2]
    times = (fnp.asarray(np.arange(count) * step + (n / 2 if boundary is None else 0), real)) / fs
    return _frequencies(length, onesided, fs, real), times, fnp.moveaxis(out, -1, d)


def _bordered(x: Any, n: int, boundary: str | None) -> Any:
    if boundary is None:
        return x
    widths = [(0, 0)] * (aval_of(x).ndim - 1) + [(n, n)]
    if boundary == "zeros":
        return fnp.pad(x, widths)
    if boundary == "constant":
        return fnp.pad(x, widths, "edge")
    if boundary in ("even", "odd"):
        mirrored = fnp.pad(x, widths, "reflect")
        if boundary == "even":
            return mirrored
        size = aval_of(x).shape[-1]
        return fnp.concatenate([2 * x[..., :1] - mirrored[..., :n], x, 2 * x[..., -1:] - mirrored[..., n + size :]], -1)
    raise promotion.error(
        ArgumentError, f"signal.stft with boundary={boundary!r}", "use 'zeros', 'even', 'odd', 'constant' or None"
    )


def istft(
    Zxx: ArrayLike,
    fs: ArrayLike = 1.0,
    window: str | ArrayLike | tuple[str, float] = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Array, Array]:
    """The inverse of `stft`: overlapping windows are added up and divided by the sum of the squares of the window.

    Args:
        Zxx: transforms.
        fs: samples per unit of time.
        window: as for `stft`.
        nperseg: the number of samples of a window; by default from the number of frequencies.
        noverlap: the number of samples that neighbouring windows share; half of them by default.
        nfft: length to which windows were padded.
        input_onesided: whether negative frequencies were left out.
        boundary: whether to cut off half a window at both ends.
        time_axis: the axis of the windows.
        freq_axis: the axis of the frequencies.

    Returns:
        The times, and the signal.

    Raises:
        ArgumentError: for numbers that do not fit together, and other windows.
        ShapeError: for fewer than two dimensions.

    >>> _, _, z = ft.scipy.signal.stft(fnp.arange(8.0), nperseg=4)
    >>> bool(np.allclose(ft.scipy.signal.istft(z, nperseg=4)[1], np.arange(8.0), atol=1e-5))
    True
    """
    (Zxx,) = given(Zxx)
    rank = aval_of(Zxx).ndim
    if rank < 2:
        raise promotion.error(ShapeError, f"signal.istft of {aval_of(Zxx)!r}", "give frequencies and times")
    t, f = axis_of(time_axis, rank, "signal.istft"), axis_of(freq_axis, rank, "signal.istft")
    z = fnp.moveaxis(Zxx, (t, f), (-2, -1))
    frames = aval_of(z).shape[-1]
    full = 2 * (frames - 1) if input_onesided else frames
    n = full if nperseg is None else operator.index(nperseg)
    length = nfft if nfft is not None else n if input_onesided and n == full + 1 else full
    values, n = _window(window, n, 2**62, "istft")
    step, length = _plan(n, noverlap, length, "istft")
    out = _overlapped(z, values, step=step, nfft=length, onesided=bool(input_onesided), size=n, cut=bool(boundary))
    # The samples lie where the time axis was, among the remaining axes; there is no axis of windows.
    at = t - (f < t)
    real = fnp.real(out).dtype
    times = fnp.asarray(np.arange(aval_of(out).shape[-1]), real) / fs
    return times, fnp.moveaxis(out, -1, at)


@eager_jit(static=("step", "nfft", "onesided", "size", "cut"))
def _overlapped(z: Any, window: Any, step: int, nfft: int, onesided: bool, size: int, cut: bool) -> Any:
    parts = fnp.fft.irfft(z, nfft) if onesided else fnp.fft.ifft(z, nfft)
    parts = parts[..., :size]
    window = promotion.convert(window, fnp.real(parts).dtype)
    count = aval_of(parts).shape[-2]
    total = size + (count - 1) * step
    places = np.arange(size)[None] + step * np.arange(count)[:, None]
    x = fnp.zeros((*aval_of(parts).shape[:-2], total), aval_of(parts).dtype)
    x = x.at[..., places].add(parts * window * fnp.sum(window))
    norm = fnp.zeros(total, aval_of(window).dtype).at[places].add(fnp.broadcast_to(window**2, (count, size)))
    x = x / fnp.where(norm > 1e-10, norm, 1)
    half = size // 2
    return x[..., half : total - half] if cut else x


for _function in (csd, stft):
    _function.__doc__ = (_function.__doc__ or "").replace("{args}", _ARGS)
