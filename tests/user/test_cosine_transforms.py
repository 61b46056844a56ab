"""Discrete cosine transforms of scipy.fft: complex numbers, axes, small floats; lengths of fnp.fft; against SciPy."""

import numpy as np
import pytest
import scipy.fft as expected

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.errors import ArgumentError, ShapeError

X = np.random.default_rng(0).normal(size=(4, 6))
Z = X + 1j * X[::-1]


@pytest.mark.parametrize("name", ["dct", "idct", "dctn", "idctn"])
def test_transforms_of_complex_numbers_and_of_small_floats(name):
    f, exact = getattr(ft.scipy.fft, name), getattr(expected, name)
    for type in (1, 2, 3, 4):
        np.testing.assert_allclose(f(Z, type), exact(Z, type), rtol=1e-10, atol=1e-12)
        slope = ft.jvp(lambda z, t=type: f(z, t), (Z,), (Z,))[1]  # it is linear
        np.testing.assert_allclose(slope, exact(Z, type), rtol=1e-10, atol=1e-12)
    half = X.astype(np.float16)
    assert f(half).dtype == exact(half).dtype == np.float32
    np.testing.assert_allclose(f(half), exact(half.astype(float)), rtol=1e-5, atol=1e-5)


def test_one_axis_of_several():
    for name in ("dctn", "idctn"):
        f, exact = getattr(ft.scipy.fft, name), getattr(expected, name)
        np.testing.assert_allclose(f(X, axes=0), exact(X, axes=0), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(f(X, s=3), exact(X, s=3), rtol=1e-10, atol=1e-12)
        with pytest.raises(ArgumentError, match="once"):
            f(X, axes=(0, 0))


def test_lengths_are_positive():
    for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
        for n in (0, -1):
            with pytest.raises(ShapeError, match="points"):
                getattr(fnp.fft, name)(X, n)
    np.testing.assert_allclose(fnp.fft.fftn(X, (-1, 4), (0, 1)), np.fft.fftn(X, (4, 4), (0, 1)), rtol=1e-10, atol=1e-10)
