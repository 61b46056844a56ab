"""Edge cases of values, derivatives and arguments: zeros, infinities, traced values, arrays of other libraries."""

import numpy as np
import pytest
import scipy.special as scipy_special

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax, random
from functorch_like.errors import ArgumentError, DtypeError
from functorch_like.scipy import special

D = np.float64
RNG = np.random.default_rng(0)


def slope(f, x, h=1e-6):
    """Return the central difference of a function of one number, in float64."""
    return (f(D(x + h)) - f(D(x - h))) / (2 * h)


# --------------------------------------------------------------------------------------------- derivatives at the edges
@pytest.mark.parametrize("y", [0.25, 1.0, 3.0])
def test_slopes_of_x_log_y_where_x_is_zero(y):
    for ours, theirs in ((special.xlogy, scipy_special.xlogy), (special.xlog1py, scipy_special.xlog1py)):
        np.testing.assert_allclose(ft.grad(ours)(D(0), D(y)), slope(lambda x, f=theirs: f(x, y), 0), rtol=1e-6)
        assert ft.grad(ours, 1)(D(0), D(y)) == 0
        mixed = ft.grad(ft.grad(ours), 1)(D(0), D(y))
        np.testing.assert_allclose(mixed, 1 / y if ours is special.xlogy else 1 / (1 + y))
        np.testing.assert_allclose(mixed, ft.grad(ft.grad(ours, 1))(D(0), D(y)))


def test_slopes_of_x_log_y_where_both_are_zero():
    assert ft.grad(special.xlogy)(0.0, 0.0) == -np.inf and ft.grad(special.xlogy, 1)(0.0, 0.0) == 0
    assert ft.grad(special.xlog1py)(0.0, -1.0) == -np.inf and ft.grad(special.xlog1py, 1)(0.0, -1.0) == 0
    assert special.xlogy(0.0, 0.0) == 0 and special.xlogy(0.0, -1.0) == 0 and np.isnan(special.xlogy(0.0, np.nan))


def test_slopes_of_entropies_where_x_is_zero():
    x, y = D(1e-300), 0.5
    assert ft.grad(special.entr)(0.0) == np.inf and ft.grad(special.entr)(D(0)) == np.inf
    np.testing.assert_allclose(ft.grad(special.entr)(x), -np.log(x) - 1)
    np.testing.assert_allclose(ft.grad(special.kl_div, 1)(D(0), D(y)), slope(lambda v: scipy_special.kl_div(0, v), y))
    for ours, theirs in ((special.rel_entr, scipy_special.rel_entr), (special.kl_div, scipy_special.kl_div)):
        np.testing.assert_allclose(ft.grad(ours)(D(0.3), D(y)), slope(lambda v, f=theirs: f(v, y), 0.3), rtol=1e-6)
        np.testing.assert_allclose(ft.grad(ours, 1)(D(0.3), D(y)), slope(lambda v, f=theirs: f(0.3, v), y), rtol=1e-6)


def test_relative_entropies_have_finite_slopes_where_x_is_zero_or_the_value_is_infinite():
    """As in JAX 0.10.2, x log(x / y) counts as a constant there, so a loss may mask such elements out."""
    for x, y in ((0.0, 2.0), (0.0, 0.0), (1.0, 0.0), (-1.0, 2.0), (1.0, -1.0)):
        assert [ft.grad(special.rel_entr, i)(D(x), D(y)) for i in (0, 1)] == [0, 0]
        assert [ft.grad(special.kl_div, i)(D(x), D(y)) for i in (0, 1)] == [-1, 1]
        for ours in (special.rel_entr, special.kl_div):
            second = [ft.grad(ft.grad(ours, i), j)(D(x), D(y)) for i in (0, 1) for j in (0, 1)]
            assert second == [0, 0, 0, 0]
    p, q = np.array([0.0, 0.25, 0.75]), np.array([0.5, 0.0, 0.5])
    loss = lambda p: ft.numpy.sum(ft.numpy.where(q > 0, special.rel_entr(p, q), 0.0))
    np.testing.assert_allclose(ft.grad(loss)(p), [0, 0, np.log(1.5) + 1], rtol=1e-12)


@pytest.mark.parametrize("x", [4.0, 0.5, 1e-3])
def test_mixed_derivative_of_a_power_at_exponent_zero(x):
    power = lambda x, y: x**y
    want = slope(lambda y: y * x ** (y - 1), 0.0)
    np.testing.assert_allclose(ft.grad(ft.grad(power, 0), 1)(D(x), D(0)), want, rtol=1e-6)
    np.testing.assert_allclose(ft.grad(ft.grad(power, 1), 0)(D(x), D(0)), want, rtol=1e-6)
    for edge in (0.0, 1e-320, np.nan, np.inf):
        assert ft.grad(power)(D(edge), D(0)) == 0


