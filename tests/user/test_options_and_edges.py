"""Options and edge cases of functions: rare parameters, empty operands, complex order, cropped windows."""

import numpy as np
import pytest
from scipy import linalg

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax, nn
from functorch_like.errors import ArgumentError, DtypeError

RNG = np.random.default_rng(0)
X = np.array([[3, 0, -2], [0, 0, 5]], np.int32)
Z = (np.array([1, 1, -2, 0.5]) + 1j * np.array([2, -1, 0, 3])).astype(np.complex64)
W = (np.array([1, 1, 3, 0.5]) + 1j * np.array([1, 4, -9, 3])).astype(np.complex64)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "nancumsum", "nancumprod"])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_running_sums_of_booleans(name, axis):
    for x in (X, X.astype(np.float32)):
        got = getattr(fnp, name)(x, axis=axis, dtype=bool)
        expected = getattr(np, name)(X, axis=axis, dtype=bool)
        assert got.dtype == bool
        np.testing.assert_array_equal(got, expected)
        np.testing.assert_array_equal(ft.jit(lambda x: getattr(fnp, name)(x, axis=axis, dtype=bool))(x), expected)


def test_variance_of_integers_in_integers():
    x = np.array([[0, 4], [2, 6]])
    np.testing.assert_array_equal(fnp.nanvar(x, axis=1, dtype=np.int32), np.nanvar(x, axis=1, dtype=np.int32))
    with pytest.raises(DtypeError, match="has no NaN"):  # NumPy raises a TypeError, too
        fnp.nanvar(x.astype(np.float32), dtype=np.int32)


def test_extremes_of_complex_numbers():
    """NumPy compares real parts, then imaginary ones."""
    for f, expected in ((lax.max, np.maximum(Z, W)), (lax.min, np.minimum(Z, W))):
        np.testing.assert_array_equal(f(Z, W), expected)
        np.testing.assert_array_equal(ft.vmap(f, (0, None))(Z, W[1]), [f(z, W[1]) for z in Z])
        assert np.isnan(np.asarray(f(np.complex64(complex("nan")), Z))).all()
        assert np.isnan(np.asarray(f(Z, np.complex64(complex("nan"))))).all()
    np.testing.assert_array_equal(lax.max(Z, 1j), np.maximum(Z, 1j))
    assert lax.reduce(Z, np.complex64(-9), lax.max, (0,)) == Z.max()
    assert lax.reduce(Z, np.complex64(9), lax.min, (0,)) == Z.min()
    windows = np.lib.stride_tricks.sliding_window_view(Z, 2)
    np.testing.assert_array_equal(lax.reduce_window(Z, np.complex64(-9), lax.max, (2,)), windows.max(axis=1))
    tangent = ft.jvp(lax.max, (Z[:2], W[:2]), (Z[:2], W[:2]))[1]
    np.testing.assert_array_equal(tangent, [Z[0], W[1]])


@pytest.mark.parametrize("crop", [((-1, 0), (0, -2)), ((-2, 1), (1, -1)), ((2, -1), (-1, 0))])
def test_windows_that_padding_crops(crop):
    x = RNG.normal(size=(5, 6)).astype(np.float32)

    def cut(fill):
        wide = [(max(lo, 0), max(hi, 0)) for lo, hi in crop]
        padded = np.pad(x, wide, constant_values=fill)
        return padded[
            tuple(slice(max(-lo, 0), n - max(-hi, 0)) for (lo, hi), n in zip(crop, padded.shape, strict=True))
        ]

    for f, start, expected in (
        (lax.max, -np.inf, np.max),
        (lax.add, 0.0, np.sum),
        (lambda a, b: a * b, 1.0, np.prod),
    ):
        views = np.lib.stride_tricks.sliding_window_view(cut(start).astype(np.float64), (2, 2))[:, ::2]
        got = lax.reduce_window(x, start, f, (2, 2), (1, 2), crop)
        np.testing.assert_allclose(got, expected(views, axis=(2, 3)), rtol=1e-5, atol=1e-6)
    pairs = ((lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 2), crop)), x)
    slope = ft.grad(lambda x: fnp.sum(lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 2), crop)))(x)
    np.testing.assert_allclose(np.sum(pairs[0]), np.sum(np.asarray(slope) * pairs[1]), rtol=1e-4, atol=1e-4)  # linear


