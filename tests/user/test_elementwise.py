import operator

import numpy as np
import pytest
from support.compare import agrees, ours, same

import functorch_like as ft
import functorch_like.numpy as fnp

SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 0.5, -0.5, 3.0, 1e-8, np.inf, -np.inf, np.nan, 1e10, -7.0]
FLOAT = [
    "exp",
    "exp2",
    "expm1",
    "log",
    "log1p",
    "log2",
    "log10",
    "sqrt",
    "cbrt",
    "sin",
    "cos",
    "tan",
    "arcsin",
    "arccos",
    "arctan",
    "sinh",
    "cosh",
    "tanh",
    "arcsinh",
    "arccosh",
    "arctanh",
    "deg2rad",
    "rad2deg",
    "sinc",
    "negative",
    "positive",
    "absolute",
    "sign",
    "square",
    "floor",
    "ceil",
    "trunc",
    "fix",
    "rint",
    "reciprocal",
    "angle",
    "isnan",
    "isinf",
    "isfinite",
    "isposinf",
    "isneginf",
    "signbit",
    "logical_not",
    "nan_to_num",
]
COMPLEX = [
    "exp",
    "expm1",
    "log",
    "log1p",
    "log2",
    "log10",
    "sqrt",
    "sin",
    "cos",
    "tan",
    "arcsin",
    "arccos",
    "arctan",
    "sinh",
    "cosh",
    "tanh",
    "arcsinh",
    "arccosh",
    "arctanh",
    "negative",
    "absolute",
    "sign",
    "square",
    "real",
    "imag",
    "conjugate",
    "reciprocal",
    "angle",
    "isnan",
    "isinf",
    "isfinite",
    "logical_not",
]
BINARY = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "floor_divide",
    "remainder",
    "fmod",
    "power",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "hypot",
    "arctan2",
    "copysign",
    "logaddexp",
    "logaddexp2",
    "nextafter",
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
    "isclose",
]


@pytest.mark.parametrize("name", FLOAT)
def test_one_float(name):
    for dtype in (np.float64, np.float32):
        x = np.array(SPECIAL, dtype)
        agrees(name, np.where(np.abs(x) > 1e5, 1, x).astype(dtype) if name in ("sin", "cos", "tan") else x)


@pytest.mark.parametrize("name", COMPLEX)
def test_one_complex(name):
    rng = np.random.default_rng(0)
    agrees(name, rng.normal(size=9) + 1j * rng.normal(size=9))


@pytest.mark.parametrize("name", [n for n in FLOAT if n not in ("rint", "reciprocal", "fix")])
def test_one_integer(name):
    agrees(name, np.array([-3, 0, 2, 5], np.int32))


@pytest.mark.parametrize("name", BINARY)
def test_two(name):
    # NumPy's floor_divide of infinities differs from the standard, which test_array_api.py tests.
    special = [v for v in SPECIAL if not np.isinf(v)] if name == "floor_divide" else SPECIAL
    a, b = np.meshgrid(special, special)
    agrees(name, a, b)
    agrees(name, a.astype(np.float32), b.astype(np.float32))
    i, j = np.meshgrid(np.arange(-5, 6, dtype=np.int32), np.arange(-5, 6, dtype=np.int32))
    agrees(name, i, abs(j) if name == "power" else j)


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"])
def test_bits(name):
    agrees(name, np.array([-8, 7, 100], np.int32), np.array([1, 2, 3], np.int32))
    if "shift" not in name:
        agrees(name, np.array([True, False]), np.array([[True], [False]]))


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "minimum", "equal", "less"])
def test_booleans(name):
    agrees(name, np.array([True, False, True, False]), np.array([True, True, False, False]))


def test_selection():
    rng = np.random.default_rng(0)
    y, x = rng.normal(size=(4, 5)), rng.normal(size=(3, 4, 5))
    agrees("where", y > 0, y, 0.5)
    agrees("where", y[:1] > 0, y, x)
    agrees("where", y > 0)
    agrees("clip", y, -0.5, 0.5)
    agrees("clip", y, None, y[0])
    agrees("select", [y > 1, y > 0], [y, -y], 7.0)
    agrees("nan_to_num", np.array([np.nan, np.inf, -np.inf, 1]), nan=3.0, posinf=5.0)
    agrees("nan_to_num", np.array([np.nan, np.inf, -np.inf, 1]), nan=np.inf, posinf=-np.inf, neginf=5.0)
    for decimals in (0, 2, -1):
        agrees("round", 100 * y, decimals)
    agrees("round", np.array([15, 25, -15, 35, 149, -151]), -1)
    agrees("allclose", y, y + 1e-9)
    agrees("array_equal", y, y[0])


