"""lax: NumPy's results under JAX's names. Numbers adopt the other operand's dtype and shape; nothing else does."""

import math

import numpy as np
import pytest
from scipy import signal, special

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.errors import (
    ArgumentError,
    BoundsError,
    ConcretizationError,
    DtypeError,
    NumberError,
    ShapeError,
)

RNG = np.random.default_rng(0)
X = RNG.uniform(0.1, 0.9, (2, 3)).astype(np.float32)
Y = RNG.uniform(0.5, 2.0, (2, 3)).astype(np.float32)
I = np.array([[6, -7, 1], [0, 3, -2]], np.int32)
J = np.array([[3, 2, 1], [5, 1, 4]], np.int32)

ONE = {
    "abs": np.abs, "acos": np.arccos, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan, "atanh": np.arctanh,
    "cbrt": np.cbrt, "ceil": np.ceil, "cos": np.cos, "cosh": np.cosh, "digamma": special.digamma, "erf": special.erf,
    "erf_inv": special.erfinv, "erfc": special.erfc, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1,
    "floor": np.floor, "is_finite": np.isfinite, "lgamma": special.gammaln, "log": np.log, "log1p": np.log1p,
    "logistic": special.expit, "neg": np.negative, "reciprocal": np.reciprocal, "round": np.round,
    "rsqrt": lambda x: 1 / np.sqrt(x), "sign": np.sign, "sin": np.sin, "sinh": np.sinh, "sqrt": np.sqrt,
    "square": np.square, "tan": np.tan, "tanh": np.tanh,
}  # fmt: skip
TWO = {
    "add": np.add, "atan2": np.arctan2, "div": np.divide, "eq": np.equal, "ge": np.greater_equal, "gt": np.greater,
    "le": np.less_equal, "lt": np.less, "max": np.maximum, "min": np.minimum, "mul": np.multiply, "ne": np.not_equal,
    "nextafter": np.nextafter, "pow": np.power, "rem": np.fmod, "sub": np.subtract,
}  # fmt: skip
INTEGER = {
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "shift_left": np.left_shift, "shift_right_arithmetic": np.right_shift,
    "div": lambda x, y: np.trunc(x / y).astype(np.int32), "rem": np.fmod,
}  # fmt: skip


def everywhere(f, *args):
    """Return the result, which must be the same in eager mode, jitted, and mapped over the first dimension."""
    eager = np.asarray(f(*args))
    np.testing.assert_allclose(np.asarray(ft.jit(f)(*args)), eager, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(ft.vmap(f)(*args)), eager, rtol=1e-6)
    return eager


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_array(name):
    got, expected = everywhere(getattr(lax, name), X), ONE[name](X.astype(np.float64))
    assert got.dtype == (bool if expected.dtype == bool else np.float32)
    np.testing.assert_allclose(got, expected, rtol=2e-6, atol=1e-6)
    assert np.asarray(getattr(lax, name)(0.5)).shape == ()


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_arrays(name):
    np.testing.assert_allclose(everywhere(getattr(lax, name), X, Y), TWO[name](X, Y), rtol=2e-6)


@pytest.mark.parametrize("name", INTEGER)
def test_functions_of_integers(name):
    np.testing.assert_array_equal(everywhere(getattr(lax, name), I, J), INTEGER[name](I, J))


def test_other_elementwise_functions():
    np.testing.assert_allclose(lax.acosh(Y + 1), np.arccosh(Y + 1), rtol=1e-6)
    np.testing.assert_array_equal(lax.population_count(J), [[2, 1, 1], [2, 1, 1]])
    np.testing.assert_array_equal(lax.clz(J), [[30, 30, 31], [29, 31, 29]])
    np.testing.assert_array_equal(lax.bitwise_not(I), ~I)
    np.testing.assert_array_equal(lax.shift_right_logical(I, 28), (I.view(np.uint32) >> 28).view(np.int32))
    np.testing.assert_allclose(lax.integer_pow(Y, -2), Y**-2.0, rtol=1e-6)
    np.testing.assert_allclose(lax.pow(Y, J), Y.astype(float) ** J, rtol=1e-5)
    np.testing.assert_allclose(lax.polygamma(2, Y), special.polygamma(2, Y), rtol=1e-4)
    orders = np.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(lax.polygamma(orders, Y.astype(float)), special.polygamma(orders, Y), rtol=1e-7)
    with pytest.raises(ArgumentError, match="non-negative m, got -1"):
        lax.polygamma(-1, Y)
    z = lax.complex(X, Y)
    np.testing.assert_array_equal(lax.real(z), X)
    np.testing.assert_array_equal(lax.imag(lax.conj(z)), -Y)
    assert lax.conj(X).dtype == np.complex64
    with pytest.raises(TypeError, match="float32 or float64"):
        lax.conj(X.astype(np.float16))
    halves = np.array([-2.5, -0.5, 0.5, 1.5, 2.5], np.float32)
    assert lax.round(halves).tolist() == [-3, -1, 1, 2, 3]
    assert lax.round(halves, lax.RoundingMethod.TO_NEAREST_EVEN).tolist() == [-2, 0, 0, 2, 2]
    assert lax.reduce_precision(np.float32(1 + 2**-9), 8, 7).item() == 1.0


