"""argmax and argmin of rows, in each of their forms, agree with NumPy: first of equals, NaN first of all."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.primitives.reductions.arg_extremes_cpu import LARGE, SHORTER, block

RNG = np.random.default_rng(0)
SHAPES = [
    (LARGE,), (64, 256), (3, 6, 1000), (65, 257), (17, 1024), (2, 8220), (1, 8209), (90, 64), (3000, 2), (20, 30, 9),
]  # fmt: skip
KINDS = [
    *((kind, d) for kind in ("drawn", "ties", "special values", "NaN", "equal") for d in ("float32", "float64")),
    *(("NaN", "float16"), ("special values", "float16"), ("drawn", "int32"), ("ties", "int32"), ("equal", "int32")),
]


# Other compile options: each contracts other products and sums, those of the quick tier and those behind it.
def quick(f):
    return ft.jit(f, mode="fast-compile")


def rows(kind, shape, dtype):
    if kind == "ties":
        return RNG.integers(-3, 3, shape).astype(dtype)
    if dtype == "int32":
        least, most = (5, 5) if kind == "equal" else (-(2**31), 2**31 - 1)
        return RNG.integers(least, most, shape, dtype, endpoint=True)
    x = RNG.normal(size=shape).astype(dtype)
    if kind == "special values":
        x[RNG.uniform(size=shape) < 0.001] = np.inf
        x[RNG.uniform(size=shape) < 0.001] = -np.inf
        x[..., :2][RNG.uniform(size=(*shape[:-1], 2)) < 0.5] = -0.0
    if kind == "NaN":
        x[RNG.uniform(size=shape) < 0.003] = np.nan
        x[RNG.uniform(size=shape) < 0.003] = np.inf
    if kind == "equal":
        x[:] = -np.inf if dtype == "float32" else np.inf
    return x


@pytest.mark.parametrize("jit", [quick, ft.jit])
@pytest.mark.parametrize(("kind", "dtype"), KINDS)
def test_values(kind, dtype, jit):
    found = jit(lambda x: (fnp.argmax(x, -1), fnp.argmin(x, -1)))
    for shape in SHAPES:
        x = rows(kind, shape, dtype)
        greatest, least = found(x)
        np.testing.assert_array_equal(greatest, np.argmax(x, -1))
        np.testing.assert_array_equal(least, np.argmin(x, -1))


@pytest.mark.parametrize("jit", [quick, ft.jit])
def test_expressions_and_transformations(jit):
    a, b = (RNG.normal(size=(64, 256)).astype(np.float32) for _ in range(2))
    sums = lambda a, b: fnp.argmax(a * b + b * 3, -1)
    np.testing.assert_array_equal(jit(sums)(a, b), np.argmax(np.asarray(jit(lambda a, b: a * b + b * 3)(a, b)), -1))
    np.testing.assert_array_equal(jit(ft.vmap(sums, in_axes=1))(a.T, b.T), jit(sums)(a, b))
    largest = jit(ft.grad(lambda a: fnp.sum(fnp.take_along_axis(a, fnp.argmax(a, -1)[:, None], -1))))(a)
    np.testing.assert_array_equal(largest, a == a.max(-1, keepdims=True))


def test_blocks_divide_the_row_near_its_root():
    for n in range(SHORTER + 1, SHORTER + 3000):
        width = block(n)
        assert not width or (n % width == 0 and 8 <= width <= n**0.5)
    assert block(1 << 20) == 1024
