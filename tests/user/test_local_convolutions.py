"""lax: patches, convolutions with a kernel for each position, and functions applied to selected elements."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.errors import ArgumentError, ShapeError, UnsupportedError
from functorch_like.testing import check_grads

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 3, 6, 5))
LAST = ("NHWC", "HWIO", "NHWC")
SETTINGS = [
    ((2, 3), (1, 1), "VALID", None, None),
    ((3, 2), (2, 1), "SAME", None, None),
    ((2, 2), (1, 2), "SAME_LOWER", None, (2, 1)),
    ((2, 2), (2, 1), ((1, 0), (2, 1)), (1, 2), (2, 1)),
]


@pytest.mark.parametrize(("window", "strides", "padding", "stretch", "holes"), SETTINGS)
def test_a_convolution_is_a_product_with_patches(window, strides, padding, stretch, holes):
    kernel = RNG.normal(size=(4, 3, *window))
    want = lax.conv_general_dilated(X, kernel, strides, padding, stretch, holes)
    patches = lax.conv_general_dilated_patches(X, window, strides, padding, stretch, holes)
    got = np.einsum("oi,nihw->nohw", kernel.reshape(4, -1), patches)
    np.testing.assert_allclose(got, want, atol=1e-12)
    turned = lax.conv_general_dilated_patches(X.transpose(0, 2, 3, 1), window, strides, padding, stretch, holes, LAST)
    np.testing.assert_array_equal(np.moveaxis(np.asarray(turned), 3, 1), patches)


@pytest.mark.parametrize(("window", "stride", "hole"), [(17, 1, 1), (40, 3, 2), (20, 5, 1), (97, 1, 1)])
def test_long_windows(window, stride, hole):
    def seen(x):
        views = np.lib.stride_tricks.sliding_window_view(x, (window - 1) * hole + 1, axis=2)[:, :, ::stride, ::hole]
        return np.moveaxis(views, 3, 2).reshape(2, 3 * window, -1)

    x, t = RNG.normal(size=(2, 2, 3, 120))
    patches = lambda x: lax.conv_general_dilated_patches(x, (window,), (stride,), "VALID", None, (hole,))
    got, pull = ft.vjp(patches, x)
    np.testing.assert_array_equal(got, seen(x))
    ct = RNG.normal(size=got.shape)
    np.testing.assert_allclose(np.sum(pull(ct)[0] * t), np.sum(ct * seen(t)), rtol=1e-12)


def test_patches_are_copied():
    x = np.array([[[1.0, np.nan, np.inf, 4.0]]], np.float32)
    got = np.asarray(lax.conv_general_dilated_patches(x, (2,), (2,), "VALID"))
    np.testing.assert_array_equal(got, [[[1, np.inf], [np.nan, 4]]])
    whole = lax.conv_general_dilated_patches(
        np.arange(4).reshape(1, 1, 4), (2,), (1,), "VALID", None, None, None, None, "float32"
    )
    assert whole.dtype == np.float32 and whole.shape == (1, 2, 3)


@pytest.mark.parametrize(("window", "strides", "padding", "stretch", "holes"), SETTINGS)
def test_each_place_has_a_kernel(window, strides, padding, stretch, holes):
    patches = np.asarray(lax.conv_general_dilated_patches(X, window, strides, padding, stretch, holes))
    kernels = RNG.normal(size=(4, *patches.shape[1:]))
    got = lax.conv_general_dilated_local(X, kernels, strides, padding, window, stretch, holes)
    want = np.zeros((2, 4, *patches.shape[2:]))
    for h, w in np.ndindex(*patches.shape[2:]):
        want[:, :, h, w] = patches[:, :, h, w] @ kernels[:, :, h, w].T
    np.testing.assert_allclose(got, want, atol=1e-12)
    turned = lax.conv_general_dilated_local(
        X.transpose(0, 2, 3, 1), kernels.transpose(2, 3, 1, 0), strides, padding, window, stretch, holes, LAST
    )
    np.testing.assert_allclose(turned, want.transpose(0, 2, 3, 1), atol=1e-12)


def test_derivatives_of_local_convolutions():
    x, kernels = RNG.normal(size=(1, 2, 4)), RNG.normal(size=(2, 4, 3))
    f = lambda x, k: fnp.tanh(lax.conv_general_dilated_local(x, k, (1,), "VALID", (2,)))
    check_grads(f, (x, kernels), order=2)
    batch = np.stack([x, 2 * x])
    np.testing.assert_allclose(ft.vmap(f, (0, None))(batch, kernels), [f(b, kernels) for b in batch], atol=1e-12)


def test_local_convolutions_name_what_does_not_fit():
    with pytest.raises(ShapeError, match="input features and positions"):
        lax.conv_general_dilated_local(X, np.ones((4, 12, 5, 5)), (1, 1), "VALID", (2, 2))
    with pytest.raises(ArgumentError, match="padding"):
        lax.conv_general_dilated_patches(X, (2, 2), (1, 1), "FULL")
    with pytest.raises(ShapeError, match="window_strides"):
        lax.conv_general_dilated_patches(X, (2, 2), (1,), "VALID")


# ------------------------------------------------------------------------------------------------------- scatter_apply
POINTS, ROWS = lax.ScatterDimensionNumbers((), (0,), (0,)), lax.ScatterDimensionNumbers((1,), (0,), (0,))


def test_a_function_is_applied_as_often_as_an_index_occurs():
    places = np.array([[3], [0], [3], [9]])
    f = lambda x: lax.scatter_apply(x, places, lambda v: v * v + 1, POINTS, update_shape=(4,))
    x = np.arange(4.0)
    want = np.array([1, 1, 2, 101.0])
    for wrap in (lambda f: f, ft.jit):
        np.testing.assert_array_equal(wrap(f)(x), want)
    np.testing.assert_array_equal(ft.vmap(f)(np.stack([x, x])), [want, want])
    clipped = lax.scatter_apply(x, places, lambda v: v + 1, POINTS, update_shape=(4,), mode="clip")
    np.testing.assert_array_equal(clipped, [1, 1, 2, 6])


def test_rows_are_applied_to_and_have_derivatives_where_indices_differ():
    x, places = RNG.normal(size=(4, 3)), np.array([[2], [0]])
    f = lambda x: lax.scatter_apply(x, places, fnp.sin, ROWS, update_shape=(2, 3), unique_indices=True)
    want = x.copy()
    want[[2, 0]] = np.sin(want[[2, 0]])
    np.testing.assert_allclose(f(x), want, atol=1e-12)
    check_grads(f, (x,), order=2)
    with pytest.raises(UnsupportedError, match="unique_indices=True"):
        ft.grad(lambda x: lax.scatter_apply(x, places, fnp.sin, ROWS, update_shape=(2, 3)).sum())(x)


def test_what_scatter_apply_refuses():
    x, places = np.ones(3, np.float32), np.zeros((1, 1), np.int32)
    with pytest.raises(ArgumentError, match="scalar of the operand's dtype"):
        lax.scatter_apply(x, places, lambda v: v > 0, POINTS, update_shape=(1,))
    with pytest.raises(ShapeError, match="updates"):
        lax.scatter_apply(x, places, lambda v: v, POINTS, update_shape=(2,))
    with pytest.raises(UnsupportedError, match="apply"):
        ft.jit(lambda w: lax.scatter_apply(x, places, lambda v: v * w, POINTS, update_shape=(1,)))(2.0)
