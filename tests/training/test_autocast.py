"""autocast: which operations it casts, in every order of transformations; results keep their dtypes."""

import pickle
import threading

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.ir.jaxpr import inner_jaxprs
from functorch_like.sharding import PartitionSpec as P

ULP = {"bfloat16": 2.0**-8, "float16": 2.0**-11}
RNG = np.random.default_rng(0)
X, W, V, Y = (fnp.asarray(RNG.normal(size=s) * 0.5, "float32") for s in ((6, 5), (5, 4), (4, 3), (6, 3)))


def loss(params, x=X, y=Y):
    w, v = params
    return fnp.mean((fnp.tanh(x @ w) @ v - y) ** 2)


def exact_gradient(x=X, y=Y):
    """Compute the gradient of `loss` in float64, by hand."""
    x, w, v, y = (np.asarray(a, "float64") for a in (x, W, V, y))
    h = np.tanh(x @ w)
    d = 2 * (h @ v - y) / y.size
    return x.T @ ((d @ v.T) * (1 - h * h)), h.T @ d


def rounded(x, dtype):
    """Round values to a narrow dtype and return them as float64."""
    return np.asarray(x).astype(np.dtype(fnp.dtype(dtype))).astype("float64")


def products(fun, *args):
    """Return the dtypes of the results of products and convolutions in a function's jaxpr, inner jaxprs included."""
    found = []

    def walk(jaxpr):
        for e in jaxpr.equations:
            if e.prim.name in ("dot_general", "conv_general_dilated", "ragged_dot"):
                found.append(e.outputs[0].aval.dtype.name)
            for inner in inner_jaxprs(e.params):
                walk(inner)

    walk(ft.make_jaxpr(fun)(*args))
    return found


ORDERS = {
    "grad(autocast)": lambda cast: ft.grad(cast(loss)),
    "autocast(grad)": lambda cast: cast(ft.grad(loss)),
    "jit(grad(autocast))": lambda cast: ft.jit(ft.grad(cast(loss))),
    "autocast(jit(grad))": lambda cast: cast(ft.jit(ft.grad(loss))),
    "grad(autocast(jit))": lambda cast: ft.grad(cast(ft.jit(loss))),
    "grad(autocast(checkpoint))": lambda cast: ft.grad(cast(ft.checkpoint(loss))),
    "grad(checkpoint(autocast))": lambda cast: ft.grad(ft.checkpoint(cast(loss))),
    "jacfwd(autocast)": lambda cast: ft.jacfwd(cast(loss)),
    "autocast(jacfwd)": lambda cast: cast(ft.jacfwd(loss)),
}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("order", ORDERS)
def test_gradients_are_within_the_rounding_of_operands(order, dtype):
    fun = ORDERS[order](lambda f: ft.autocast(f, dtype=dtype))
    for got, want in zip(fun((W, V)), exact_gradient(), strict=True):
        assert got.dtype == fnp.float32
        assert np.abs(np.asarray(got, "float64") - want).max() < 8 * ULP[dtype] * np.abs(want).max()
    assert set(products(fun, (W, V))) == {dtype}


def test_vmap_inside_and_outside():
    xs, ys = fnp.stack([X, 2 * X]), fnp.stack([Y, Y])
    mapped = ft.vmap(ft.grad(loss), in_axes=(None, 0, 0))
    for fun in (ft.autocast(mapped), ft.vmap(ft.grad(ft.autocast(loss)), in_axes=(None, 0, 0))):
        got = fun((W, V), xs, ys)
        for k in range(2):
            for g, want in zip(got, exact_gradient(xs[k], ys[k]), strict=True):
                assert np.abs(np.asarray(g[k], "float64") - want).max() < 8 * ULP["bfloat16"] * np.abs(want).max()
        assert set(products(fun, (W, V), xs, ys)) == {"bfloat16"}


def test_the_value_of_a_product_is_that_of_rounded_operands():
    got = ft.autocast(lambda x, w: x @ w)(X, W)
    want = rounded(X, "bfloat16") @ rounded(W, "bfloat16")
    assert got.dtype == fnp.float32
    np.testing.assert_allclose(np.asarray(got, "float64"), want, atol=ULP["bfloat16"] * np.abs(want).max())
    assert np.abs(np.asarray(got) - np.asarray(X) @ np.asarray(W)).max() > 1e-4  # it was rounded


SQUARE = fnp.asarray(RNG.normal(size=(4, 4)) * 0.4, "float32")


def _scan(x):
    return ft.lax.scan(lambda c, _: (c @ x, fnp.sum(c)), x, None, length=2)