# ------------------------------------------------------------------------------------------------------------ numbers
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "float16", "bfloat16", "float32", "float64", "complex64"])
def test_numbers_take_the_dtype_they_meet(dtype):
    x = fnp.asarray([1, 2, 3], dtype)
    for got in (lax.add(x, 2), lax.add(2, x), ft.jit(lambda x: lax.add(x, 2))(x), lax.add(x, np.int32(2))):
        assert got.dtype == x.dtype and [int(v.real) for v in got] == [3, 4, 5]


def test_numbers_keep_their_digits():
    x = fnp.zeros(2, "float64")
    assert lax.add(x, 0.1).tolist() == [0.1, 0.1] == ft.jit(lambda x: lax.add(x, 0.1))(x).tolist()
    assert lax.add(fnp.zeros(1, "int64"), 2**40).tolist() == [2**40]


def test_numbers_that_do_not_fit():
    for f in (lambda x: lax.add(x, 300), ft.jit(lambda x: lax.add(x, 300))):
        with pytest.raises(NumberError, match="300 is out of bounds for int8"):
            f(fnp.zeros(2, "int8"))
    with pytest.raises(DtypeError, match=r"1\.5"):
        lax.mul(fnp.arange(3), 1.5)
    with pytest.raises(DtypeError):
        lax.mul(fnp.ones(3), 1j)


def test_scalars_take_the_shape_they_meet():
    x = fnp.ones((2, 3))
    assert lax.add(x, fnp.asarray(2.0, "float32")).shape == (2, 3) and lax.max(fnp.asarray(0.5), x).shape == (2, 3)
    with pytest.raises(ShapeError, match=r"f32\[2,3\] and f32\[3\]"):
        lax.add(x, fnp.ones(3))
    with pytest.raises(DtypeError, match=r"f32\[2,3\] and f64\[2,3\]"):
        lax.add(x, fnp.ones((2, 3), "float64"))
    with pytest.raises(DtypeError, match="not an array"):
        lax.add(x, "one")


def test_weak_arrays_stay_weak():
    assert lax.add(1, 2).weak_type and not lax.add(fnp.ones(2), 1).weak_type


def test_choosing():
    np.testing.assert_array_equal(lax.clamp(0.2, X, 0.5), np.clip(X, np.float32(0.2), np.float32(0.5)))
    np.testing.assert_array_equal(lax.clamp(X, Y, 1.0 + Y), np.clip(Y, X, 1 + Y))
    np.testing.assert_array_equal(lax.select(X > 0.5, X, Y), np.where(X > 0.5, X, Y))
    np.testing.assert_array_equal(lax.select(X > 0.5, X, 0.0), np.where(X > 0.5, X, 0))
    np.testing.assert_array_equal(lax.select_n(np.array([2, 0], np.int32), *np.eye(3, 2, dtype=np.float32)), [0, 0])
    with pytest.raises(DtypeError, match="booleans"):
        lax.select(X, X, Y)
    assert ft.jit(lambda x: lax.clamp(0, x, 5))(fnp.arange(8)).tolist() == [0, 1, 2, 3, 4, 5, 5, 5]


