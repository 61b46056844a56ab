"""scipy.signal, fft, ndimage, interpolate, integrate, cluster; against SciPy in double precision."""

import warnings

import numpy as np
import pytest
import scipy
from scipy import cluster, interpolate, ndimage, signal

import functorch_like as ft
from functorch_like.errors import ArgumentError, ConcretizationError, ShapeError, UnsupportedError
from functorch_like.scipy import cluster as our_cluster
from functorch_like.scipy import fft as our_fft
from functorch_like.scipy import integrate as our_integrate
from functorch_like.scipy import interpolate as our_interpolate
from functorch_like.scipy import ndimage as our_ndimage
from functorch_like.scipy import signal as our_signal

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(5, 6)), RNG.normal(size=(2, 3))
X, Y = RNG.normal(size=(2, 100)), RNG.normal(size=(2, 100))


def close(got, want, rtol=1e-9, atol=1e-12):
    np.testing.assert_allclose(np.asarray(got), want, rtol=rtol, atol=atol)


# -------------------------------------------------------------------------------------------------------- convolutions
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions(mode):
    for name in ("convolve", "correlate"):
        f, want = getattr(our_signal, name), getattr(signal, name)
        for a, b in ((A, B), (B, A), (A[0], B[0]), (A + 1j * A[::-1], 1j * B + 1), (A[:4], B[:, :2])):
            for method in ("direct", "fft"):
                if method == "fft" and mode == "valid" and a is B:
                    continue
                close(f(a, b, mode, method), want(a, b, mode, "direct"), atol=1e-11)
        whole = RNG.integers(0, 5, (4, 5)), RNG.integers(0, 5, (2, 2))
        np.testing.assert_array_equal(f(*whole, mode), want(*whole, mode))
    close(our_signal.fftconvolve(A, B[:1], mode, axes=1), signal.fftconvolve(A, B[:1], mode, axes=1))
    ft.testing.check_grads(lambda a, b: our_signal.convolve(a, b, mode), (A, B), order=1)
    ft.testing.check_vmap(lambda a: our_signal.fftconvolve(a, B[0], mode), (A,))


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions_of_matrices(mode):
    for name in ("convolve2d", "correlate2d"):
        f, want = getattr(our_signal, name), getattr(signal, name)
        for boundary in ("fill", "wrap", "symm"):
            for a, b in ((A, B), (A, B[:, :2]), (B, B), (A, 1j * B)):
                close(f(a, b, mode, boundary), want(a, b, mode, boundary))
        close(f(A, B, mode, fillvalue=2.5), want(A, B, mode, fillvalue=2.5))
        if mode == "valid":
            close(f(B, A, mode), want(B, A, mode))


def test_refused_convolutions():
    for wrong, error in (
        (lambda: our_signal.convolve(A, B[0]), ShapeError), (lambda: our_signal.convolve(A[:0], B), ShapeError),
        (lambda: our_signal.convolve(A, B, "half"), ArgumentError),
        (lambda: our_signal.convolve(A, B.T[:, :1].repeat(7, 0), "valid"), ShapeError),
        (lambda: our_signal.convolve2d(A, B, boundary="edge"), ArgumentError),
    ):  # fmt: skip
        with pytest.raises(error):
            wrong()


# ------------------------------------------------------------------------------------------------------------- spectra
@pytest.mark.parametrize(
    "more",
    [
        {}, {"window": "hamming", "noverlap": 20, "nfft": 70}, {"detrend": "linear", "scaling": "spectrum"},
        {"detrend": False, "average": "median", "return_onesided": False}, {"nperseg": 33, "fs": 10.0},
        {"window": ("kaiser", 3.0)},
    ],
)  # fmt: skip
def test_power(more):
    more = {"nperseg": 32, **more}
    for got, want in (
        (our_signal.welch(X, **more), signal.welch(X, **more)),
        (our_signal.csd(X, Y, **more), signal.csd(X, Y, **more)),
        (our_signal.csd(X.T, Y.T, axis=0, **more), signal.csd(X.T, Y.T, axis=0, **more)),
    ):  # fmt: skip
        close(got[0], want[0], rtol=1e-6)
        close(got[1], want[1], rtol=1e-7)


