"""Sums of arrays padded with zeros, side by side: they become concatenations, with the same values."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import backends, lax, nn
from functorch_like.compiler import joined_paddings

X = np.random.default_rng(0).normal(size=(6, 8)).astype(np.float32)


@pytest.fixture(autouse=True)
def _parts_of_any_size(monkeypatch):
    monkeypatch.setattr(joined_paddings, "_NEIGHBOURS", 1)


def operations(fun, *args):
    text = ft.jit(fun).lower(*args).as_text()
    return text.count("stablehlo.pad"), text.count("stablehlo.concatenate")


def padded(x, low, high, d=0):
    return lax.pad(x, np.float32(0), [(low, high, 0) if k == d else (0, 0, 0) for k in range(x.ndim)])


@pytest.mark.parametrize(
    ("fun", "counts"),
    [
        (lambda x: padded(x, 6, 0) + padded(2 * x, 0, 6), (0, 1)),
        (lambda x: padded(x, 0, 12) + padded(2 * x, 6, 6) + padded(3 * x, 12, 0), (0, 1)),
        (lambda x: padded(x, 0, 13) + padded(2 * x, 6, 7), (1, 1)),
        (lambda x: padded(x, 0, 8, 1) + padded(2 * x, 8, 0, 1), (0, 1)),
        (lambda x: padded(x, 0, 7) + padded(2 * x, 7, 0), (2, 0)),  # a gap
        (lambda x: padded(x, 0, 5) + padded(2 * x, 5, 0), (2, 0)),  # they overlap
        (lambda x: padded(x[:, :6], 0, 2, 1) + padded(x, 0, 0), (2, 0)),
        (lambda x: padded(padded(x, 0, 6), 0, 8, 1) + padded(padded(x, 6, 0), 8, 0, 1), (2, 1)),
        (lambda x: (lambda a, b: (a + b, a))(padded(x, 6, 0), padded(2 * x, 0, 6)), (2, 0)),  # read elsewhere
    ],
)
def test_values_and_operations(fun, counts):
    assert operations(fun, X) == counts
    with backends.flags({"cpu.fast_lowerings": "-joined_paddings"}):
        want = ft.jit(lambda x: fun(x))(X)
    for got, expected in zip(ft.tree.leaves(ft.jit(fun)(X)), ft.tree.leaves(want), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_another_value_than_zero_is_added():
    one = lambda x: lax.pad(x, np.float32(1), [(6, 0, 0), (0, 0, 0)]) + padded(x, 0, 6)
    assert operations(one, X) == (2, 0)
    np.testing.assert_allclose(ft.jit(one)(X), np.concatenate([X + 1, X]))


def test_short_parts_stay_as_they_are(monkeypatch):
    monkeypatch.setattr(joined_paddings, "_NEIGHBOURS", 16)
    halves = ft.grad(lambda x: (x[:, :4] * x[:, 4:]).sum())
    assert operations(halves, X) == (2, 0)
    np.testing.assert_array_equal(ft.jit(halves)(X), np.roll(X, 4, 1))


def test_gradients_of_slices():
    def gates(x):
        a, b, c, d = (x[:, 2 * k : 2 * k + 2] for k in range(4))
        return (fnp.sin(a) * b + fnp.tanh(c) * d).sum()

    got = ft.jit(ft.grad(gates))(X)
    a, b, c, d = np.split(X, 4, 1)
    want = np.concatenate([np.cos(a) * b, np.sin(a), d / np.cosh(c) ** 2, np.tanh(c)], 1)
    np.testing.assert_allclose(got, want, rtol=1e-5)
    assert operations(ft.grad(gates), X) == (0, 1)
    assert operations(ft.grad(lambda x: (nn.glu(x) ** 2).sum()), X)[0] == 0


@pytest.mark.parametrize("mode", ["edge", "wrap", "reflect", "symmetric"])
def test_margins_and_their_gradients_gather_nothing(mode):
    weights = np.random.default_rng(1).normal(size=(11, 9)).astype(np.float32)
    fun = lambda x: fnp.pad(x, ((2, 3), (0, 1)), mode=mode)
    np.testing.assert_array_equal(ft.jit(fun)(X), np.pad(X, ((2, 3), (0, 1)), mode=mode))
    grad = ft.grad(lambda x: (weights * fun(x)).sum())
    text = ft.jit(grad).lower(X).as_text()
    assert "gather" not in text and "scatter" not in text
    places = np.pad(np.arange(X.size).reshape(X.shape), ((2, 3), (0, 1)), mode=mode)
    want = np.bincount(places.ravel(), weights.ravel(), X.size).reshape(X.shape)
    np.testing.assert_allclose(ft.jit(grad)(X), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", ["edge", "wrap", "reflect", "symmetric"])
@pytest.mark.parametrize("widths", [(0, 0), (1, 0), (2, 9), (9, 9), (30, 1)])
def test_margins_of_any_width(mode, widths):
    for n in (1, 2, 5):
        np.testing.assert_array_equal(fnp.pad(np.arange(n), widths, mode=mode), np.pad(np.arange(n), widths, mode=mode))
