"""Floats of 8 and 4 bits in each tier: conversions round once, and arithmetic is that of float32, rounded."""

import ml_dtypes
import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import backends

NARROW = (
    "float4_e2m1fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e5m2", "float8_e5m2fnuz", "float16", "bfloat16",
)  # fmt: skip

#: Without bfloat16 of float64, which XLA and ml_dtypes round to float32 first.
CASES = [(name, of) for name in NARROW for of in ("float32", "float64") if (name, of) != ("bfloat16", "float64")]


def neighbours(dtype):
    """Return the finite numbers of a dtype, in order, without subnormal bfloat16, which XLA counts as 0."""
    unsigned = np.uint8 if dtype.itemsize == 1 else np.uint16
    count = 16 if dtype == ml_dtypes.float4_e2m1fn else 256**dtype.itemsize
    with np.errstate(invalid="ignore"):
        numbers = np.arange(count).astype(unsigned).view(dtype).astype(float)
    numbers = np.unique(numbers[np.isfinite(numbers)])
    return numbers if dtype != ml_dtypes.bfloat16 else numbers[np.abs(numbers) > 2.0**-125]


@pytest.mark.parametrize("tiers", ["quick", "off"])
@pytest.mark.parametrize(("name", "source"), CASES)
def test_they_round_once(name, source, tiers):
    numbers = neighbours(np.dtype(getattr(ml_dtypes, name, name)))
    step = 1e-6 if source == "float32" else 1e-13
    middle = (numbers[1:] + numbers[:-1]) / 2
    middle = middle[np.abs(middle) > 1e-37]
    above = np.nextafter(middle, np.inf).astype(source) if source == "float64" else middle.astype(source)
    above = (above * (1 + step * np.sign(above))).astype(source)
    below = (middle * (1 - step * np.sign(middle))).astype(source)
    x = np.concatenate([above, below])
    wanted = np.searchsorted(numbers, x.astype(float))
    left, right = numbers[wanted - 1], numbers[wanted]
    wanted = np.where(x - left < right - x, left, right)
    with backends.compilation.flags(tiers=tiers):
        np.testing.assert_array_equal(ft.jit(lambda x: x.astype(name))(x).astype("float64"), wanted)
        np.testing.assert_array_equal(fnp.asarray(x).astype(name).astype("float64"), wanted)


@pytest.mark.parametrize("tiers", ["quick", "off"])
@pytest.mark.parametrize("name", NARROW[:-2])
def test_arithmetic(name, tiers):
    dtype = np.dtype(getattr(ml_dtypes, name))
    with np.errstate(invalid="ignore"):
        numbers = np.arange(16 if name.startswith("float4") else 256).astype(np.uint8).view(dtype)
        numbers = numbers[np.isfinite(numbers.astype(float))]
    x, y = (side.ravel() for side in np.meshgrid(numbers, numbers))
    for operation in ("add", "subtract", "multiply", "divide", "maximum"):
        with np.errstate(all="ignore"):
            wanted = getattr(np, operation)(x.astype(np.float32), y.astype(np.float32)).astype(dtype)
        with backends.compilation.flags(tiers=tiers):
            got = ft.jit(getattr(fnp, operation))(x, y)
        np.testing.assert_array_equal(np.asarray(got).astype(float), wanted.astype(float), err_msg=operation)


@pytest.mark.parametrize("tiers", ["quick", "off"])
@pytest.mark.parametrize("name", NARROW[:-2])
def test_integers_of_them(name, tiers):
    dtype = np.dtype(getattr(ml_dtypes, name))
    with np.errstate(invalid="ignore"):
        numbers = np.arange(16 if name.startswith("float4") else 256).astype(np.uint8).view(dtype)
        exact = numbers.astype(float)
    limits = {"int4": (-8, 7), "uint4": (0, 15)}
    for integer in ("int4", "uint4", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
        least, most = limits.get(integer) or (np.iinfo(integer).min, np.iinfo(integer).max)
        whole = [0 if np.isnan(x) else most if x >= most else least if x <= least else int(x) for x in exact]
        with backends.compilation.flags(tiers=tiers):
            got = ft.jit(lambda x, integer=integer: x.astype(integer))(numbers)
        assert np.asarray(got).tolist() == whole, integer