# ------------------------------------------------------------------------------------------------------------- shapes
def test_shapes():
    x = np.arange(24).reshape(2, 3, 4)
    assert lax.full((2, 2), 3).tolist() == [[3, 3], [3, 3]] and lax.full((), 1.5, "float64").dtype == np.float64
    assert lax.full((2,), 1.0).weak_type and ft.jit(lambda v: lax.full((2,), v))(3.0).tolist() == [3, 3]
    assert lax.full_like(X, 7).dtype == np.float32 and lax.zeros_like_array(x).shape == x.shape
    np.testing.assert_array_equal(lax.broadcasted_iota("int32", (2, 3), -1), [[0, 1, 2]] * 2)
    np.testing.assert_array_equal(lax.broadcast(np.arange(3), [2, 1]), np.arange(3) * np.ones((2, 1, 1), int))
    np.testing.assert_array_equal(lax.broadcast_in_dim(np.arange(3), [3, 2], [0]), np.arange(3)[:, None] * [1, 1])
    np.testing.assert_array_equal(lax.reshape(x, [4, 6], (2, 0, 1)), x.transpose(2, 0, 1).reshape(4, 6))
    np.testing.assert_array_equal(lax.collapse(x, -2), x.reshape(2, 12))
    np.testing.assert_array_equal(lax.transpose(x, [2, 0, 1]), x.transpose(2, 0, 1))
    np.testing.assert_array_equal(lax.rev(x, (-1,)), x[..., ::-1])
    assert lax.expand_dims(x, (0, -1)).shape == (1, 2, 3, 4, 1) and lax.squeeze(x[:1], (0,)).shape == (3, 4)
    np.testing.assert_array_equal(lax.concatenate([x, x], -1), np.concatenate([x, x], -1))
    np.testing.assert_array_equal(lax.pad(np.ones(3), 5, [(1, -1, 1)]), [5, 1, 5, 1, 5])
    assert lax.convert_element_type(1.5, int).item() == 1 and lax.bitcast_convert_type(X, "int32").shape == X.shape
    with pytest.raises(ShapeError, match="size 1"):
        lax.squeeze(x, (1,))
    with pytest.raises(ShapeError, match="rank 3"):
        lax.rev(x, (3,))
    with pytest.raises(ShapeError, match="got no arrays"):
        lax.concatenate([], 0)
    with pytest.raises(ConcretizationError, match="static_argnums"):
        ft.jit(lambda n: lax.iota("int32", n))(3)
    with pytest.raises(ArgumentError, match="ints"):
        lax.reshape(x, (2.0, 12))


def test_stop_gradient_of_trees():
    assert ft.grad(lambda x: x * lax.stop_gradient({"a": x, "n": 3, "s": None})["a"])(3.0).item() == 3.0
    assert lax.stop_gradient(fnp.arange(2)).tolist() == [0, 1]


# ------------------------------------------------------------------------------------------------------------- slices
def test_static_slices():
    x = np.arange(24).reshape(4, 6)
    np.testing.assert_array_equal(lax.slice(x, (1, 0), (4, 6), (2, 3)), x[1:4:2, 0:6:3])
    np.testing.assert_array_equal(lax.slice_in_dim(x, -3, -1, axis=1), x[:, -3:-1])
    np.testing.assert_array_equal(lax.slice_in_dim(x, None, None, 2), x[::2])
    np.testing.assert_array_equal(lax.index_in_dim(x, -2, 1, keepdims=False), x[:, -2])
    with pytest.raises(BoundsError, match="index 6"):
        lax.index_in_dim(x, 6, 1)


@pytest.mark.parametrize("start", [0, 1, 4, 9, -1, -3, -99])
@pytest.mark.parametrize("kind", [int, np.int8, np.int64, np.array, lambda i: fnp.asarray(i, "int64")])
def test_dynamic_slices(start, kind):
    x = np.arange(6.0)
    first = min(max(start + 6 if start < 0 else start, 0), 3)
    for f in (lax.dynamic_slice, ft.jit(lambda x, i, n: lax.dynamic_slice(x, i, n), static_argnums=2)):
        np.testing.assert_array_equal(f(x, [kind(start)], (3,)), x[first : first + 3])
    np.testing.assert_array_equal(lax.dynamic_slice_in_dim(x, kind(start), 3), x[first : first + 3])
    updated = x.copy()
    updated[first : first + 3] = 0
    np.testing.assert_array_equal(lax.dynamic_update_slice(x, np.zeros(3), [kind(start)]), updated)