def test_transforms_of_real_numbers_and_integers():
    n = np.array([3, -1, 4, 1])
    for dtype in (np.int8, np.bool_, np.float16, np.float32, np.int32):
        x = n.astype(dtype)
        for kind, expected in (("FFT", np.fft.fft), ("IFFT", np.fft.ifft), ("RFFT", np.fft.rfft)):
            got = lax.fft(x, kind, (4,))
            assert got.dtype == np.complex64
            np.testing.assert_allclose(got, expected(x.astype(np.float64)), rtol=1e-5, atol=1e-5)
    with pytest.raises(DtypeError):
        lax.fft(Z, "RFFT", (4,))


def test_a_single_branch_returns_arrays():
    out = lax.switch(0, [lambda x: x], 1.5)
    assert isinstance(out, ft.Array)
    assert out.item() == 1.5
    assert (fnp.ones(2, "bfloat16") * out).dtype == fnp.bfloat16  # a number does not change the dtype


def test_default_generator_is_philox():
    state = np.arange(4, dtype=np.uint32)
    for a, b in zip(
        lax.rng_bit_generator(state, (3,)), lax.rng_bit_generator(state, (3,), "uint32", "philox"), strict=True
    ):
        np.testing.assert_array_equal(a, b)


def test_set_differences_in_order():
    a, b = np.array([4, 2, 1, 3, 4]), np.array([2])
    expected = np.setdiff1d(a, b, assume_unique=True)
    np.testing.assert_array_equal(fnp.setdiff1d(a, b, assume_unique=True), expected)
    np.testing.assert_array_equal(fnp.setdiff1d(a, b, True, size=6), [*expected, 0, 0])
    np.testing.assert_array_equal(ft.jit(lambda a: fnp.setdiff1d(a, b, True, size=2))(a), expected[:2])
    np.testing.assert_array_equal(fnp.setxor1d(a, b, assume_unique=True), np.setxor1d(a, b))
    for size in (None, 2):
        got = fnp.setdiff1d(a.astype(np.int8), b.astype(np.float32), size=size)
        assert got.dtype == np.setdiff1d(a.astype(np.int8), b.astype(np.float32)).dtype
        np.testing.assert_array_equal(got, [1, 3, 4][:size])


def test_dtypes_of_ufunc_reductions():
    for name in ("add", "multiply"):
        for dtype in ("int8", "float16"):
            got = getattr(fnp, name).reduce(X, axis=1, dtype=dtype)
            expected = getattr(np, name).reduce(X, axis=1, dtype=dtype)
            assert got.dtype == expected.dtype
            np.testing.assert_array_equal(got, expected)


def test_positions_that_put_takes():
    x = np.zeros(4)
    got = fnp.put(x, [0, -1, 9], [1, 2, 3], inplace=False)
    np.testing.assert_array_equal(got, [1, 0, 0, 3])  # the last write wins at the nearest position
    expected = x.copy()
    np.put(expected, [-2, 1], [5, 6])
    np.testing.assert_array_equal(fnp.put(x, [-2, 1], [5, 6], inplace=False), expected)
    np.testing.assert_array_equal(fnp.put(x, [9], 1, mode="drop", inplace=False), x)


def test_squares_of_booleans():
    for x in (np.array([True, False]), True):
        assert fnp.square(x).dtype == fnp.int32  # an integer in NumPy, too
        np.testing.assert_array_equal(fnp.square(x), np.square(x))


def test_dtypes_of_integers():
    x = np.array([-3, 0, 2, 9])
    for f, low, high in ((nn.hard_tanh, -1, 1), (nn.relu6, 0, 6)):
        np.testing.assert_array_equal(f(x), np.clip(x, low, high))
    assert nn.hard_tanh(x.astype(np.int8)).dtype == np.int8
    assert nn.relu6(x.astype(np.int8)).dtype == np.float32  # 6.0 is a float
    image = x.astype(np.uint8).reshape(2, 2)
    wide = ft.image.resize(image, (4, 2), "nearest")
    assert wide.dtype == np.uint8
    np.testing.assert_array_equal(wide, np.repeat(image, 2, axis=0))


