"""Programs lowered for GPUs: what their modules say, and their results on a CPU, which runs most of them, too."""

import numpy as np
import pytest
from support.gpu_programs import executed, text

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.backends.xla import arrays
from functorch_like.sharding import SingleDeviceSharding

SPECIAL = np.array([1, np.nan, -0.0, 0.0, -np.inf, -np.nan, np.inf, -2, 0.0, -0.0, np.nan], np.float32)


def test_callbacks_take_and_give_row_major_arrays():
    f = lambda x: ft.pure_callback(np.linalg.inv, ft.ShapeDtypeStruct((2, 3, 3), "float64"), x.transpose(0, 2, 1))
    shown = text(f, np.ones((2, 3, 3)))
    row_major = "[dense<[2, 1, 0]> : tensor<3xindex>]"
    assert f"operand_layouts = {row_major}" in shown and f"result_layouts = {row_major}" in shown


def test_a_result_in_the_memory_of_the_host_is_brought_back():
    host = SingleDeviceSharding(ft.devices()[0], memory_kind="pinned_host")
    direct = lambda x: (ft.device_put(x * 2, host), x + 1)
    called = lambda x: ft.jit(lambda y: ft.device_put(y, host))(x) * 1 + ft.jit(lambda y: ft.device_put(y, host))(x)
    returned = lambda x: ft.jit(lambda y: ft.device_put(y, host))(x)
    for f, count in ((direct, 1), (called, 0), (returned, 1)):
        shown = text(f, np.ones(3, np.float32))
        assert shown.count('_xla_buffer_placement = "device"') == count


def test_floats_are_compared_as_they_are():
    """XLA:GPU takes the radix sort of CUB for this comparison, and for none with more in it."""
    shown = text(fnp.sort, SPECIAL)
    assert "compare LT, %arg1, %arg2, TOTALORDER" in shown.replace("  ", " ")


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int32"])
def test_sorting(dtype):
    x = np.asarray(fnp.asarray(SPECIAL).astype(dtype)) if dtype != "int32" else np.array([3, -1, 2, 2, -7], np.int32)
    (found,) = executed(lambda x: fnp.sort(x), x)
    wide = np.asarray(x, np.float64)
    np.testing.assert_array_equal(np.asarray(found, np.float64), np.sort(wide))
    zeros = np.asarray(found, np.float64)[np.asarray(found, np.float64) == 0]
    assert (np.diff(np.signbit(zeros).astype(int)) <= 0).all(), "-0 comes before +0"
    (places,) = executed(lambda x: fnp.argsort(x, stable=True), x)
    np.testing.assert_array_equal(places, np.argsort(wide, stable=True))


@pytest.mark.parametrize(
    ("lengths", "kernel", "strides", "dilation", "padding"),
    [
        ((3, 1), (2, 5), (1, 2), (2, 2), ((0, 0), (3, 5))),  # XLA:GPU of jaxlib 0.11 aborts
        ((4,), (3,), (2,), (3,), ((0, 0),)),
        ((5,), (3,), (2,), (3,), ((0, 0),)),
        ((3, 2, 1), (2, 2, 4), (1, 1, 1), (2, 2, 1), ((0, 0), (0, 0), (3, 3))),
        ((2, 3), (2, 2), (1, 1), (2, 2), ((0, 0), (0, 0))),  # in the first dimension, groups
    ],
)
def test_windows_that_look_like_groups(lengths, kernel, strides, dilation, padding):
    rng = np.random.default_rng(0)
    x, k = rng.standard_normal((2, 3, *lengths)), rng.standard_normal((4, 3, *kernel))
    f = lambda x, k: lax.conv_general_dilated(x, k, strides, padding, lhs_dilation=dilation)
    (found,) = executed(f, x, k)
    np.testing.assert_allclose(found, convolved(x, k, strides, dilation, padding), rtol=1e-12, atol=1e-12)


def convolved(x, k, strides, dilation, padding):
    """Compute a convolution by its definition, in NumPy."""
    spread = np.zeros((*x.shape[:2], *((n - 1) * d + 1 for n, d in zip(x.shape[2:], dilation, strict=True))))
    spread[(..., *(slice(None, None, d) for d in dilation))] = x
    spread = np.pad(spread, ((0, 0), (0, 0), *padding))
    space = tuple(range(2, x.ndim))
    windows = np.lib.stride_tricks.sliding_window_view(spread, k.shape[2:], space)
    windows = windows[(slice(None), slice(None), *(slice(None, None, s) for s in strides))]
    axes = [1, *range(x.ndim, windows.ndim)]
    return np.moveaxis(np.tensordot(windows, k, (axes, [1, *space])), -1, 1)


def test_nine_products_are_taken_in_float32():
    a = np.ones((4, 4), np.float32)
    shown = text(lambda a: lax.dot(a, a, precision="BF16_BF16_F32_X9"), a)
    assert "lhs_precision_type = f32" in shown and "num_primitive_operations = 1," in shown
    shown = text(lambda a: lax.dot(a, a, precision="BF16_BF16_F32_X9"), fnp.asarray(a).astype("bfloat16"))
    assert "lhs_precision_type = bf16" in shown and "num_primitive_operations = 1," in shown


def test_bytes_of_arrays():
    for dtype in ("float32", "bfloat16", "bool"):  # of bfloat16 C++ gives no view
        x = fnp.asarray(np.arange(6).reshape(2, 3)).astype(dtype)
        assert arrays.content(x) == np.asarray(x).tobytes()