DTYPES = {
    "f32": np.float32, "f64": np.float64, "i32": np.int32, "i8": np.int8, "u8": np.uint8, "i64": np.int64, "f16":
    np.float16, "c64": np.complex64, "bf16": fnp.bfloat16, "bool": np.bool_,
}  # fmt: skip
PROMOTED = [
    ("f32", 1.0, "float32", False),
    ("f32", np.float64(2), "float32", False),
    ("f32", np.array(2.0), "float32", False),
    ("i32", 1, "int32", False),
    ("i32", 1.0, "float32", True),
    ("i8", 1, "int8", False),
    ("i64", 1.0, "float32", True),
    ("bf16", 2.5, "bfloat16", False),
    ("bool", 1, "int32", True),
    ("bool", 1.5, "float32", True),
    ("c64", 1, "complex64", False),
    ("f32", 1j, "complex64", False),
    ("f64", 1j, "complex128", False),
    ("f16", 2, "float16", False),
    ("f32", 2**40, "float32", False),
    ("i64", 2**40, "int64", False),
    ("f32", "f64", "float64", False),
    ("i8", "i32", "int32", False),
    ("bf16", "f32", "float32", False),
    ("u8", "i8", "int16", False),
    ("i64", "f32", "float32", False),
    ("f16", "bf16", "float32", False),
    ("i32", "f16", "float16", False),
]


@pytest.mark.parametrize(("left", "right", "name", "weak"), PROMOTED)
def test_promotion(left, right, name, weak):
    x = fnp.ones(2, DTYPES[left])
    y = fnp.ones(2, DTYPES[right]) if isinstance(right, str) else right
    for out in (x + y, y + x, ft.jit(lambda x: x + y)(x), ft.eval_shape(lambda x: y + x, x)):
        assert (out.dtype.name, out.weak_type) == (name, weak)


def test_weak_values_stay_weak():
    a = fnp.asarray(2.0)
    for out in (a * 2, 1 / a, a**2, a % 2, fnp.log2(a), fnp.sinc(a), fnp.maximum(a, 0), fnp.where(True, a, 0), abs(a)):
        assert out.weak_type


def test_python_floats_meet_float64_exactly():
    x = fnp.ones(2, "float64")
    results = [
        x * 0.1, 0.1 * x, fnp.maximum(0 * x, 0.1), fnp.where(x > 1, x, 0.1), fnp.clip(0 * x, 0.1), x.at[0].set(0.1),
        ft.jit(lambda x: x * 0.1)(x), fnp.full(2, 0.1, "float64"), fnp.linspace(0.1, 1, 2, dtype="float64"),
    ]  # fmt: skip
    assert [float(r[0]) for r in results] == [0.1] * len(results)


def test_ints_beyond_the_dtype():
    i8 = fnp.ones(2, "int8")
    for f in (
        lambda x: x + 300,
        lambda x: x.at[0].set(300),
        lambda x: fnp.maximum(-129, x),
        lambda x: x * np.int64(300),
    ):
        with pytest.raises(OverflowError, match="out of bounds for int8"):
            f(i8)
        with pytest.raises(OverflowError, match="out of bounds for int8"):
            ft.jit(f)(i8)
    assert (i8 < 300).tolist() == [True, True]
    assert (fnp.ones(2, "uint8") > -1).tolist() == [True, True]
    with pytest.raises(OverflowError):
        fnp.asarray([300], "int8")
    assert fnp.asarray([2**40]).dtype == np.int64


@pytest.mark.parametrize("op", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "eq", "lt", "ge"])
def test_operators(op):
    rng = np.random.default_rng(1)
    a, b = rng.uniform(0.5, 3, size=(2, 3, 3))
    f = getattr(operator, op)
    want = f(a, b)
    x, y = ours((a, b))
    for got in (f(x, y), f(a, y), f(x, b), ft.jit(f)(x, y), ft.vmap(f)(x[None], y[None])[0]):
        same(got, want)
    if op != "matmul":
        same(f(x, 2), f(a, 2))
        same(f(2, x), f(2, a))
        same(ft.jit(lambda x: f(2, x))(x), f(2, a))


