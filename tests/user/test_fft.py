"""fnp.fft: NumPy's results in double precision, for every norm, length and axis; derivatives are differences."""

import numpy as np
import pytest
from support.compare import agrees

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.errors import ArgumentError, DtypeError, ShapeError

RNG = np.random.default_rng(0)
REAL = RNG.normal(size=(3, 4, 5))
COMPLEX = REAL + 1j * RNG.normal(size=(3, 4, 5))
ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
TWO = ("fft2", "ifft2", "rfft2", "irfft2")
MANY = ("fftn", "ifftn", "rfftn", "irfftn")
NORMS = (None, "backward", "ortho", "forward")


def operand(name):
    return REAL if name.startswith(("rfft", "ihfft")) else COMPLEX


def check(name, *args, **kwargs):
    x = operand(name)
    got, want = getattr(fnp.fft, name)(x, *args, **kwargs), getattr(np.fft, name)(x, *args, **kwargs)
    assert got.shape == want.shape and got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ONE)
def test_one_axis(name, norm):
    for n in (None, 1, 3, 4, 7):
        for axis in (-1, 0, 1):
            check(name, n, axis, norm)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", TWO + MANY)
def test_several_axes(name, norm):
    check(name, norm=norm)
    check(name, s=(2, 6), axes=(0, 1), norm=norm)
    check(name, s=(7, 2), axes=(2, -3), norm=norm)
    check(name, axes=(1,), norm=norm)


@pytest.mark.parametrize("name", MANY)
def test_more_axes_than_a_row_takes(name):
    x = RNG.normal(size=(2, 3, 2, 3, 4)) + (0 if name == "rfftn" else 1j)
    want = getattr(np.fft, name)(x)
    np.testing.assert_allclose(getattr(fnp.fft, name)(x), want, rtol=1e-12, atol=1e-12)
    check(name, axes=(0, 1, 0))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.bool_, np.complex64])
def test_dtypes(dtype):
    x = (REAL > 0).astype(dtype)
    got = fnp.fft.fft(x)
    assert got.dtype == np.complex64
    np.testing.assert_allclose(got, np.fft.fft(x), rtol=1e-5, atol=1e-5)
    assert fnp.fft.irfft(x).dtype == np.float32
    if dtype is not np.complex64:
        assert fnp.fft.rfft(x).dtype == np.complex64


def test_zero_size():
    assert fnp.fft.rfft(np.zeros((0, 4))).shape == (0, 3)


@pytest.mark.parametrize("name", ONE + TWO + MANY)
def test_derivatives_are_differences(name):
    f = getattr(fnp.fft, name)
    x = operand(name)
    v = RNG.normal(size=x.shape) if x is REAL else RNG.normal(size=x.shape) + 1j * RNG.normal(size=x.shape)
    weights = np.asarray(RNG.normal(size=f(x).shape))

    def loss(x):
        y = f(x)
        return fnp.sum(weights * fnp.real(y) ** 2) + fnp.sum(fnp.imag(y) ** 3)

    h = 1e-5
    want = (float(loss(x + h * v)) - float(loss(x - h * v))) / (2 * h)
    _, pushed = ft.jvp(loss, (x,), (v,))
    np.testing.assert_allclose(float(pushed), want, rtol=1e-6)
    pulled = np.asarray(ft.jit(ft.grad(loss))(x))
    np.testing.assert_allclose(np.sum(pulled * v).real, want, rtol=1e-6)


@pytest.mark.parametrize("name", ONE)
def test_vmap_is_a_loop(name):
    f, x = getattr(fnp.fft, name), operand(name)
    for axis in (0, 1, 2):
        got = ft.vmap(f, in_axes=axis)(x)
        want = np.stack([np.asarray(f(row)) for row in np.moveaxis(x, axis, 0)])
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_frequencies_and_shifts():
    for n in (1, 4, 5):
        for name in ("fftfreq", "rfftfreq"):
            agrees(f"fft.{name}", n, 0.5)
    for name in ("fftshift", "ifftshift"):
        for axes in (None, 0, (0, 2), -1):
            agrees(f"fft.{name}", REAL, axes)


def test_a_real_signal_comes_back():
    for n in (4, 5):
        x = REAL[..., :n]
        np.testing.assert_allclose(fnp.fft.irfft(fnp.fft.rfft(x), n), x, rtol=1e-12, atol=1e-13)


def test_lax():
    x = np.float32(REAL)
    np.testing.assert_allclose(lax.fft(x, lax.FftType.RFFT, (4, 5)), np.fft.rfftn(x, axes=(1, 2)), rtol=2e-5, atol=2e-5)
    assert lax.fft(x, "rfft", 5).shape == (3, 4, 3)


def test_refusals():
    with pytest.raises(DtypeError, match="real"):
        fnp.fft.rfft(COMPLEX)
    with pytest.raises(ArgumentError, match="norm"):
        fnp.fft.fft(REAL, norm="other")
    with pytest.raises(ShapeError):
        fnp.fft.fft(REAL, n=0)
    with pytest.raises(ShapeError):
        fnp.fft.fft(REAL, axis=3)
    with pytest.raises(ShapeError, match="lengths"):
        lax.fft(REAL, "RFFT", (4,))
    with pytest.raises(ArgumentError, match="FFT"):
        lax.fft(REAL, "DCT", (5,))