def test_a_zero_tangent_does_not_meet_an_infinite_slope():
    @ft.custom_jvp
    def product(x, y):
        return x * y

    product.defjvps(lambda g, out, x, y: g * np.inf, lambda g, out, x, y: g * x)
    assert ft.jvp(lambda y: product(2.0, y), (3.0,), (1.0,))[1] == 2
    assert ft.grad(product, 1)(2.0, 3.0) == 2


# ------------------------------------------------------------------------------------------------------- special values
@pytest.mark.parametrize("theta", [-2.5, -0.5, 0.7, 4.0, 9.0])
def test_spherical_harmonics_outside_of_the_sphere(theta):
    n, m = np.array([1, 2, 3, 3]), np.array([1, -1, 2, 3])
    want = scipy_special.sph_harm_y(n, m, theta, 0.3)
    np.testing.assert_allclose(special.sph_harm_y(n, m, np.full(4, theta), np.full(4, 0.3)), want, atol=1e-14)


def test_spacing_of_negative_numbers():
    for x in (-5e-324, -1e-310, -2.2250738585072014e-308, -1.0, -1e300, 5e-324, 0.0, -0.0):
        np.testing.assert_array_equal(fnp.spacing(D(x)), np.spacing(D(x)))
    small = np.array([-1e-45, -1e-40, -1e-38], np.float32)
    np.testing.assert_array_equal(fnp.spacing(small), np.spacing(small))


def test_differences_of_order_zero():
    x = np.arange(3.0)
    np.testing.assert_array_equal(fnp.diff(x, n=0, prepend=1.0, append=x), np.diff(x, n=0, prepend=1.0, append=x))


def test_indices():
    for shape in ((2, 3), (4,), (0, 2), (2, 1, 3)):
        np.testing.assert_array_equal(fnp.indices(shape), np.indices(shape))
        for ours, theirs in zip(fnp.indices(shape, sparse=True), np.indices(shape, sparse=True), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert fnp.indices(()).shape == np.indices(()).shape and fnp.indices((2,), "float32").dtype == "float32"


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64, np.uint32, np.uint64])
def test_ldexp_of_numpy_integers(kind):
    assert fnp.ldexp(kind(3), kind(2)) == 12
    assert fnp.ldexp(np.float16(1), kind(100)) == np.inf
    np.testing.assert_array_equal(fnp.ldexp(D(3), np.array([2, 5], kind)), [12, 96])


def test_logaddexp_of_complex_numbers():
    x, y = (RNG.normal(size=6) + 1j * RNG.normal(size=6) for _ in range(2))
    np.testing.assert_allclose(fnp.logaddexp(x, y), np.log(np.exp(x) + np.exp(y)), rtol=1e-12)
    np.testing.assert_allclose(fnp.logaddexp(1000 + 1j, 1000 + 0j), 1000 + np.log(np.exp(1j) + 1), rtol=1e-6)
    np.testing.assert_allclose(fnp.logaddexp2(x, y), np.log(2**x + 2**y) / np.log(2), rtol=1e-12)


@pytest.mark.parametrize("shape", [(3, 2), (2, 3), (4, 3, 3)])
def test_raw_qr(shape):
    a = RNG.normal(size=shape)
    h, tau = fnp.linalg.qr(a, mode="raw")
    want = np.linalg.qr(a, mode="raw")
    np.testing.assert_allclose(h, want[0], atol=1e-12)
    np.testing.assert_allclose(tau, want[1], atol=1e-12)


# ------------------------------------------------------------------------------------------------- functions, arguments
def test_stop_gradient_of_what_holds_no_numbers():
    marker = object()
    tree = {"f": np.sin, "text": "a", "x": 2.0, "o": marker}
    assert lax.stop_gradient(np.sin) is np.sin and lax.stop_gradient(tree) == tree
    assert ft.grad(lambda x: x * lax.stop_gradient({"x": x, "f": np.sin})["x"])(3.0) == 3


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_roots_whose_solvers_close_over_what_is_differentiated(wrap):
    def root(a):
        f = lambda x: x**2 - a
        return lax.custom_root(f, D(1), lambda f, x: fnp.sqrt(a), lambda g, y: y / (2 * fnp.sqrt(a)))

    np.testing.assert_allclose(wrap(ft.grad(root))(D(4)), 0.25)
    np.testing.assert_allclose(ft.grad(wrap(root))(D(4)), 0.25)
    np.testing.assert_allclose(wrap(ft.grad(ft.grad(root)))(D(4)), slope(lambda a: 0.5 / np.sqrt(a), 4.0), rtol=1e-6)
    np.testing.assert_allclose(wrap(ft.vmap(ft.grad(root)))(np.array([1.0, 4.0])), [0.5, 0.25])
    np.testing.assert_allclose(ft.jvp(wrap(root), (D(4),), (D(1),))[1], 0.25)