def test_powers_by_static_ints():
    x = fnp.asarray([-2.0, 0.0, 3.0])
    assert (x**2).tolist() == [4, 0, 9]
    assert "integer_pow" in str(ft.make_jaxpr(lambda x: x**3)(x))
    assert ft.grad(lambda x: (x**2).sum())(x).tolist() == [-4, 0, 6]
    with pytest.raises(ValueError, match="negative power"):
        _ = fnp.arange(3) ** -1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_powers_by_halves_are_roots_with_the_special_values_of_pow(dtype):
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -2.0, 1.0, 4.0, 1.5e25, 6e-25], dtype)
    powers = (-2.5, -1.5, -0.5, 1.5, 2.5)
    results = ft.jit(lambda x: [x**y for y in powers])(x)
    for got, y in zip(results, powers, strict=True):
        with np.errstate(all="ignore"):
            want = np.power(x, np.asarray(y, dtype))
        np.testing.assert_allclose(got, want, rtol=4 * np.finfo(dtype).eps)
        assert not np.signbit(np.asarray(got)[:2]).any()
    assert "half_integer_pow" in str(ft.make_jaxpr(lambda x: x**-1.5)(x))
    narrow = fnp.ones(3, "float16")  # in which products lose digits
    assert " pow" in str(ft.make_jaxpr(lambda x: x**-1.5)(narrow))


def difference(f, x, h=1e-6):
    g = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        d = np.zeros_like(x)
        d[i] = h
        g[i] = (float(f(fnp.asarray(x + d))) - float(f(fnp.asarray(x - d)))) / (2 * h)
    return g


SMOOTH = [
    lambda x: fnp.logaddexp(x, 0.3),
    lambda x: fnp.hypot(x, 2.0),
    lambda x: fnp.sinc(x),
    lambda x: x % 0.7,
    lambda x: fnp.std(x, 0),
    lambda x: fnp.linalg.norm(x, axis=1),
    lambda x: fnp.einsum("ij,kj,k->i", x, x, x[:, 0]),
    lambda x: fnp.median(x, 0),
    lambda x: x[::-1, 1:],
    lambda x: x[fnp.asarray([0, 0, 2])],
    lambda x: fnp.sort(x, 0) * fnp.arange(3.0, dtype="float64")[:, None],
    lambda x: fnp.cumsum(x) * fnp.cumprod(x),
    lambda x: x.at[1].multiply(x[0]),
    lambda x: fnp.pad(x, 1, mode="reflect"),
    lambda x: fnp.nan_to_num(x) ** 1.5,
    lambda x: fnp.prod(x, 0),
    lambda x: x.at[fnp.asarray([0, 0])].add(x[1]),
    lambda x: fnp.where(x > 1, x, fnp.log(x)),
    lambda x: fnp.var(x, 1) / x.mean(),
]


@pytest.mark.parametrize("f", SMOOTH, ids=range(len(SMOOTH)))
def test_derivatives(f):
    x = np.random.default_rng(3).uniform(0.5, 2.0, size=(3, 4))
    weighted = lambda x: (f(x) * fnp.cos(fnp.arange(f(x).size, dtype="float64")).reshape(f(x).shape)).sum()
    want = difference(weighted, x)
    for g in (ft.grad(weighted), ft.jit(ft.grad(weighted))):
        np.testing.assert_allclose(np.asarray(g(fnp.asarray(x))), want, rtol=1e-5, atol=1e-6)


def test_derivatives_at_the_edge():
    g = ft.grad(fnp.logaddexp, (0, 1))
    assert [float(d) for d in g(-np.inf, -np.inf)] == [0.5, 0.5]
    assert [float(d) for d in g(0.0, -np.inf)] == [1.0, 0.0]
    assert ft.grad(fnp.linalg.norm)(fnp.zeros(3)).tolist() == [0.0] * 3
    assert [float(d) for d in ft.grad(fnp.maximum, (0, 1))(1.0, 1.0)] == [0.5, 0.5]
    assert float(ft.grad(lambda x: fnp.where(x > 0, x, 0.0))(-1.0)) == 0.0


