"""GPU lowerings of convolutions that cuDNN does not support; they run on CPUs, too."""

import numpy as np
import pytest
from support.gpu_programs import executed

from functorch_like.core import TABLE
from functorch_like.primitives.contractions.convolution_cpu_table import conv_sample

CONV = TABLE["conv_general_dilated"]


def run(x, k, **params):
    """Return the result of the program lowered for GPUs."""
    sample = conv_sample(x.shape, k.shape, dtype=x.dtype.name, **params)
    return executed(lambda x, k: CONV(x, k, **sample.params), x, k)[0]


def expected(x, k, stride=1, groups=1):
    """Compute the convolution by its definition, in NumPy; integers wrap as in C."""
    (n, features, width), (outputs, _, size) = x.shape, k.shape
    out = np.zeros((n, outputs, (width - size) // stride + 1), x.dtype)
    share, own = outputs // groups, features // groups
    for o in range(outputs):
        g = o // share
        for i in range(out.shape[2]):
            window = x[:, g * own : (g + 1) * own, i * stride : i * stride + size]
            out[:, o, i] = np.sum(window * k[o], axis=(1, 2), dtype=x.dtype)
    return out


INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("groups", [1, 2])
def test_integers_are_exact_and_wrap(dtype, groups):
    rng, info = np.random.default_rng(0), np.iinfo(dtype)
    draw = lambda *shape: rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    x, k = draw(2, 4, 7), draw(6, 4 // groups, 3)
    x[0, 0, :2], k[0, 0, :2] = (info.min, info.max), (info.min, info.max)
    found = run(x, k, window_strides=(2,), feature_group_count=groups)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, expected(x, k, 2, groups))


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_numbers(dtype):
    rng = np.random.default_rng(0)
    draw = lambda *shape: (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    x, k = draw(2, 4, 7), draw(6, 2, 3)
    found = run(x, k, feature_group_count=2)
    wide = expected(x.astype(complex), k.astype(complex), 1, 2)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, wide, rtol=0, atol=40 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [np.int32, np.complex64])
def test_nothing_to_convolve(dtype):
    found = run(np.zeros((0, 3, 5), dtype), np.zeros((4, 3, 2), dtype))
    assert found.shape == (0, 4, 4) and found.dtype == dtype
    assert not run(np.zeros((2, 0, 5), dtype), np.zeros((4, 0, 2), dtype)).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_are_left_to_cudnn(dtype):
    rng = np.random.default_rng(0)
    x, k = rng.standard_normal((2, 4, 7)).astype(dtype), rng.standard_normal((6, 4, 3)).astype(dtype)
    np.testing.assert_allclose(run(x, k), expected(x.astype(float), k.astype(float)), rtol=1e-4, atol=1e-5)