def test_compile_time_evaluation_inside_of_derivatives():
    def f(x):
        with ft.ensure_compile_time_eval():
            y = fnp.sin(x)
        return x * y

    np.testing.assert_allclose(ft.grad(f)(D(2)), np.sin(2) + 2 * np.cos(2))
    np.testing.assert_allclose(ft.vmap(f)(np.array([1.0, 2.0])), [np.sin(1), 2 * np.sin(2)])


def test_integers_that_uint64_alone_holds():
    most = 2**64 - 1
    for made in (
        fnp.asarray([most, 1], "uint64"), fnp.asarray([[most], [True]], "uint64")[:, 0],
        fnp.full((2,), most, "uint64").at[1].set(1), fnp.full_like(fnp.zeros(2, "uint64"), most).at[1].set(1),
        ft.lax.full((2,), most, "uint64").at[1].set(1),
        ft.jit(lambda: fnp.full((2,), most, "uint64"))().at[1].set(1),
    ):  # fmt: skip
        assert made.dtype == "uint64" and made.tolist() == [most, 1]
    for outside in ([most, -1], [most + 1, 0]):
        with pytest.raises(ft.errors.NumberError, match="is out of bounds for uint64"):
            fnp.asarray(outside, "uint64")
    with pytest.raises(ft.errors.NumberError, match=r"name a dtype that holds it"):
        fnp.asarray(most)


def test_is_it_complex():
    for x, want in (
        ([1, 2j], True), ([1, [2.0, 3j]], True), ([1, 2.0], False), ((), False), (complex, True), (float, False),
        (np.complex64, True), (np.float32, False), (fnp.complex64, True), (np.dtype("complex128"), True), ("a", False),
        (None, False), (np.ones(2, complex), True), (ft.ShapeDtypeStruct((2,), "complex64"), True),
    ):  # fmt: skip
        assert fnp.iscomplexobj(x) is want, x
        assert fnp.isrealobj(x) is not want, x


@pytest.mark.parametrize("dtype", [np.complex64, "complex64", np.dtype("complex64"), object()])
def test_arrays_of_other_libraries_may_be_complex(dtype):
    class Foreign:
        def __array__(self, dtype=None, copy=None):
            return np.ones(2, np.complex64)

    Foreign.dtype = dtype
    assert fnp.iscomplexobj(Foreign()) and not fnp.isrealobj(Foreign())


def test_what_is_not_mapped_may_be_anything():
    double = lambda mode, x: 2 * x if mode == "double" else x
    np.testing.assert_array_equal(ft.vmap(double, in_axes=(None, 0))("double", np.ones(2)), [2, 2])
    np.testing.assert_array_equal(ft.jit(lambda x: ft.vmap(double, (None, 0))("no", x))(np.ones(2)), [1, 1])
    with pytest.raises(DtypeError, match=r"argument args\[0\] of vmap"):
        ft.vmap(double)("double", np.ones(2))


def test_axes_of_size_one_are_repeated_in_lax():
    a, b = RNG.normal(size=(3, 1)), RNG.normal(size=(1, 4))
    np.testing.assert_allclose(lax.add(a, b), a + b)
    np.testing.assert_allclose(ft.jit(lax.mul)(a, b), a * b)
    np.testing.assert_allclose(ft.grad(lambda a: lax.mul(a, b).sum())(a), np.full((3, 1), b.sum()))
    np.testing.assert_array_equal(lax.lt(a, np.zeros((3, 2))), np.repeat(a < 0, 2, 1))
    for bad in (np.ones((2, 1)), np.ones(1)):
        with pytest.raises(ft.errors.ShapeError):
            lax.add(a, bad)