def test_python_round():
    for number in (2.5, -3.5, 7.2):
        got = round(fnp.asarray(number))
        assert got.dtype == fnp.int32
        assert got == round(number)
        assert ft.jit(round)(number) == round(number)
        assert round(fnp.asarray(number), 1).dtype == fnp.float32


def test_parameters_of_products():
    x, y = RNG.normal(size=(2, 3, 4)).astype(np.float32), RNG.normal(size=(4, 2, 5)).astype(np.float32)
    got = lax.dot(x, y, dimension_numbers=(((2,), (0,)), ((0,), (1,))), preferred_element_type="float32")
    np.testing.assert_allclose(got, np.einsum("bik,kbj->bij", x, y), rtol=1e-5, atol=1e-5)
    chain = [x[0], y[:, 0], RNG.normal(size=5).astype(np.float32)]
    exact = np.linalg.multi_dot([m.astype(np.float64) for m in chain])
    np.testing.assert_allclose(fnp.linalg.multi_dot(chain, precision="highest"), exact, rtol=1e-5, atol=1e-5)
    rough = fnp.linalg.multi_dot(chain, precision="BF16_BF16_F32")
    assert 1e-5 < np.abs(np.asarray(rough, np.float64) - exact).max() < 0.1  # factors of 8 bits


def test_residuals_of_least_squares():
    for m, n, rank in ((4, 2, 2), (4, 2, 1), (2, 4, 2), (3, 3, 3)):
        a = RNG.normal(size=(m, rank)) @ RNG.normal(size=(rank, n))
        for shape in ((m,), (m, 3)):
            b = RNG.normal(size=shape)
            expected = np.linalg.lstsq(a, b, rcond=1e-4)[1]
            single = [x.astype(np.float32) for x in (a, b)]
            got = fnp.linalg.lstsq(*single, rcond=1e-4, numpy_resid=True)[1]
            assert got.shape == expected.shape
            np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-4)
            assert fnp.linalg.lstsq(*single, rcond=1e-4)[1].shape == (1, *shape[1:])[-1:]


def test_long_name_of_a_method():
    found = ft.scipy.optimize.minimize(
        lambda x: fnp.sum((x - 2) ** 2), fnp.zeros(3), method="l-bfgs-experimental-do-not-rely-on-this"
    )
    np.testing.assert_allclose(found.x, [2, 2, 2], rtol=1e-3)


def test_vectors_and_scalars_as_matrices():
    assert fnp.linalg.matrix_rank(fnp.zeros(3)) == np.linalg.matrix_rank(np.zeros(3)) == 0
    assert fnp.linalg.matrix_rank(fnp.arange(3.0)) == np.linalg.matrix_rank(np.arange(3.0)) == 1
    assert fnp.linalg.matrix_rank(fnp.asarray(2.0)) == 1
    np.testing.assert_array_equal(ft.scipy.linalg.toeplitz(3.0), linalg.toeplitz(3.0))
    np.testing.assert_array_equal(ft.scipy.linalg.toeplitz([1, 2], 5), linalg.toeplitz([1, 2], 5))


def test_norms_of_nothing():
    assert fnp.linalg.norm(fnp.zeros(0), ord=np.inf) == 0
    assert fnp.linalg.norm(fnp.zeros((0, 2)), ord=np.inf, axis=0).tolist() == [0, 0]
    for order in (1, 2, np.inf, "nuc", "fro"):
        assert fnp.linalg.norm(fnp.zeros((0, 2)), ord=order) == 0


def test_nothing_given():
    assert fnp.poly([]).shape == np.shape(np.poly([])) == ()
    assert fnp.poly([]) == 1
    with pytest.raises(ArgumentError, match="no keys"):  # NumPy raises a TypeError, too
        fnp.lexsort(())