@pytest.mark.parametrize("through", [lambda f: f, ft.jit, lambda f: lambda i: ft.vmap(f)(i[None])[0]])
def test_dynamic_starts_that_do_not_count_from_the_end(through):
    x, i, zeros = fnp.arange(1.0, 7.0), fnp.asarray(-2), fnp.zeros(2)
    flag = {"allow_negative_indices": False}
    starts = lambda f: np.asarray(through(f)(i)).tolist()
    assert starts(lambda i: lax.dynamic_slice(x, (i,), (2,), **flag)) == [1, 2]
    assert starts(lambda i: lax.dynamic_slice(x, i[None], (2,), allow_negative_indices=[True])) == [5, 6]
    assert starts(lambda i: lax.dynamic_slice_in_dim(x, i, 2, **flag)) == [1, 2]
    assert starts(lambda i: lax.dynamic_index_in_dim(x, i, keepdims=False, **flag)) == 1
    assert starts(lambda i: lax.dynamic_update_slice(x, zeros, (i,), **flag)) == [0, 0, 3, 4, 5, 6]
    assert starts(lambda i: lax.dynamic_update_slice_in_dim(x, zeros, i, 0, **flag)) == [0, 0, 3, 4, 5, 6]
    assert starts(lambda i: lax.dynamic_update_index_in_dim(x, 0.0, i, 0, **flag)) == [0, 2, 3, 4, 5, 6]
    both = lambda i: lax.dynamic_slice(x.reshape(2, 3), (i, i), (1, 2), allow_negative_indices=(False, True))
    assert starts(both) == [[2, 3]]
    with pytest.raises(BoundsError, match="start -2 is negative"):
        lax.dynamic_slice(x, (-2,), (2,), **flag)
    with pytest.raises(ShapeError, match="allow_negative_indices"):
        lax.dynamic_slice(x, (0,), (2,), allow_negative_indices=(True, True))


def test_dynamic_slices_of_matrices():
    x = np.arange(24.0).reshape(4, 6)
    np.testing.assert_array_equal(lax.dynamic_slice(x, fnp.asarray([1, 2]), [2, 3]), x[1:3, 2:5])
    np.testing.assert_array_equal(lax.dynamic_index_in_dim(x, 2, 1, keepdims=False), x[:, 2])
    got = lax.dynamic_update_index_in_dim(x, np.zeros(4), fnp.asarray(2), 1)
    np.testing.assert_array_equal(got, np.where(np.arange(6) == 2, 0, x))
    got = lax.dynamic_update_slice_in_dim(x, np.zeros((1, 6)), 3, 0)
    np.testing.assert_array_equal(got[3], np.zeros(6))
    rows = ft.vmap(lambda i: lax.dynamic_index_in_dim(x, i, keepdims=False))(fnp.asarray([3, -4, 1]))
    np.testing.assert_array_equal(rows, x[[3, 0, 1]])
    slope = ft.grad(lambda x: fnp.sum(lax.dynamic_slice(x, (1, 1), (2, 2)) ** 2))(x)
    np.testing.assert_array_equal(slope[1:3, 1:3], 2 * x[1:3, 1:3])
    with pytest.raises(ShapeError, match="entries for 2 dimensions"):
        lax.dynamic_slice(x, [0], [1])
    with pytest.raises(ShapeError, match="does not fit"):
        lax.dynamic_slice(x, [0, 0], [5, 1])


def test_gather_and_scatter():
    x = np.arange(12.0).reshape(4, 3)
    rows = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    at = np.array([[2], [0], [7]], np.int32)
    got = np.asarray(lax.gather(x, at, rows, (1, 3)))
    np.testing.assert_array_equal(got[:2], x[[2, 0]])
    assert np.isnan(got[2]).all()
    np.testing.assert_array_equal(lax.gather(x, at, rows, [1, 3], mode="clip")[2], x[3])
    np.testing.assert_array_equal(lax.gather(x, at, rows, (1, 3), mode="fill", fill_value=-1)[2], [-1] * 3)
    assert lax.gather(x, at, rows, (1, 3), mode=lax.GatherScatterMode.CLIP).shape == (3, 3)
    for name, mode in {"clip": "CLIP", "drop": "FILL_OR_DROP", None: "FILL_OR_DROP"}.items():
        assert lax.GatherScatterMode.from_any(name).name == mode
    with pytest.raises(ArgumentError, match="'no'"):
        lax.GatherScatterMode.from_any("no")
    into = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    for f, op in (
        (lax.scatter_add, np.add),
        (lax.scatter_sub, np.subtract),
        (lax.scatter_mul, np.multiply),
        (lax.scatter_max, np.maximum),
        (lax.scatter_min, np.minimum),
    ):
        expected = x.copy()
        op.at(expected, at[:2, 0], 5.0)
        np.testing.assert_array_equal(f(x, at, np.full((3, 3), 5.0), into, mode="drop"), expected)
    with pytest.raises(ArgumentError, match="unknown"):
        lax.gather(x, at, rows, (1, 3), mode="wrap")


