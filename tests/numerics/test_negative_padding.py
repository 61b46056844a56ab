"""Convolutions with negative padding, which removes elements: values and gradients against NumPy in float64."""

import itertools

import numpy as np
import pytest

import functorch_like as ft
from functorch_like import lax

RNG = np.random.default_rng(0)


def padded(x, padding, dilation):
    """Dilate x (batch, features, *spaces), then pad or cut it."""
    for axis, ((low, high), hole) in enumerate(zip(padding, dilation, strict=True), 2):
        x = np.moveaxis(x, axis, 0)
        line = np.zeros(((len(x) - 1) * hole + 1, *x.shape[1:]))
        line[::hole] = x
        line = np.pad(line, [(max(low, 0), max(high, 0)), *[(0, 0)] * (line.ndim - 1)])
        x = np.moveaxis(line[max(-low, 0) : len(line) - max(-high, 0)], 0, axis)
    return x


def reference(x, w, strides, padding, dilation, groups):
    """Convolve x (batch, features, *spaces) with w (outputs, features of a group, *spaces)."""
    x, size = padded(x, padding, dilation), w.shape[2:]
    counts = [max((n - k) // s + 1, 0) for n, k, s in zip(x.shape[2:], size, strides, strict=True)]
    out = np.zeros((x.shape[0], w.shape[0], *counts))
    fed, made = w.shape[1], w.shape[0] // groups
    for place in itertools.product(*map(range, counts)):
        window = x[(..., *(slice(p * s, p * s + k) for p, s, k in zip(place, strides, size, strict=True)))]
        for g in range(groups):
            outputs = slice(g * made, (g + 1) * made)
            axes = tuple(range(1, w.ndim))
            part = np.tensordot(window[:, g * fed : (g + 1) * fed], w[outputs], (axes, axes))
            out[(slice(None), outputs, *place)] = part
    return out


CASES = {  # shapes of both operands, strides, padding, dilation of the left operand, groups
    "low and high": ((2, 3, 7, 5), (4, 3, 1, 2), (3, 1), [(-3, 0), (-3, 1)], (1, 1), 1),
    "high only": ((2, 3, 7, 9), (4, 3, 2, 2), (1, 1), [(0, -2), (1, -3)], (1, 1), 1),
    "beside holes": ((2, 3, 6, 5), (4, 3, 2, 3), (1, 1), [(-3, 2), (2, -1)], (3, 2), 1),
    "all of a hole": ((1, 2, 5), (3, 2, 2), (1,), [(-1, -1)], (2,), 1),
    "all but padding": ((2, 2, 3), (3, 2, 2), (1,), [(-4, 5)], (1,), 1),
    "grouped": ((2, 4, 7, 6), (6, 2, 2, 2), (2, 1), [(-2, 1), (-1, -1)], (1, 1), 2),
    "depthwise": ((2, 4, 9), (4, 1, 3), (1,), [(-2, -1)], (1,), 4),
    "three dimensions": ((1, 2, 5, 4, 6), (2, 2, 2, 1, 2), (1, 1, 2), [(-1, 1), (0, -1), (-2, 0)], (1, 1, 1), 1),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("case", CASES)
def test_values_and_gradients(case, compiled, dtype):
    left, right, strides, padding, dilation, groups = CASES[case]
    x, w = (RNG.standard_normal(shape).astype(dtype) for shape in (left, right))

    def conv(x, w):
        return lax.conv_general_dilated(x, w, strides, padding, lhs_dilation=dilation, feature_group_count=groups)

    def both(x, w, seed):
        out, pull = ft.vjp(conv, x, w)
        return out, *pull(seed)

    def expected(x, w):
        return reference(x, w, strides, padding, dilation, groups)

    x64, w64 = x.astype(float), w.astype(float)
    out = expected(x64, w64)
    seed = RNG.standard_normal(out.shape).astype(dtype)
    got = (ft.jit(both) if compiled else both)(x, w, seed)

    # The function is linear in each operand, so one-hot operands give the gradients exactly.
    def gradient(like, run):
        ones = np.eye(like.size).reshape(like.size, *like.shape)
        return np.array([np.sum(run(one) * seed) for one in ones]).reshape(like.shape)

    wanted = out, gradient(x64, lambda one: expected(one, w64)), gradient(w64, lambda one: expected(x64, one))
    tolerance = 1e-4 if dtype == np.float32 else 1e-11
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_gradients_whose_convolution_cuts(compiled):
    """If the padding is larger than the kernel, the gradient is a convolution with negative padding."""
    x = RNG.standard_normal((4, 3, 5, 4)).astype(np.float32)
    w = RNG.standard_normal((2, 3, 1, 2)).astype(np.float32)
    padding, dilation = [(2, 0), (2, 2)], (1, 2)

    def conv(x):
        return lax.conv_general_dilated(x, w, (1, 1), padding, lhs_dilation=dilation)

    def pulled(x, seed):
        return ft.vjp(conv, x)[1](seed)[0]

    out = reference(x.astype(float), w.astype(float), (1, 1), padding, dilation, 1)
    seed = RNG.standard_normal(out.shape).astype(np.float32)
    ones = np.eye(x.size).reshape(x.size, *x.shape)
    wanted = [np.sum(reference(one, w.astype(float), (1, 1), padding, dilation, 1) * seed) for one in ones]
    got = (ft.jit(pulled) if compiled else pulled)(x, seed)
    np.testing.assert_allclose(got, np.reshape(wanted, x.shape), rtol=1e-4, atol=1e-4)
