"""Residuals of attention: logarithms of the sums of exponentials of the logits, against NumPy in float64."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import nn
from functorch_like.testing import check_grads

RNG = np.random.default_rng(0)
Q = RNG.normal(size=(2, 3, 4, 5)).astype(np.float32)
K, V = (RNG.normal(size=(2, 6, 2, 5)).astype(np.float32) for _ in range(2))
BIAS = RNG.normal(size=(1, 1, 3, 6)).astype(np.float32)
MASK = np.ones((2, 1, 3, 6), bool)
MASK[0, 0, 1, 3:] = MASK[1, 0, 2] = False


def expected(bias=0.0, mask=True, causal=False):
    logits = np.einsum("btnh,bsnh->bnts", Q.astype(np.float64), np.repeat(K, 2, axis=2)) / np.sqrt(5) + bias
    allowed = np.broadcast_to(mask, logits.shape) & (np.tri(3, 6, dtype=bool) | (not causal))
    with np.errstate(divide="ignore"):
        return np.log(np.sum(np.exp(logits), axis=3, where=allowed)).transpose(0, 2, 1)


@pytest.mark.parametrize("implementation", [None, "math"])
def test_residuals(implementation):
    for options, values in (
        ({}, expected()),
        ({"bias": BIAS, "is_causal": True}, expected(BIAS, causal=True)),
        ({"mask": MASK}, expected(mask=MASK)),
    ):
        out, residual = nn.dot_product_attention(
            Q, K, V, implementation=implementation, return_residual=True, **options
        )
        np.testing.assert_allclose(out, nn.dot_product_attention(Q, K, V, **options), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(residual, values, rtol=1e-5, atol=1e-5)


def test_one_sequence_and_narrow_floats():
    one = lambda dtype: nn.dot_product_attention(*(fnp.asarray(x[0], dtype) for x in (Q, K, V)), return_residual=True)
    for dtype, rtol in (("float32", 1e-5), ("bfloat16", 2e-2), ("float16", 3e-3)):
        out, residual = one(dtype)
        assert out.shape == (3, 4, 5)
        assert residual.dtype == out.dtype == fnp.dtype(dtype)
        np.testing.assert_allclose(residual.astype("float32"), expected()[0], rtol=rtol, atol=rtol)


def test_derivatives_and_maps():
    f = lambda q, k: nn.dot_product_attention(q, k, V, BIAS, is_causal=True, return_residual=True)[1]
    check_grads(f, (Q, K), 1, rtol=1e-2, atol=1e-2)
    single = lambda q, k: nn.dot_product_attention(q, k, V[0], return_residual=True)[1]
    np.testing.assert_allclose(ft.vmap(single)(Q, K), expected(), rtol=1e-5, atol=1e-5)