# ----------------------------------------------------------------------------------------------- products, reductions
def test_products():
    a, b = RNG.normal(size=(5, 2, 3)), RNG.normal(size=(5, 3, 4))
    np.testing.assert_allclose(lax.batch_matmul(a, b), a @ b)
    np.testing.assert_allclose(lax.dot(a[0], b[0]), a[0] @ b[0])
    np.testing.assert_allclose(lax.dot(a[0], b[0][:, 0], precision=lax.Precision.HIGHEST), a[0] @ b[0][:, 0])
    preset = lax.DotAlgorithmPreset.BF16_BF16_F32_X3
    text = ft.jit(lambda a, b: lax.dot(a, b, precision=preset)).lower(np.float32(a[0]), np.float32(b[0])).as_text()
    assert "lhs_precision_type = bf16" in text and "num_primitive_operations = 3" in text
    got = lax.dot_general(a, b, ([[2], [1]], [[0], [0]]), precision="highest", preferred_element_type="float64")
    np.testing.assert_allclose(got, a @ b)
    with pytest.raises(ShapeError, match="dot_general"):
        lax.dot(a, b)
    with pytest.raises(ShapeError, match="size 2"):
        lax.dot(a[0].T, b[0])


@pytest.mark.parametrize("padding", ["VALID", "SAME", "SAME_LOWER", [(1, 0), (2, 3)]])
@pytest.mark.parametrize(("strides", "holes"), [((1, 1), (1, 1)), ((2, 3), (1, 1)), ((1, 2), (2, 1))])
def test_convolutions(padding, strides, holes):
    x, w = RNG.normal(size=(2, 7, 8, 3)), RNG.normal(size=(3, 2, 3, 4))
    got = lax.conv_general_dilated(
        x, w, strides, padding, rhs_dilation=holes, dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    wide = np.zeros(((3 - 1) * holes[0] + 1, (2 - 1) * holes[1] + 1, 3, 4))
    wide[:: holes[0], :: holes[1]] = w
    pads = padding
    if isinstance(padding, str):
        pads = lax.padtype_to_pads((7, 8), wide.shape[:2], strides, padding)
        if padding != "VALID":
            assert got.shape[1:3] == (math.ceil(7 / strides[0]), math.ceil(8 / strides[1]))
    padded = np.pad(x, [(0, 0), *pads, (0, 0)])
    step = (slice(None, None, strides[0]), slice(None, None, strides[1]))
    expected = np.stack([
        sum(signal.correlate(padded[n, ..., c], wide[..., c, o], "valid") for c in range(3))[step]
        for n in range(2) for o in range(4)
    ]).reshape(2, 4, *got.shape[1:3])  # fmt: skip
    np.testing.assert_allclose(got, expected.transpose(0, 2, 3, 1), atol=1e-12)


def test_convolutions_in_other_layouts():
    x, w = RNG.normal(size=(2, 4, 9)), RNG.normal(size=(6, 2, 3))
    grouped = lax.conv_general_dilated(x, w, (1,), "VALID", feature_group_count=2)
    halves = [lax.conv(x[:, 2 * g : 2 * g + 2], w[3 * g : 3 * g + 3], (1,), "VALID") for g in range(2)]
    np.testing.assert_allclose(grouped, np.concatenate(halves, 1), atol=1e-12)
    stretched = lax.conv_with_general_padding(x[:, :2], w, (1,), [(2, 2)], (2,), None)
    spread = np.zeros((2, 2, 17))
    spread[..., ::2] = x[:, :2]
    np.testing.assert_allclose(stretched, lax.conv(spread, w, (1,), [(2, 2)]), atol=1e-12)
    with pytest.raises(ArgumentError, match="SAME_LOWER"):
        lax.conv(x[:, :2], w, (1,), "HALF")
    with pytest.raises(ArgumentError, match="do not name"):
        lax.conv_general_dilated(x, w, (1,), "VALID", dimension_numbers=("NCH", "OIW", "NCW"))
    with pytest.raises(ShapeError, match="features"):
        lax.conv(x, w, (1,), "VALID")
    with pytest.raises(ShapeError, match="cannot be convolved"):
        lax.conv(x, w[0], (1,), "VALID")
    with pytest.raises(ArgumentError, match="no meaning"):
        lax.conv_general_dilated(x[:, :2], w, (1,), "SAME", lhs_dilation=(2,))


REDUCTIONS = {"reduce_sum": np.sum, "reduce_prod": np.prod, "reduce_max": np.max, "reduce_min": np.min}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axes", [(), (0,), (-1, 0), [1]])
def test_reductions(name, axes):
    np.testing.assert_allclose(getattr(lax, name)(X, axes), REDUCTIONS[name](X, axis=tuple(axes)), rtol=1e-6)


def test_other_reductions():
    assert lax.reduce_and(X > 0.2, (0, 1)).item() == (X > 0.2).all() and lax.reduce_or(X > 0.8, (0,)).shape == (3,)
    for name, f in {"cumsum": np.cumsum, "cumprod": np.cumprod, "cummax": np.maximum.accumulate}.items():
        np.testing.assert_allclose(getattr(lax, name)(X, -1), f(X, 1), rtol=1e-6)
        np.testing.assert_allclose(getattr(lax, name)(X, 1, reverse=True), f(X[:, ::-1], 1)[:, ::-1], rtol=1e-6)
    assert lax.argmax(X, -1).tolist() == X.argmax(-1).tolist() and lax.argmin(X, 0, "int64").dtype == np.int64
    with pytest.raises(ShapeError, match="twice"):
        lax.reduce_sum(X, (0, -2))
    with pytest.raises(ShapeError, match="rank 2"):
        lax.reduce_sum(X, (2,))


@pytest.mark.parametrize(
    ("fold", "start"), [(lax.add, 0), (lax.add, 2.5), (lax.max, -np.inf), (lax.max, 0.4), (lax.min, np.inf)]
)
@pytest.mark.parametrize("padding", ["VALID", "SAME", [(1, 0), (0, 2)]])
@pytest.mark.parametrize("base", [(1, 1), (1, 2)])
def test_windows(fold, start, padding, base):
    x = RNG.normal(size=(5, 6))
    got = np.asarray(lax.reduce_window(x, start, fold, (2, 3), (1, 2), padding, base))
    traced = ft.jit(lambda x, s: lax.reduce_window(x, s, fold, (2, 3), (1, 2), padding, base))(x, np.float64(start))
    np.testing.assert_allclose(got, traced)
    spread = np.full((5, 5 * base[1] + 1), float(start))
    spread[:, :: base[1]] = x
    pads = lax.padtype_to_pads(spread.shape, (2, 3), (1, 2), padding) if isinstance(padding, str) else padding
    full = np.pad(spread, pads, constant_values=start)
    op = {lax.add: np.sum, lax.max: np.max, lax.min: np.min}[fold]
    for i, j in np.ndindex(*got.shape):
        window = np.append(full[i : i + 2, 2 * j : 2 * j + 3].ravel(), start)
        np.testing.assert_allclose(got[i, j], op(window), atol=1e-12)


def test_windows_of_integers_and_errors():
    assert lax.reduce_window(np.arange(4), -np.inf, lax.max, (2,), (2,), "VALID").tolist() == [1, 3]
    assert lax.reduce_window(np.arange(4), 0, lax.add, (2,)).tolist() == [1, 3, 5]
    with pytest.raises(ShapeError, match="window_dimensions"):
        lax.reduce_window(X, 0.0, lax.add, (1,), (1, 1), "VALID")


def test_sorting():
    x = RNG.normal(size=(3, 50))
    np.testing.assert_array_equal(lax.sort(x), np.sort(x))
    np.testing.assert_array_equal(lax.sort(x, dimension=0), np.sort(x, 0))
    keys = RNG.integers(0, 5, 50)
    got, order = lax.sort_key_val(keys, np.arange(50))
    np.testing.assert_array_equal(order, np.argsort(keys, kind="stable"))
    first, second, third = lax.sort((keys, x[0], x[1]), num_keys=2)
    by_both = np.lexsort((x[0], keys))
    np.testing.assert_array_equal(np.stack([first, second, third]), np.stack([keys, x[0], x[1]])[:, by_both])
    np.testing.assert_array_equal(got, keys[order])
    with pytest.raises(ArgumentError, match="num_keys"):
        lax.sort((keys,), num_keys=2)


# -------------------------------------------------------------------------------------------------------- collectives
def test_collectives():
    x = np.arange(6.0).reshape(2, 3)
    over = lambda f, **kwargs: ft.vmap(f, axis_name="i", **kwargs)
    np.testing.assert_array_equal(over(lambda v: lax.psum({"a": v}, "i"))(x)["a"], np.stack([x.sum(0)] * 2))
    np.testing.assert_array_equal(over(lambda v: lax.pmean(v, "i"))(x), np.stack([x.mean(0)] * 2))
    np.testing.assert_array_equal(over(lambda v: lax.pmax(v, "i"))(x), np.stack([x.max(0)] * 2))
    np.testing.assert_array_equal(over(lambda v: lax.pmin(v, "i"))(x), np.stack([x.min(0)] * 2))
    np.testing.assert_array_equal(over(lambda v: v * 0 + lax.psum(1, "i") + lax.axis_size("i"))(x), x * 0 + 4)
    np.testing.assert_array_equal(over(lambda v: v * 0 + lax.psum(fnp.ones(3), "i"))(x), x * 0 + 2)
    both = ft.vmap(over(lambda v: lax.psum(v, ("i", "j"))), axis_name="j")(x)
    np.testing.assert_array_equal(both, np.full((2, 3), 15.0))
    places = ft.vmap(over(lambda v: lax.axis_index(("j", "i"))), axis_name="j")(x)
    np.testing.assert_array_equal(places, np.arange(6).reshape(2, 3))
    slopes = ft.grad(lambda x: fnp.sum(over(lambda v: lax.psum(v, "i") ** 2)(x)))(x)
    np.testing.assert_allclose(slopes, np.stack([4 * x.sum(0)] * 2))
    with pytest.raises(ArgumentError, match="no axis named 'k'"):
        over(lambda v: lax.psum(v, "k"))(x)
    with pytest.raises(ArgumentError, match="axis_name"):
        lax.axis_index("i")


SLOPES = {"sin": np.cos, "logistic": lambda x: special.expit(x) * special.expit(-x), "rsqrt": lambda x: -0.5 * x**-1.5}


@pytest.mark.parametrize("name", SLOPES)
def test_derivatives(name):
    slope = ft.grad(lambda x: lax.reduce_sum(getattr(lax, name)(x), (0, 1)))(X)
    np.testing.assert_allclose(slope, SLOPES[name](X), rtol=1e-5)


def test_every_row_has_its_function():
    from functorch_like.core import TABLE

    renamed = {"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "not": "bitwise_not"}
    renamed["reduce_scatter"] = "psum_scatter"
    renamed["regularized_incomplete_beta"] = "betainc"
    inner = {
        "incomplete_beta_grad", "zeta_derivative", "solve", "pinv",
        "copy", "share", "threefry2x32", "philox4x32", "call", "ffi_call",
        "reduce_window_sum", "reduce_window_max", "reduce_window_min",
        "select_and_gather_add", "select_and_scatter_add", "one_minus_square", "tanh_slope",
        "half_integer_pow", "call_exported", "linear_call",
        # These are reached through other functions: ft.pure_callback, ft.checkify, ft.random, ft.checkpoint, ...
        "debug_callback", "io_callback", "pure_callback", "check", "draw", "name", "platform_index", "probe",
        "inspect_sharding",
    }  # fmt: skip
    missing = [
        name
        for name, row in TABLE.items()
        if row.where.startswith("primitives/") and name not in inner
        if not any(hasattr(room, renamed.get(name, name)) for room in (lax, lax.linalg))
    ]
    assert not missing