@pytest.mark.parametrize("k", [-2, 0, 1, 5])
def test_traced_diagonals(k):
    x = RNG.normal(size=(2, 3, 4))
    for ours, theirs in (
        (lambda k: fnp.tri(3, 4, k), np.tri(3, 4, k)), (lambda k: fnp.eye(3, 4, k), np.eye(3, 4, k)),
        (lambda k: fnp.tril(x, k), np.tril(x, k)), (lambda k: fnp.triu(x, k), np.triu(x, k)),
    ):  # fmt: skip
        np.testing.assert_array_equal(ft.jit(ours)(k), theirs)
        np.testing.assert_array_equal(ft.vmap(ours)(np.array([k, 0]))[0], theirs)
        np.testing.assert_array_equal(ours(np.int32(k)), theirs)
    with pytest.raises(DtypeError, match=r"fnp\.eye takes an integer k, got "):
        ft.jit(lambda k: fnp.eye(3, k=k))(0.5)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16"])
@pytest.mark.parametrize("bounds", [(300,), (100, 140), (0, 600, 100), (70, -70, -1), (-100, 101, 200), (0, 90000, 30)])
def test_ranges_wrap_around_beyond_the_first_two_numbers(bounds, dtype):
    make = lambda: fnp.arange(*bounds, dtype=dtype)
    try:
        expected = np.arange(*bounds, dtype=dtype)
    except OverflowError:
        for f in (make, ft.jit(make)):
            with pytest.raises(OverflowError, match="out of bounds"):
                f()
    else:
        np.testing.assert_array_equal(make(), expected, strict=True)
        np.testing.assert_array_equal(ft.jit(make)(), expected, strict=True)


def test_ranges_as_axes():
    x = RNG.normal(size=(1, 2, 3))
    assert fnp.expand_dims(x, range(2)).shape == (1, 1, 1, 2, 3)
    np.testing.assert_array_equal(fnp.moveaxis(x, range(2), range(1, 3)), np.moveaxis(x, [0, 1], [1, 2]))
    np.testing.assert_array_equal(fnp.roll(x, 1, range(1, 3)), np.roll(x, 1, (1, 2)))
    np.testing.assert_allclose(fnp.sum(x, range(2)), x.sum((0, 1)))
    np.testing.assert_allclose(fnp.linalg.norm(x, axis=range(1, 3)), np.linalg.norm(x, axis=(1, 2)))
    np.testing.assert_allclose(ft.nn.softmax(x, range(1, 3)), np.exp(x) / np.exp(x).sum(), rtol=1e-6)


def test_cond_with_an_operand_for_each_function():
    choose = lambda p: lax.cond(p, 2.0, lambda x: x + 1, (3.0, 4.0), lambda y: y[0] * y[1])
    assert (choose(True), choose(False), ft.jit(choose)(True), ft.jit(choose)(False)) == (3, 12, 3, 12)


def test_shapes_of_whatever_has_one():
    class Described:
        shape, dtype = (2, 3), np.dtype("float32")

    for like in (Described(), ft.typeof(fnp.ones((2, 3))), np.ones((2, 3), np.float32)):
        assert ft.eval_shape(fnp.sum, like).shape == () and ft.eval_shape(lambda x: x.T, like).shape == (3, 2)
        assert ft.make_jaxpr(fnp.sin)(like).in_avals[0].shape == (2, 3)
    with pytest.raises(DtypeError, match="is not an array"):
        ft.eval_shape(fnp.sin, object())


def test_functions_for_platforms_that_are_not_here():
    choose = lambda x: lax.platform_dependent(x, cpu=lambda x: x + 1, tpu=lambda x: x, default=lambda x: x + 1)
    assert choose(1.0) == 2 and ft.jit(choose)(1.0) == 2
    with pytest.raises(ArgumentError, match="platform_dependent"):
        lax.platform_dependent(1.0, abacus=lambda x: x)


def test_compiled_functions_are_called_without_static_arguments():
    compiled = ft.jit(lambda n, x, mode: x * n if mode else x, static_argnums=(0, 2)).lower(3, 2.0, True).compile()
    assert compiled(2.0) == 6 and compiled(3, 2.0, True) == 6
    with pytest.raises(ArgumentError, match="was compiled for arguments"):
        compiled(2.0, 2.0)


def test_names_of_scalar_types():
    for name in ("float32", "int8", "complex64", "bfloat16", "float8_e4m3fn", "uint64"):
        assert getattr(fnp, name).__name__ == name
    assert fnp.bool_.__name__ == np.bool_.__name__
    assert repr(fnp.bool_) == "functorch_like.numpy.bool_"


