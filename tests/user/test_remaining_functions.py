"""Functions that no other test calls by name: values against NumPy, slopes against differences in float64."""

import numpy as np
import pytest
from support.compare import agrees

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax, nn
from functorch_like.errors import ShapeError
from functorch_like.testing import check_grads

RNG = np.random.default_rng(7)
X = RNG.normal(size=(4, 6))
INTS = RNG.integers(0, 2**20, (4, 6)).astype(np.int32)
FEW = RNG.integers(0, 5, (4, 6)).astype(np.int32)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("amax", (X, 0)), ("amin", (X, 1)), ("array_equiv", (X[:1], np.repeat(X[:1], 3, 0))),
        ("array_equiv", (X, X[0])),
        ("bitwise_invert", (INTS,)), ("bitwise_left_shift", (INTS, FEW)), ("bitwise_right_shift", (INTS, FEW)),
        ("divmod", (X, np.array(0.3))), ("divmod", (INTS, FEW + 1)), ("float_power", (abs(X), X)),
        ("float_power", (INTS, FEW)), ("hsplit", (X, 3)), ("vsplit", (X, [1, 3])), ("iscomplex", (X + 1j * (X > 0),)),
        ("isreal", (X + 1j * (X > 0),)), ("matrix_transpose", (X,)), ("permute_dims", (X[None], (1, 2, 0))),
        ("nanprod", (np.where(X > 1, np.nan, X), 1)), ("radians", (X,)), ("true_divide", (INTS, FEW + 1)),
        ("diag_indices", (4, 3)), ("tril_indices", (4, 1, 5)), ("triu_indices", (4, -1, 5)),
        ("linalg.matrix_norm", (X,)), ("linalg.vector_norm", (X,)), ("linalg.matrix_transpose", (X,)),
    ],
)  # fmt: skip
def test_values_are_those_of_numpy(name, arguments):
    agrees(name, *arguments)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("amax", (X, 0)), ("amin", (X, 1)), ("float_power", (abs(X) + 0.1, X)),
        ("hsplit", (X, 3)), ("vsplit", (X, 2)), ("matrix_transpose", (X,)), ("nanprod", (X, 1)), ("radians", (X,)),
        ("permute_dims", (X[None], (1, 2, 0))), ("true_divide", (X, X + 3)), ("linalg.matrix_norm", (X,)),
        ("linalg.vector_norm", (X,)), ("linalg.matrix_transpose", (X,)),
    ],
)  # fmt: skip
def test_slopes_are_differences(name, arguments):
    function = fnp
    for part in name.split("."):
        function = getattr(function, part)
    arrays = [a for a in arguments if isinstance(a, np.ndarray)]
    rest = arguments[len(arrays) :]
    check_grads(ft.jit(lambda *xs: function(*xs, *rest)), arrays, order=1)


def test_diagonals_are_filled():
    want = X.copy()
    np.fill_diagonal(want, 2.5)
    np.testing.assert_array_equal(fnp.fill_diagonal(X, 2.5, inplace=False), want)
    for shape in ((7, 3), (3, 7), (8, 2), (4, 4), (5, 1), (2, 2, 2)):
        for wrap in (False, True):
            np.fill_diagonal(want_of := np.zeros(shape), 1.5, wrap)
            np.testing.assert_array_equal(fnp.fill_diagonal(np.zeros(shape), 1.5, wrap, inplace=False), want_of)
    with pytest.raises(ShapeError, match=r"one size, got the shape \(2, 3, 2\)"):
        fnp.fill_diagonal(np.zeros((2, 3, 2)), 1.0, inplace=False)
    slope = ft.jit(ft.grad(lambda v: (fnp.fill_diagonal(v, 2.5, inplace=False) * X).sum()))(X)
    np.testing.assert_array_equal(slope, X * (1 - np.eye(4, 6)))


def test_questions():
    assert fnp.isrealobj(fnp.ones(2)) and not fnp.isrealobj(fnp.ones(2) * 1j)
    assert fnp.isscalar(2.0) and not fnp.isscalar(fnp.ones(2))
    assert fnp.iterable(fnp.ones(2)) and not fnp.iterable(fnp.asarray(1.0))
    assert fnp.promote_types("int32", "float64") == np.float64
    assert fnp.empty_like(X).shape == X.shape and fnp.empty_like(X, dtype="int32").dtype == np.int32
    assert (fnp.asarray(1, fnp.csingle).dtype, fnp.asarray(1, fnp.cdouble).dtype) == (np.complex64, np.complex128)
    assert (fnp.asarray(1, fnp.int_).dtype, fnp.asarray(1, fnp.float_).dtype) == (np.int32, np.float32)
    assert type(ft.device_get({"a": fnp.ones(2)})["a"]) is np.ndarray


def test_the_total_order():
    values = np.array([-np.nan, -np.inf, -1.0, -0.0, 0.0, 1.0, np.inf, np.nan])
    places = np.arange(8)
    for function, want in ((lax.eq_to, np.equal), (lax.lt_to, np.less), (lax.le_to, np.less_equal)):
        x, y = np.meshgrid(values, values, indexing="ij")
        np.testing.assert_array_equal(function(x, y), want.outer(places, places))


def test_integers():
    x, y = RNG.integers(-(2**31), 2**31, (2, 3, 50)).astype(np.int32)
    np.testing.assert_array_equal(lax.mulhi(x, y), (x.astype(np.int64) * y) >> 32)
    np.testing.assert_array_equal(lax.reduce_xor(x, (0,)), np.bitwise_xor.reduce(x, 0))
    np.testing.assert_array_equal(lax.reduce_xor(x > 0, (1,)), np.logical_xor.reduce(x > 0, 1))


def test_activations():
    want = X * np.clip(X + 3, 0, 6) / 6
    np.testing.assert_allclose(nn.hard_swish(X), want, rtol=1e-12)
    np.testing.assert_allclose(nn.swish(X), X / (1 + np.exp(-X)), rtol=1e-12)
    for function in (nn.hard_swish, nn.swish):
        check_grads(ft.jit(function), [X], order=2)


def test_psi_is_the_slope_of_gammaln():
    import mpmath

    want = [float(mpmath.digamma(v)) for v in (0.3, 1.7, 12.5)]
    np.testing.assert_allclose(ft.scipy.special.psi(np.array([0.3, 1.7, 12.5])), want, rtol=1e-12)


def test_the_orders_of_a_convolution():
    numbers = lax.conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 4), ("NHWC", "HWIO", "NHWC"))
    assert lax.conv_general_permutations(("NHWC", "HWIO", "NHWC")) == ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    x, k = RNG.normal(size=(1, 8, 8, 3)), RNG.normal(size=(3, 3, 3, 4))
    got = ft.jit(lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "VALID", dimension_numbers=numbers))(x, k)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2))
    np.testing.assert_allclose(got, np.einsum("nhwcij,ijco->nhwo", windows, k), rtol=1e-9, atol=1e-12)


def test_values_that_debugging_refuses():
    for block, value in ((ft.debug_nans, -1.0), (ft.debug_infs, 0.0)):
        with block(), pytest.raises(FloatingPointError):
            fnp.log(value)