@pytest.mark.parametrize("way", [lambda f: f, ft.jit], ids=["eager", "jit"])
@pytest.mark.parametrize(("name", "base"), [("logaddexp", np.e), ("logaddexp2", 2.0)])
def test_logarithms_of_complex_sums_are_principal_values(way, name, base):
    f = getattr(fnp, name)
    draw = np.random.default_rng(4)
    x, y = draw.normal(size=(2, 50)) * 3 + 20j * draw.normal(size=(2, 50))
    np.testing.assert_allclose(way(f)(x, y), np.log(base**x + base**y) / np.log(base), rtol=1e-11)
    slopes = way(ft.grad(lambda a, b: f(a, b).real, (0, 1)))
    np.testing.assert_allclose(slopes(1 + 9j, 1 + 9j), [0.5, 0.5], rtol=1e-6)  # equal numbers
    assert (
        way(f)(complex(-np.inf), 1 + 2j).item() == 1 + 2j and way(f)(complex(-np.inf), complex(-np.inf)).real == -np.inf
    )


@pytest.mark.parametrize("way", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_signed_zeros_of_complex_numbers_stay_apart(way):
    zeros = [complex(a, b) for a in (0.0, -0.0) for b in (0.0, -0.0)]
    signs = [(np.signbit(z.real), np.signbit(z.imag)) for z in zeros]
    one = fnp.ones(1, "bool")
    for make in (
        lambda z: fnp.full((1,), z),
        lambda z: fnp.where(one, z, fnp.ones(1, "complex64")),
        lambda z: fnp.full_like(fnp.ones(1, "complex64"), z),
    ):
        got = way(lambda: [make(z) for z in zeros])()  # noqa: B023
        assert [(np.signbit(g.real)[0], np.signbit(g.imag)[0]) for g in map(np.asarray, got)] == signs


def test_powers_of_two_of_complex_numbers():
    z = np.array([1 + 2j, -3.5 - 1j, 100 + 50j, 127.9 + 0.3j, 3j, -0.0], np.complex64)
    for dtype, rtol in ((np.complex64, 3e-6), (np.complex128, 1e-13)):
        expected = np.exp(z.astype(complex) * np.log(2))
        np.testing.assert_allclose(fnp.exp2(z.astype(dtype)), expected, rtol=rtol)
    assert fnp.exp2(np.complex64(complex(-np.inf, np.inf))) == 0
    # A power of two is exact, however large.
    assert fnp.exp2(np.complex64(100)) == 2.0**100
    ft.testing.check_grads(fnp.exp2, (np.array([0.5 - 1.5j, 1 + 1j]),), order=2)


@pytest.mark.parametrize("name", ["remainder", "mod"])
def test_derivatives_of_remainders_where_nothing_remains(name):
    x, y = np.array([0.0, 4.0, -4.0, 4.0, -0.0, 5.5, -5.5]), np.array([2.0, 2.0, 2.0, -2.0, -2.0, 2.0, 2.0])
    by_x, by_y = ft.vmap(ft.grad(getattr(fnp, name), argnums=(0, 1)))(x, y)
    np.testing.assert_array_equal(by_x, np.ones(7))
    np.testing.assert_array_equal(by_y, -np.floor(x / y))
    np.testing.assert_array_equal(np.signbit(getattr(fnp, name)(x, y)), np.signbit(np.remainder(x, y)))


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
def test_booleans_divide_as_integers(name):
    x, y = np.array([False, True, False, True]), np.array([True, True, False, False])
    with np.errstate(divide="ignore"):
        expected = getattr(np, name)(x, y)
    out = getattr(fnp, name)(x, y)
    assert out.dtype == np.int32
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(ft.jit(getattr(fnp, name))(x, y), expected)


@pytest.mark.parametrize("dtype", [fnp.bfloat16, np.float16, np.float32, np.float64])
def test_cube_roots_of_the_least_numbers(dtype):
    """Subnormal numbers may count as zeros, whose roots have their sign."""
    info = fnp.finfo(dtype)
    x = np.array([float(info.tiny) * s for s in (1, -1, 0.5, -0.5, 0.25, -0.25, 0.0, -0.0)]).astype(dtype)
    want = np.cbrt(x.astype(np.float64))
    for size in (1, 5000):
        got = np.asarray(ft.jit(fnp.cbrt)(np.tile(x, size)))[-8:].astype(np.float64)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
        np.testing.assert_allclose(got[:2], want[:2], rtol=2 * float(info.eps))
        zero = got[2:] == 0
        np.testing.assert_allclose(got[2:][~zero], want[2:][~zero], rtol=2 * float(info.eps))