def test_scalar_types_are_classes():
    class Kind(fnp.int8):
        FIRST = 1

    assert Kind.FIRST == 1 and Kind == fnp.int8 and fnp.zeros(2, Kind).dtype == Kind(3).dtype == "int8"
    assert issubclass(Kind, fnp.int8) and isinstance(np.int8(1), fnp.int8) and not isinstance(1, fnp.int8)
    assert repr(fnp.float32 | None) == "functorch_like.numpy.float32 | None"


def test_parameters_of_jax():
    x = RNG.normal(size=(3, 3))
    order = fnp.argsort(x, dtype="int64")
    assert order.dtype == "int64"
    np.testing.assert_array_equal(order, np.argsort(x))
    for method in ("lu", "qr"):
        np.testing.assert_allclose(fnp.linalg.slogdet(x, method=method)[1], np.linalg.slogdet(x)[1])
    with pytest.raises(ArgumentError, match="slogdet"):
        fnp.linalg.slogdet(x, method="no")
    assert ft.device_put(1.0, may_alias=True, donate=True) == 1


def test_categories_without_replacement():
    key = random.key(3)
    logits = np.log([0.5, 0.25, 0.15, 0.1])
    drawn = ft.vmap(lambda k: random.categorical(k, logits, shape=(2,), replace=False))(random.split(key, 20_000))
    drawn = np.asarray(drawn)
    assert (drawn[:, 0] != drawn[:, 1]).all()
    p = np.exp(logits)
    np.testing.assert_allclose(np.bincount(drawn[:, 0]) / len(drawn), p, atol=0.015)
    second = [sum(p[i] * p[j] / (1 - p[i]) for i in range(4) if i != j) for j in range(4)]
    np.testing.assert_allclose(np.bincount(drawn[:, 1]) / len(drawn), second, atol=0.015)
    batched = random.categorical(key, np.zeros((3, 5)), shape=(5, 3), replace=False)
    np.testing.assert_array_equal(np.sort(batched, axis=0), np.arange(5)[:, None].repeat(3, 1))
    with pytest.raises(ArgumentError, match="without replacement"):
        random.categorical(key, logits, shape=(5,), replace=False)


def test_attention_of_lengths_and_windows():
    q, k, v = (RNG.normal(size=(2, 5, 2, 4)) for _ in range(3))
    rows, columns = np.arange(5)[:, None], np.arange(5)[None]

    def plain(mask):
        logits = np.einsum("bthd,bshd->bhts", q, k) / 2
        weights = np.where(mask, np.exp(logits), 0)
        total = weights.sum(-1, keepdims=True)
        return np.einsum("bhts,bshd->bthd", np.divide(weights, total, where=total > 0, out=np.zeros_like(weights)), v)

    attend = ft.nn.dot_product_attention
    near = (columns >= rows - 1) & (columns <= rows + 2)
    np.testing.assert_allclose(attend(q, k, v, local_window_size=(1, 2)), plain(near), rtol=1e-9, atol=1e-12)
    band = abs(rows - columns) <= 1
    np.testing.assert_allclose(attend(q, k, v, local_window_size=1), plain(band), rtol=1e-9, atol=1e-12)
    lengths = np.array([3, 5], np.int32)
    sources = columns < lengths[:, None, None, None]
    np.testing.assert_allclose(attend(q, k, v, key_value_seq_lengths=lengths), plain(sources), rtol=1e-9, atol=1e-12)
    both = sources & (rows < lengths[::-1, None, None, None]) & band
    found = ft.jit(lambda a, b: attend(q, k, v, query_seq_lengths=a, key_value_seq_lengths=b, local_window_size=1))
    np.testing.assert_allclose(found(lengths[::-1].copy(), lengths), plain(both), rtol=1e-9, atol=1e-12)


def test_internals_pass_where_promotion_is_refused():
    x, image = np.array([[1, 0, 1, 1]], np.uint8), RNG.normal(size=(4, 6)).astype(np.float32)
    with ft.numpy_rank_promotion("raise"), ft.numpy_dtype_promotion("strict"):
        np.testing.assert_array_equal(fnp.packbits(x, axis=1), np.packbits(x, axis=1))
        np.testing.assert_array_equal(fnp.unpackbits(x, axis=1), np.unpackbits(x, axis=1))
        small = ft.image.resize(image, (2, 3), "linear", antialias=False)
        integrals = special.fresnel(image)
        np.testing.assert_allclose(special.expn(2, x + 1.5), scipy_special.expn(2, x + 1.5), rtol=1e-6)
    np.testing.assert_allclose(integrals, scipy_special.fresnel(image.astype(float)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(small, image.reshape(2, 2, 3, 2).mean((1, 3)), rtol=1e-5, atol=1e-6)