def _while(x):
    return ft.lax.while_loop(
        lambda c: fnp.sum((c[1] @ x) ** 2) < 1e9 * (3 - c[0]), lambda c: (c[0] + 3, c[1] @ x), (0, x)
    )


def _cond(x):
    return ft.lax.cond(x[0, 0] > 9, lambda a: a @ a, lambda a: a @ a.T, x)


@ft.custom_jvp
def _with_jvp(x):
    return x @ x


_with_jvp.defjvp(lambda primals, tangents: (_with_jvp(*primals), tangents[0] @ primals[0] + primals[0] @ tangents[0]))


@ft.custom_vjp
def _with_vjp(x):
    return x @ x


_with_vjp.defvjp(lambda x: (x @ x, x), lambda x, ct: (ct @ x.T + x.T @ ct,))


@ft.custom_batching.custom_vmap
def _with_vmap(x):
    return x @ x


@_with_vmap.def_vmap
def _with_vmap_rule(axis_size, in_batched, x):
    return fnp.einsum("nij,njk->nik", x, x), True


BODIES = {
    "scan": _scan, "while": _while, "cond": _cond, "custom_jvp": _with_jvp, "custom_vjp": _with_vjp,
    "custom_vmap": _with_vmap, "checkpoint": ft.checkpoint(lambda x: x @ x), "jit": ft.jit(lambda x: x @ x),
    "fori": lambda x: ft.lax.fori_loop(0, 2, lambda i, c: c @ x, x), "einsum": lambda x: fnp.einsum("ij,jk->ki", x, x),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_functions_inside_of_primitives_are_cast(name):
    fun = BODIES[name]
    assert set(products(fun, SQUARE)) == {"float32"}
    for cast in (ft.autocast(fun), ft.jit(ft.autocast(fun)), ft.autocast(ft.jit(fun))):
        assert set(products(cast, SQUARE)) == {"bfloat16"}
        plain, low = ft.tree.leaves(fun(SQUARE)), ft.tree.leaves(cast(SQUARE))
        for a, b in zip(plain, low, strict=True):
            assert (a.dtype, a.shape, a.weak_type) == (b.dtype, b.shape, b.weak_type)
            assert np.abs(np.asarray(a, "float64") - np.asarray(b)).max() <= 0.05 * max(1, np.abs(a).max())


@pytest.mark.parametrize("name", ["custom_jvp", "custom_vjp", "custom_vmap"])
def test_rules_of_custom_functions_are_cast(name):
    total = lambda x: fnp.sum(BODIES[name](x) ** 2)
    derivative = ft.vmap if name == "custom_vmap" else ft.grad
    fun = BODIES[name] if name == "custom_vmap" else total
    args = fnp.stack([SQUARE, SQUARE.T]) if name == "custom_vmap" else SQUARE
    exact = derivative(fun)(args)
    for cast in (
        derivative(ft.autocast(fun)),
        ft.autocast(derivative(fun)),
        ft.jit(derivative(ft.autocast(ft.jit(fun)))),
        ft.autocast(ft.jit(derivative(fun))),
    ):
        assert set(products(cast, args)) == {"bfloat16"}
        np.testing.assert_allclose(cast(args), exact, atol=0.05)


def test_convolutions_and_ragged_products():
    image, kernel = RNG.normal(size=(1, 2, 6, 6)).astype("float32"), RNG.normal(size=(3, 2, 3, 3)).astype("float32")
    conv = lambda x, k: ft.lax.conv(x, k, (1, 1), "SAME")
    assert products(ft.autocast(conv), image, kernel) == ["bfloat16"]
    assert products(ft.autocast(conv, deny=["conv_general_dilated"]), image, kernel) == ["float32"]
    want = conv(*(rounded(a, "bfloat16").astype("float32") for a in (image, kernel)))
    np.testing.assert_allclose(ft.autocast(conv)(image, kernel), want, atol=ULP["bfloat16"] * np.abs(want).max())
    ragged = lambda x, w, n: ft.lax.ragged_dot(x, w, n)
    assert products(ft.autocast(ragged), X, np.stack([W, W]), np.array([2, 4], "int32")) == ["bfloat16"]


def test_sensitive_primitives_are_computed_in_float32():
    x = fnp.asarray(RNG.normal(size=(2000,)) * 3 + 1, "bfloat16")
    for f, oracle in ((fnp.exp, np.exp), (fnp.cumsum, np.cumsum), (fnp.sum, np.sum), (fnp.sinh, np.sinh)):
        got = ft.autocast(f)(x)
        assert got.dtype == fnp.bfloat16
        want = oracle(np.asarray(x, "float64"))
        np.testing.assert_allclose(np.asarray(got, "float64"), want, rtol=2**-8, atol=0.01)
        text = str(ft.make_jaxpr(ft.autocast(f))(x))
        assert "new_dtype=float32" in text and "new_dtype=bfloat16" in text


def test_allow_and_deny():
    f = lambda x: fnp.tanh(x) @ fnp.exp(x)
    dtypes = lambda cast: {e.prim.name: e.inputs[0].aval.dtype.name for e in ft.make_jaxpr(cast)(SQUARE).equations}
    usual = dtypes(ft.autocast(f))
    assert (usual["dot_general"], usual["tanh"], usual["exp"]) == ("bfloat16", "float32", "float32")
    other = dtypes(ft.autocast(f, allow=["tanh", ft.extend.primitives()["exp"]], deny="dot_general"))
    assert (other["dot_general"], other["tanh"], other["exp"]) == ("float32", "bfloat16", "bfloat16")


def test_a_precision_in_the_call_wins():
    precise = lambda x: fnp.matmul(x, x, precision="highest")
    assert products(ft.autocast(precise), SQUARE) == ["float32"]
    assert products(ft.autocast(lambda x: fnp.matmul(x, x, precision="default")), SQUARE) == ["bfloat16"]
    with ft.default_matmul_precision("high"):
        assert products(ft.autocast(lambda x: x @ x), SQUARE) == ["bfloat16"]


@pytest.mark.parametrize("dtype", ["float64", "int32", "float16", "bfloat16", "complex64"])
def test_other_operands_stay(dtype):
    x = fnp.asarray(SQUARE * 4, dtype)
    assert products(ft.autocast(lambda x: x @ x), x) == [dtype]


def test_a_wide_result_of_narrow_operands_stays():
    f = lambda x: ft.lax.dot(x, x, preferred_element_type="float32")
    assert products(ft.autocast(f), fnp.asarray(SQUARE, "bfloat16")) == ["float32"]
    assert ft.autocast(f)(SQUARE).dtype == fnp.float32
    assert products(ft.autocast(f), SQUARE) == ["bfloat16"]


def test_solvers_keep_the_precision_of_their_operands():
    matrix = np.asarray(SQUARE @ SQUARE.T) + 4 * np.eye(4, dtype="float32")
    solve = lambda b: ft.scipy.sparse.linalg.cg(lambda x: fnp.matmul(matrix, x), b, tol=1e-6)[0]
    b = np.arange(4, dtype="float32")
    want = np.linalg.solve(matrix.astype("float64"), b)
    np.testing.assert_allclose(ft.autocast(solve)(b), want, rtol=1e-4, atol=1e-5)


# ------------------------------------------------------------------------------------------------------------ blocks
def test_blocks():
    f = ft.jit(lambda x: x @ x)
    full = np.asarray(f(SQUARE))
    with ft.autocast():
        low = np.asarray(f(SQUARE))
        eager = np.asarray(fnp.matmul(SQUARE, SQUARE))
        with ft.autocast(dtype="float16"):
            assert products(f, SQUARE) == ["float16"]
            half = np.asarray(f(SQUARE))
        with ft.autocast(enabled=False):
            np.testing.assert_array_equal(f(SQUARE), full)
        np.testing.assert_array_equal(f(SQUARE), low)
    np.testing.assert_array_equal(f(SQUARE), full)
    want = full.astype("float64")
    assert 1e-5 < np.abs(half - want).max() < np.abs(low - want).max() < 0.05
    np.testing.assert_array_equal(eager, low)


def test_a_block_in_a_traced_function():
    def f(x):
        with ft.autocast():
            y = x @ x
        return y @ y

    for fun in (f, ft.jit(f), ft.grad(lambda x: fnp.sum(f(x)))):
        assert sorted(set(products(fun, SQUARE))) == ["bfloat16", "float32"]
    assert products(f, SQUARE) == ["bfloat16", "float32"]


def test_a_block_can_be_used_again_and_nested_in_itself_and_as_a_decorator():
    block = ft.autocast(dtype="float16")
    for _ in range(2):
        with block, block:
            assert (fnp.ones((2, 2)) @ fnp.full((2, 2), 1 + 2**-12)).tolist() == [[2, 2], [2, 2]]
    assert products(block(lambda x: x @ x), SQUARE) == ["float16"]
    with pytest.raises(ZeroDivisionError), block:
        raise ZeroDivisionError
    assert (fnp.ones((1, 1)) @ fnp.full((1, 1), 1 + 2**-12)).item() == 1 + 2**-12


def test_a_block_holds_in_its_thread_alone():
    found = []
    with ft.autocast():
        thread = threading.Thread(target=lambda: found.append(fnp.matmul(SQUARE, SQUARE)))
        thread.start()
        thread.join()
    np.testing.assert_array_equal(found[0], fnp.matmul(SQUARE, SQUARE))


def test_inside_of_a_shard_map():
    mesh = ft.make_mesh((1,), ("i",))
    f = lambda x: ft.lax.all_gather(x @ SQUARE, "i", tiled=True)
    mapped = ft.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P(), check_vma=False)
    assert products(ft.autocast(mapped), SQUARE) == ["bfloat16"]
    np.testing.assert_allclose(ft.autocast(mapped)(SQUARE), np.asarray(SQUARE) @ np.asarray(SQUARE), atol=0.02)


