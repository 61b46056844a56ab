"""Warnings about arguments for which NumPy warns too, and dtypes of results that SciPy gives."""

import warnings

import numpy as np
import pytest
import scipy.linalg

import functorch_like as ft
import functorch_like.numpy as fnp


@pytest.mark.parametrize("x", [[1.0, 2.0], [1.0, 1.0, 1.0, 2.0, 2.0]])
def test_underdetermined_fits_warn(x):
    x = np.array(x)
    y = 2 * x
    for m in (np, fnp):
        with pytest.warns(np.exceptions.RankWarning, match="olyfit") as told:
            c = m.polyfit(x, y, 3)
        assert told[0].filename == __file__
        np.testing.assert_allclose(np.polyval(np.asarray(c), x), y, rtol=1e-6)
    assert "lower degree" in str(told[0].message)


def test_too_few_points_warn_under_jit():
    x = np.array([1.0, 2.0])
    with pytest.warns(np.exceptions.RankWarning, match="2 points"):
        ft.jit(lambda x: fnp.polyfit(x, x, 3))(x)


def test_determined_fits_do_not_warn():
    x = np.arange(5.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fnp.polyfit(x, x, 2)
        fnp.polyfit(x, x, 4)
        fnp.polyfit(x[:2], x[:2], 3, full=True)
        ft.jit(lambda x: fnp.polyfit(x, x, 2))(x)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_the_permutation_of_lu_is_real(dtype):
    rng = np.random.default_rng(0)
    a = (rng.normal(size=(4, 3)) + (1j * rng.normal(size=(4, 3)) if dtype[0] == "c" else 0)).astype(dtype)
    expected, result = scipy.linalg.lu(a), ft.scipy.linalg.lu(a)
    for e, r in zip(expected, result, strict=True):
        assert r.dtype == e.dtype
        np.testing.assert_allclose(r, e, atol=1e-5)
    joined = ft.scipy.linalg.lu(a, permute_l=True)
    assert joined[0].dtype == dtype
    np.testing.assert_allclose(joined[0] @ joined[1], a, atol=1e-5)
