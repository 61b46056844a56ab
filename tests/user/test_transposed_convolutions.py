"""conv_transpose: the derivative of a convolution by its operand, sizes, layouts, errors."""

import numpy as np
import pytest

import functorch_like as ft
from functorch_like import lax

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("strides", [(1, 1), (2, 3)])
def test_with_a_transposed_kernel_it_is_a_derivative(padding, strides):
    kernel, size = RNG.normal(size=(3, 2, 4, 5)), (6, 6)
    forward = lambda x: lax.conv_general_dilated(
        x, kernel, strides, padding, dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    y, pull = ft.vjp(forward, RNG.normal(size=(2, *size, 4)))
    ct = RNG.normal(size=y.shape)
    made = lax.conv_transpose(ct, kernel, strides, padding, transpose_kernel=True)
    (expected,) = pull(ct)
    # The sizes may differ, because the forward convolution ignores elements left over at the end of a dimension.
    over = tuple(slice(min(a, b)) for a, b in zip(made.shape, expected.shape, strict=True))
    np.testing.assert_allclose(made[over], expected[over], rtol=1e-9, atol=1e-12)


def test_it_is_a_sum_of_kernels_put_side_by_side():
    x, kernel = RNG.normal(size=(1, 3, 2)), RNG.normal(size=(4, 2, 5))
    spread = np.zeros((1, 3 + 2 * 2 + 6, 2))
    spread[:, 3:10:3] = x
    expected = np.stack([np.einsum("ki,kio->o", spread[0, j : j + 4], kernel) for j in range(10)])[None]
    np.testing.assert_allclose(lax.conv_transpose(x, kernel, (3,), [(3, 3)]), expected, rtol=1e-9)
    np.testing.assert_allclose(lax.conv_transpose(x, kernel, (3,), "VALID"), expected, rtol=1e-9)
    same = lax.conv_transpose(x, kernel, (3,), "SAME")
    assert same.shape == (1, 9, 5)
    turned = lax.conv_transpose(
        x.transpose(0, 2, 1), kernel.transpose(2, 1, 0), (3,), "SAME", dimension_numbers=("NCH", "OIH", "NCH")
    )
    np.testing.assert_allclose(turned, same.transpose(0, 2, 1), rtol=1e-9)


def laid_down(x, kernel, stride, dilation):
    """Return the transposed convolution of x (n, i) with a kernel (k, i, o) by its definition, without padding."""
    n, k = len(x), len(kernel)
    out = np.zeros(((n - 1) * stride + (k - 1) * dilation + 1, kernel.shape[2]))
    for a in range(n):
        for b in range(k):
            out[a * stride + b * dilation] += x[a] @ kernel[b]
    return out


@pytest.mark.parametrize(("n", "k", "stride", "dilation"), [(4, 3, 2, 1), (3, 2, 3, 1), (5, 3, 1, 2), (2, 1, 4, 1)])
def test_conv_transpose_lays_the_kernel_down(n, k, stride, dilation):
    x, kernel = RNG.standard_normal((n, 2)), RNG.standard_normal((k, 2, 3))
    reach = (k - 1) * dilation
    # conv_transpose correlates: it lays the kernel down from its end, without reversing it first.
    want = laid_down(x, kernel[::-1], stride, dilation)
    full = lax.conv_transpose(x[None], kernel, (stride,), [(reach, reach)], (dilation,))[0]
    np.testing.assert_allclose(full, want, atol=1e-12)
    cut = [(1, 0)] if reach else [(0, 0)]
    same = lax.conv_transpose(x[None], kernel, (stride,), cut, (dilation,), use_consistent_padding=True)[0]
    np.testing.assert_allclose(same, want[cut[0][0] :], atol=1e-12)
    numbers = ("NHC", "HIO", "NHC")
    if dilation == 1:
        for padding in ("SAME", "VALID"):
            got = lax.conv_transpose(x[None], kernel, (stride,), padding)
            assert got.shape == lax.conv_transpose_shape_tuple((1, n, 2), (k, 2, 3), (stride,), padding, numbers)
            assert got.shape[1] == n * stride + (max(k - stride, 0) if padding == "VALID" else 0)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("k", "stride"), [(3, 2), (4, 2), (2, 3), (5, 1), (1, 2)])
def test_conv_transpose_is_the_transpose(padding, k, stride):
    n = 4
    kernel = RNG.standard_normal((k, k, 3, 2))
    y = RNG.standard_normal((2, n, n, 2))
    size = n * stride + (max(k - stride, 0) if padding == "VALID" else 0)
    forward = lambda x: lax.conv_general_dilated(
        x, kernel, (stride, stride), padding, dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    (want,) = ft.linear_transpose(forward, ft.ShapeDtypeStruct((2, size, size, 3), "float64"))(y)
    got = lax.conv_transpose(y, kernel, (stride, stride), padding, transpose_kernel=True)
    np.testing.assert_allclose(got, want, atol=1e-12)


def test_errors():
    x, kernel = np.ones((1, 5, 2)), np.ones((3, 2, 2))
    with pytest.raises(ft.errors.ArgumentError, match=r"(?s)'SOME' is unknown.*use 'SAME'"):
        lax.conv_transpose(x, kernel, (2,), "SOME")
    with pytest.raises(ft.errors.ArgumentError, match=r"(?s)\(0,\).*give 1 positive strides"):
        lax.conv_transpose(x, kernel, (0,), "SAME")
    with pytest.raises(ft.errors.ArgumentError, match="1 spatial dimensions"):
        lax.conv_transpose(x, kernel, (2, 2), "SAME")
    with pytest.raises(ft.errors.ArgumentError, match="not all positive"):  # was a division by zero
        lax.conv_general_dilated(np.ones((1, 2, 5)), np.ones((3, 2, 3)), (0,), "SAME")
    with pytest.raises(ft.errors.ArgumentError, match="1 pairs"):
        lax.conv_transpose(x, kernel, (1,), [(1, 1), (1, 1)])