def test_bodies_without_floats_are_not_traced_again():
    f = ft.jit(lambda x: x + 1)
    assert "autocast of" not in str(ft.make_jaxpr(ft.autocast(f))(SQUARE))
    assert "autocast of" in str(ft.make_jaxpr(ft.autocast(ft.jit(lambda x: x @ x)))(SQUARE))


def test_an_autocast_function_pickles():
    assert pickle.loads(pickle.dumps(ft.autocast(loss, dtype="float16")))((W, V)).dtype == fnp.float32


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: ft.autocast(loss, dtype="float32"), ft.errors.DtypeError, "bfloat16 or float16"),
        (lambda: ft.autocast(loss, allow=["tanhh"]), ft.errors.ArgumentError, "did you mean|tanh"),
        (lambda: ft.autocast(loss, deny=["scan"]), ft.errors.ArgumentError, "holds a function"),
        (lambda: ft.autocast(loss, allow=5), ft.errors.ArgumentError, "a list of names"),
        (lambda: ft.autocast(loss, allow=["exp"], deny=["exp"]), ft.errors.ArgumentError, "both allows and denies exp"),
        (lambda: ft.autocast(3), ft.errors.ArgumentError, "takes a function"),
        (lambda: ft.autocast(x for x in ()), ft.errors.ArgumentError, "takes a function"),
    ],
)  # fmt: skip
def test_errors(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_a_generator_is_refused():
    def steps(x):
        yield x @ x

    with pytest.raises(ft.errors.ArgumentError, match="generator"):
        ft.autocast(steps)


def test_errors_inside_name_autocast():
    with pytest.raises(ft.errors.ShapeError, match=r"under: .*autocast"):
        ft.autocast(lambda x: x @ fnp.ones(7))(SQUARE)


# ------------------------------------------------------------------------------------------------------ cast_floating
def test_cast_floating():
    key = ft.random.key(0)
    before = {"a": fnp.ones(2), "n": fnp.arange(3), "z": fnp.ones(1, "complex64"), "b": True, "f": 2.0, "k": key}
    before |= {"h": np.ones(2, "float64"), "s": "name", "none": None, "low": fnp.ones(1, "bfloat16")}
    after = ft.cast_floating(before, "bfloat16")
    assert [after[k].dtype.name for k in ("a", "h", "low")] == ["bfloat16"] * 3
    assert all(after[k] is before[k] for k in ("n", "z", "b", "f", "k", "s", "none", "low"))
    with pytest.raises(ft.errors.DtypeError, match="floating-point"):
        ft.cast_floating(before, "int8")


def test_master_weights_get_float32_gradients():
    f = lambda params: loss(ft.cast_floating(params, "bfloat16"), *ft.cast_floating((X, Y), "bfloat16"))
    got = ft.jit(ft.grad(lambda params: f(params).astype("float32")))((W, V))
    for g, want in zip(got, exact_gradient(), strict=True):
        assert g.dtype == fnp.float32
        np.testing.assert_allclose(g, want, atol=16 * ULP["bfloat16"] * np.abs(want).max())


def test_programs_that_are_lowered_in_a_block_are_cast():
    product = ft.jit(lambda x: x @ x.T)
    x = ft.device_put(np.random.default_rng(0).normal(size=(16, 16)).astype("float32"))
    plain = np.asarray(product(x))
    with ft.autocast():
        want = np.asarray(product(x))
        results = [product.lower(x).compile()(x), product.trace(x).lower().compile()(x)]
        results.append(ft.export.export(product)(x).call(x))
        program = ft.make_jaxpr(lambda x: x @ x.T)(x)
    assert not np.array_equal(want, plain)
    for result in results:
        np.testing.assert_array_equal(result, want)
    assert "bf16" in str(program) and program.out_avals[0].dtype == "float32"
    np.testing.assert_array_equal(product.lower(x).compile()(x), plain)  # the trace that later calls share is as before
    with ft.autocast(), ft.autocast(enabled=False):
        np.testing.assert_array_equal(product.lower(x).compile()(x), plain)
