"""fnp: polynomials, polyfit, windows, convolutions, against NumPy in double precision."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.errors import ArgumentError, ConcretizationError, ShapeError

RNG = np.random.default_rng(0)
P, Q, X = RNG.normal(size=5), RNG.normal(size=3), RNG.normal(size=7)


def close(got, want, rtol=1e-9):
    np.testing.assert_allclose(np.asarray(got), want, rtol=rtol, atol=1e-10)


@pytest.mark.parametrize("name", ["polyadd", "polysub", "polymul", "polydiv", "polyval"])
def test_arithmetic(name):
    f, want = getattr(fnp, name), getattr(np, name)
    for a, b in ((P, Q), (Q, P), (P, Q[:1])):
        for got, expected in zip(*(x if isinstance(x, tuple) else (x,) for x in (f(a, b), want(a, b))), strict=True):
            expected = np.pad(expected, (got.size - expected.size, 0)) if name == "polydiv" else expected
            close(got, expected)
            assert got.dtype == np.float64
    ft.testing.check_jit(
        f,
        (
            P,
            Q,
        ),
    )
    ft.testing.check_vmap(
        f,
        (
            np.stack([P, P + 1]),
            np.stack([Q, Q + 1]),
        ),
    )
    ft.testing.check_grads(f, (P, Q))


def test_values_of_many_polynomials():
    coefficients = RNG.normal(size=(40, 1, 2))
    x = RNG.uniform(-1, 1, size=(3, 1))
    want = sum(c * x ** (39 - k) for k, c in enumerate(coefficients))
    close(fnp.polyval(coefficients, x), want)
    assert fnp.polyval(fnp.zeros(0), 2.0).tolist() == 0
    assert fnp.polyval([1, 2], 3).dtype == np.int32
    close(fnp.polyval(np.array([0.1, 0.2]), 0.3), np.polyval([0.1, 0.2], 0.3))


@pytest.mark.parametrize("m", [0, 1, 3, 6])
def test_derivatives_and_integrals(m):
    close(fnp.polyder(P, m), np.polyder(P, m) if m < 5 else [])
    assert fnp.polyder(fnp.asarray([-128, 127, 3, -1], "int8")).tolist() == [-384, 254, 3]
    close(fnp.polyint(P, m), np.polyint(P, m))
    close(fnp.polyint(P, m, k=0.3), np.polyint(P, m, k=[0.3] * m) if m else P)
    if m:
        close(fnp.polyint(P, m, k=X[:m]), np.polyint(P, m, k=X[:m]))
    with pytest.raises(ArgumentError, match="constants"):
        fnp.polyint(P, 2, k=X)


def test_zeros():
    close(np.sort_complex(fnp.roots(P)), np.sort_complex(np.roots(P)))
    padded = np.array([0.0, 0.0, 2.0, -3.0, 1.0, 0.0])
    close(np.sort_complex(fnp.roots(padded)), np.sort_complex(np.roots(padded)))
    got = np.asarray(ft.jit(lambda p: fnp.roots(p, strip_zeros=False))(padded))
    close(np.sort_complex(got[:3]), np.sort_complex(np.roots(padded)))
    assert np.isnan(got[3:]).all()
    assert fnp.roots([1.0]).shape == fnp.roots([0.0, 0.0]).shape == (0,)
    with pytest.raises(ConcretizationError, match="traced"):
        ft.jit(fnp.roots)(padded)
    close(fnp.poly(P), np.poly(P))
    matrix = RNG.normal(size=(4, 4))
    close(fnp.poly(matrix), np.poly(matrix))
    close(fnp.poly(np.array([1j, 2.0])), np.poly([1j, 2.0]))
    ft.testing.check_grads(lambda p: fnp.abs(fnp.roots(p, strip_zeros=False)), (P,))


def test_fits():
    x, y, w = np.linspace(-1, 2, 9), RNG.normal(size=(9, 2)), RNG.uniform(0.5, 1, 9)
    for data in (y, y[:, 0]):
        close(fnp.polyfit(x, data, 3), np.polyfit(x, data, 3))
        for cov in (True, "unscaled"):
            got, want = fnp.polyfit(x, data, 3, w=w, cov=cov), np.polyfit(x, data, 3, w=w, cov=cov)
            close(got[0], want[0])
            assert got[1].shape == want[1].shape
            close(got[1], want[1], rtol=1e-8)
        for got, want in zip(fnp.polyfit(x, data, 3, full=True), np.polyfit(x, data, 3, full=True), strict=True):
            close(got, want)
    ft.testing.check_grads(lambda y: fnp.polyfit(x, y, 2), (y[:, 0],))
    with pytest.raises(ShapeError, match="polyfit"):
        fnp.polyfit(x, y[:3], 1)


def test_trimming():
    a = np.array([0.0, 1.0, 2.0])
    close(fnp.polymul(a, a, trim_leading_zeros=True), np.polymul(a, a))
    close(fnp.polydiv(P, Q, trim_leading_zeros=True)[1], np.polydiv(P, Q)[1])


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning", "kaiser"])
def test_windows(name):
    more = (8.6,) if name == "kaiser" else ()
    for n in (0, 1, 2, 12):
        got = getattr(fnp, name)(n, *more)
        np.testing.assert_allclose(got, getattr(np, name)(n, *more), rtol=1e-5, atol=1e-6)
        assert got.dtype == np.float32


def test_kaiser_of_a_traced_and_a_large_number():
    close(ft.jit(lambda b: fnp.kaiser(9, b))(np.float64(300) * np.ones(())), np.kaiser(9, 300.0))
    slope = ft.grad(lambda b: fnp.kaiser(9, b)[2])(np.asarray(3.0))
    close(slope, (np.kaiser(9, 3 + 1e-6)[2] - np.kaiser(9, 3 - 1e-6)[2]) / 2e-6, rtol=1e-6)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions(mode):
    for f, want in ((fnp.convolve, np.convolve), (fnp.correlate, np.correlate)):
        for a, b in ((P, Q), (Q, P), (P, X), (X, Q[:2]), (Q[:2], X), (P + 1j * P[::-1], 1j * Q + P[:3])):
            close(f(a, b, mode), want(a, b, mode))
        assert f(np.arange(4), np.arange(2), mode).tolist() == want(np.arange(4), np.arange(2), mode).tolist()
        close(f(2.0, X, mode), want([2.0], X, mode))
        ft.testing.check_grads(lambda a, b, f=f: f(a, b, mode), (P, Q))
    ft.testing.check_vmap(
        lambda a, b: fnp.convolve(a, b, mode),
        (
            np.stack([P, P + 1]),
            np.stack([Q, Q + 1]),
        ),
    )
    with pytest.raises(ShapeError, match="size 0"):
        fnp.convolve(P[:0], Q, mode)


def test_convolutions_of_booleans_and_other_modes():
    a, b = np.array([True, False, True]), np.array([True, True])
    assert fnp.convolve(a, b).tolist() == np.convolve(a, b).tolist()
    with pytest.raises(ArgumentError, match="mode"):
        fnp.convolve(a, b, "circular")