@pytest.mark.parametrize(
    "more",
    [
        {}, {"window": "blackman", "noverlap": 24}, {"nperseg": 21, "fs": 4.0}, {"nfft": 64, "return_onesided": False},
        {"boundary": None, "padded": False, "detrend": "constant"}, {"boundary": "odd"}, {"boundary": "even"},
    ],
)  # fmt: skip
def test_short_time_transforms(more):
    more = {"nperseg": 32, **more}
    for g, w in zip(our_signal.stft(X, **more), signal.stft(X, **more), strict=True):
        close(g, w, rtol=1e-6, atol=1e-8)
    z = signal.stft(X, **more)[2]
    back = {k: v for k, v in more.items() if k in ("window", "nperseg", "noverlap", "nfft", "fs")}
    back["input_onesided"] = more.get("return_onesided", True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SciPy warns where windows cannot be inverted at the ends
        want = signal.istft(z, **back)[1]
    times, got = our_signal.istft(z, **back)
    close(got, want, rtol=1e-6, atol=1e-8)
    close(times, np.arange(want.shape[-1]) / more.get("fs", 1.0), rtol=1e-6)


def test_short_time_transforms_along_other_axes_and_their_derivatives():
    f = lambda s, x, **more: s.stft(x, nperseg=16, **more)[2]
    close(f(our_signal, X.T, axis=0), f(signal, X.T, axis=0))
    z = f(signal, X)
    moved = np.moveaxis(z, -1, 0)
    more = {"nperseg": 16, "time_axis": 0, "freq_axis": -1}
    close(our_signal.istft(moved, **more)[1], signal.istft(moved, **more)[1])
    ft.testing.check_grads(lambda x: our_signal.welch(x, nperseg=16)[1], (X[0, :40],), order=1)
    ft.testing.check_jit(lambda x: our_signal.stft(x, nperseg=16), (X,))
    with pytest.raises(ArgumentError, match="noverlap"):
        our_signal.stft(X, nperseg=8, noverlap=8)
    with pytest.raises(ArgumentError, match="window"):
        our_signal.welch(X, window="nonsense")


def test_trends():
    for more in ({}, {"type": "constant"}, {"bp": [10, 40]}, {"axis": 0}):
        close(our_signal.detrend(X, **more), signal.detrend(X, **more), atol=1e-11)
    ft.testing.check_grads(our_signal.detrend, (X[0, :5],), order=1)


# -------------------------------------------------------------------------------------------------------------- others
@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_cosine_transforms(kind):
    for norm in (None, "ortho", "forward"):
        for name in ("dct", "idct"):
            f, want = getattr(our_fft, name), getattr(scipy.fft, name)
            for x in (A, A[:, :5], A[:, :2]):
                close(f(x, kind, norm=norm), want(x, kind, norm=norm), atol=1e-11)
            close(f(A, kind, n=9, axis=0, norm=norm), want(A, kind, n=9, axis=0, norm=norm), atol=1e-11)
        for name in ("dctn", "idctn"):
            f, want = getattr(our_fft, name), getattr(scipy.fft, name)
            close(f(A, kind, norm=norm), want(A, kind, norm=norm), atol=1e-11)
            close(f(A, kind, s=(3,), axes=(0,), norm=norm), want(A, kind, s=(3,), axes=(0,), norm=norm), atol=1e-11)
    assert our_fft.dct(A.astype(np.float32), kind).dtype == np.float32
    ft.testing.check_grads(lambda x: our_fft.dct(x, kind), (A[0],), order=1)
    ft.testing.check_vmap(lambda x: our_fft.dct(x, kind), (A,))
    with pytest.raises(ArgumentError, match="types"):
        our_fft.dct(A, 5)


@pytest.mark.parametrize(
    "mode", ["constant", "nearest", "wrap", "mirror", "reflect", "grid-wrap", "grid-constant", "grid-mirror"]
)
def test_map_coordinates(mode):
    at = [RNG.uniform(-9, 14, size=(4, 50)), RNG.uniform(-9, 14, size=(4, 50))]
    for order in (0, 1):
        got = our_ndimage.map_coordinates(A, at, order, mode, cval=0.7)
        close(got, ndimage.map_coordinates(A, at, order=order, mode=mode, cval=0.7), atol=1e-11)
    inside = [np.array([0.3, 2.6]), np.array([1.2, 3.7])]
    ft.testing.check_grads(lambda a, x, y: our_ndimage.map_coordinates(a, [x, y], 1, mode), (A, *inside), order=1)
    whole = RNG.integers(0, 100, 6)
    np.testing.assert_array_equal(our_ndimage.map_coordinates(whole, [np.arange(6.0)], 1, mode), whole)
    with pytest.raises(UnsupportedError, match="order 3"):
        our_ndimage.map_coordinates(A, at, 3)


@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_grids(method):
    lines, values = (np.array([0.0, 1.0, 3.0]), np.array([-1.0, 0.0, 0.5, 2.0])), RNG.normal(size=(3, 4, 2))
    points = np.stack([RNG.uniform(-1, 4, 20), RNG.uniform(-2, 3, 20)], -1)
    for fill in (np.nan, None, 0.5):
        got = our_interpolate.RegularGridInterpolator(lines, values, method, fill_value=fill)
        want = interpolate.RegularGridInterpolator(lines, values, method, bounds_error=False, fill_value=fill)
        close(got(points), want(points))
    close(ft.jit(lambda g, p: g(p))(got, points), want(points))
    close(got(tuple(points.T)), want(tuple(points.T)))
    f = lambda v, p: our_interpolate.RegularGridInterpolator(lines, v, method)(p)
    ft.testing.check_grads(f, (values, np.array([[0.3, 0.1], [2.2, 1.9]])), order=1)
    strict = our_interpolate.RegularGridInterpolator(lines, values, method, bounds_error=True)
    with pytest.raises(ArgumentError, match="out of bounds"):
        strict(points)
    with pytest.raises(ConcretizationError, match="traced"):
        ft.jit(lambda p: strict(p))(points)
    with pytest.raises(ArgumentError, match="increase"):
        our_interpolate.RegularGridInterpolator(([0.0, 0.0],), [1.0, 2.0])


def test_integrals_and_clusters():
    close(our_integrate.trapezoid(A, dx=0.5), scipy.integrate.trapezoid(A, dx=0.5))
    obs, book = RNG.normal(size=(7, 3)), RNG.normal(size=(4, 3))
    for o, b in ((obs, book), (obs[:, 0], book[:, 0])):
        for g, w in zip(our_cluster.vq.vq(o, b), cluster.vq.vq(o, b), strict=True):
            close(g, w)
    assert our_cluster.vq.vq(obs[:0], book)[0].shape == (0,)
    with pytest.raises(ShapeError, match="vq"):
        our_cluster.vq.vq(obs, book[:, :2])


def test_halves_of_integers_are_rounded_away_from_zero():
    values, places = np.array([0, 1, -1, -2, 5]), [np.array([0.5, 1.5, 2.5, 1.2, 3.5])]
    for order in (0, 1):
        for mode in ("constant", "nearest", "mirror"):
            found = ft.scipy.ndimage.map_coordinates(values, places, order, mode)
            expected = scipy.ndimage.map_coordinates(values, places, order=order, mode=mode)
            if order:  # the nearest of two equally near elements is one or the other
                np.testing.assert_array_equal(found, expected)
            assert found.dtype.kind == expected.dtype.kind == "i"


def test_one_point_of_a_grid_is_an_array_of_one():
    lines, values = (np.arange(3.0), np.arange(4.0)), np.arange(12.0).reshape(3, 4) ** 2
    ours, expected = (m.RegularGridInterpolator(lines, values) for m in (ft.scipy.interpolate, scipy.interpolate))
    for points in (np.array([0.5, 1.2]), np.array([[0.5, 1.2]]), (np.array([0.5]), np.array([1.2]))):
        close(ours(points), expected(points))
        assert np.shape(ours(points)) == np.shape(expected(points))
    line = [m.RegularGridInterpolator(lines[:1], values[:, 0]) for m in (ft.scipy.interpolate, scipy.interpolate)]
    for points in (np.array([0.5]), np.array([0.5, 1.2]), np.array([[0.5]])):
        assert np.shape(line[0](points)) == np.shape(line[1](points))
