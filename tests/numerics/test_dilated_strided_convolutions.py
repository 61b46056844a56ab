"""Convolutions with a dilated operand and strided windows, by various factors, against a loop in NumPy."""

import numpy as np
import pytest

import functorch_like as ft
from functorch_like import lax

RNG = np.random.default_rng(0)


def reference(x, w, stride, dilation):
    """Convolve x (batch, features, length) with w (outputs, features, width)."""
    n = x.shape[2]
    line = np.zeros((*x.shape[:2], (n - 1) * dilation + 1))
    line[:, :, ::dilation] = x
    starts = range(0, line.shape[2] - w.shape[2] + 1, stride)
    return np.stack([np.einsum("bfk,ofk->bo", line[:, :, s : s + w.shape[2]], w) for s in starts], axis=-1)


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize(("stride", "dilation"), [(3, 2), (2, 3), (2, 2), (1, 2), (2, 1)])
def test_in_one_dimension(stride, dilation, width):
    x, w = RNG.standard_normal((3, 4, 16)), RNG.standard_normal((2, 4, width))
    run = ft.jit(
        lambda x, w: lax.conv_general_dilated(
            x, w, (stride,), [(0, 0)], lhs_dilation=(dilation,), dimension_numbers=("NCW", "OIW", "NCW")
        )
    )
    np.testing.assert_allclose(run(x, w), reference(x, w, stride, dilation), rtol=1e-12, atol=1e-12)
