"""Positions of true elements with a given number of results, against NumPy."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp

RNG = np.random.default_rng(3)


def expected(mask, size, fill):
    places = [i[:size] for i in np.nonzero(mask)]
    return [np.concatenate([p, np.full(size - len(p), fill)]) for p in places]


@pytest.mark.parametrize("size", [0, 1, 30, 5000])
@pytest.mark.parametrize("part", [0.0, 0.02, 0.9, 1.0])
@pytest.mark.parametrize("shape", [(4099,), (3,), (7, 11), (2, 3, 5), (0,), (4, 0)])
def test_positions_are_those_of_numpy(shape, part, size):
    mask = RNG.random(shape) < part
    f = ft.jit(lambda m: fnp.nonzero(m, size=size, fill_value=-7))
    for got, want in zip(f(mask), expected(mask, size, -7), strict=True):
        assert got.dtype == np.int32
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64"])
def test_zeros_of_each_dtype_are_left_out(dtype):
    kind = np.dtype(dtype).kind
    if kind in "iu":
        x = np.array([0, 1, np.iinfo(dtype).min, 0, np.iinfo(dtype).max] * 80, dtype)
    else:
        x = np.array([0, 1, -0.0, 1e-3, 0, -1, np.nan, np.inf, 0, -np.inf] * 40).astype(dtype)
    got = ft.jit(lambda x: fnp.flatnonzero(x, size=390, fill_value=-1))(x)
    np.testing.assert_array_equal(got, expected(x, 390, -1)[0])


def test_both_tiers_count_alike():
    mask, x = RNG.random(20_001) < 0.4, RNG.normal(size=20_001).astype("float32")
    f = ft.jit(lambda m, x: (fnp.compress(m, x, size=9000), fnp.argwhere(m.reshape(-1, 3), size=9000)))
    quick = f(mask, x)
    f.optimised()
    for got in (quick, f(mask, x)):
        np.testing.assert_array_equal(got[0][: mask.sum()], x[mask][:9000])
        assert not np.any(got[0][mask.sum() :])
        np.testing.assert_array_equal(got[1][: mask.sum()], np.argwhere(mask.reshape(-1, 3))[:9000])


@pytest.mark.parametrize("axis", [0, 1])
def test_masks_of_a_batch_are_counted_apart(axis):
    masks = RNG.random((6, 37)) < 0.3
    got = ft.vmap(lambda m: fnp.flatnonzero(m, size=12, fill_value=99), in_axes=axis)(masks if axis == 0 else masks.T)
    np.testing.assert_array_equal(got, [expected(m, 12, 99)[0] for m in masks])


def test_gradients_go_to_the_elements_chosen():
    x = RNG.normal(size=300).astype("float32")
    g = ft.grad(lambda x: fnp.sum(fnp.square(fnp.compress(x > 0, x, size=40))))(x)
    chosen = np.flatnonzero(x > 0)[:40]
    want = np.zeros_like(x)
    want[chosen] = 2 * x[chosen]
    np.testing.assert_allclose(g, want, rtol=1e-6)


@pytest.mark.parametrize("n", [8, 5, 1, 0])
def test_padding_of_a_bucket_is_not_counted(n):
    x = RNG.normal(size=n).astype("float32") + 1
    f = ft.jit(lambda x: fnp.flatnonzero(x < 3, size=6, fill_value=-1), buckets={"x": 0})
    np.testing.assert_array_equal(f(x), expected(x < 3, 6, -1)[0])


def test_without_the_fast_form_the_positions_are_the_same():
    mask = RNG.random((5, 700)) < 0.5
    with ft.backends.cpu.flags(fast_lowerings="-true_places"):
        got = ft.jit(ft.vmap(lambda m: fnp.flatnonzero(m, size=300, fill_value=-1)))(mask)
    np.testing.assert_array_equal(got, [expected(m, 300, -1)[0] for m in mask])
