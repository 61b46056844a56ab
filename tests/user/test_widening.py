"""Widening by NumPy's float64 is reported once, by name and with the remedy; a chosen dtype is not reported."""

import warnings

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors, lax
from functorch_like.scipy.ndimage import map_coordinates
from functorch_like.scipy.sparse.linalg import cg

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((6, 3)), RNG.standard_normal(6)
WIDENING = ft.backends.promotion.flags


@pytest.fixture(autouse=True)
def _nothing_traced():
    """Clear the caches, since functions that another test compiled are not traced again."""
    ft.clear_caches()


def told(fun, *args):
    """Return the first lines of the warnings that a call gives, and its result."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        out = fun(*args)
    assert all(w.category is errors.WideningWarning for w in caught)
    return [str(w.message).partition("\n")[0] for w in caught], out


def loss(w, x, y):
    return fnp.mean((x @ w - y) ** 2)


def test_the_message_names_operation_argument_line_and_remedy():
    w = fnp.zeros(3)
    step = ft.jit(lambda w, x, y: w - 0.1 * ft.grad(loss)(w, x, y))
    with pytest.warns(errors.WideningWarning) as caught:
        out = step(w, X, Y)
    assert out.dtype == "float32"  # the gradient by a float32 argument is float32
    np.testing.assert_allclose(out, -0.1 * 2 / 6 * X.T @ (X @ np.zeros(3) - Y), rtol=1e-5)
    [warning] = caught
    lines = str(warning.message).splitlines()
    assert lines[0] == (
        "matmul(f64[6,3], f32[3]): the float64 operand, a NumPy array (args[1]), widens float32 to float64"
    )
    assert lines[1].strip() == "under: jit(<lambda>) > grad"
    assert lines[2].endswith("in loss") and warning.filename == __file__
    for remedy in ("X.astype('float32')", "fnp.asarray(X, 'float64')", "set_default_dtype", "promotion.widening"):
        assert remedy in lines[3]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step(out, X, Y)
        step(fnp.zeros(3, "float16"), X.astype("float32"), Y.astype("float32"))


def test_it_is_reported_once_for_each_line():
    def fun(w, x):
        a = w * x
        b = w + x
        return a, b

    w = fnp.ones(3)
    found, _ = told(ft.jit(fun), w, X)
    assert [text.partition("(")[0] for text in found] == ["multiply", "add"]
    assert told(ft.jit(lambda *args: fun(*args)), w, X[:2])[0] == []  # traced once more, at the same lines
    ft.clear_caches()
    assert len(told(fun, w, X)[0]) == 2


def standardized(x):
    return (x - x.mean(0)) / x.std(0)


SPOTS = {
    "operator": lambda w: w + X,
    "reflected": lambda w: X - w,
    "matmul": lambda w: X @ w,
    "power": lambda w: w**X,
    "where": lambda w: fnp.where(X > 0, w, X),
    "select": lambda w: fnp.select([X > 0], [w], X),
    "concatenate": lambda w: fnp.concatenate([w, Y]),
    "a list": lambda w: fnp.asarray([w, X[0]]),
    "einsum": lambda w: fnp.einsum("ij,j->i", X, w),
    "clip": lambda w: fnp.clip(w, X - 1, X + 1),
    "solve": lambda w: fnp.linalg.solve(np.eye(3), w),
    "convolve": lambda w: fnp.convolve(w, Y),
    "asarray": lambda w: fnp.asarray(X) @ w,
    "asarray of a list": lambda w: fnp.asarray(list(X)) @ w,
    "array": lambda w: fnp.array(X) @ w,
    "device_put": lambda w: ft.device_put(X) @ w,
    "computed": lambda w: ft.jit(lambda w, x: ((x - x.mean(0)) / x.std(0)) @ w)(w, X),
    "computed eagerly": lambda w: standardized(fnp.asarray(X))[:5] @ w,
    "computed by jit": lambda w: ft.jit(standardized)(X) @ w,
    "closed over": lambda w: ft.jit(lambda w: fnp.tanh(X) @ w)(w),
    "ravel_pytree": lambda w: ft.flatten_util.ravel_pytree([w, Y])[0],
}


@pytest.mark.parametrize("name", SPOTS)
def test_functions(name):
    w = fnp.ones(3)
    found, out = told(SPOTS[name], w)
    assert len(found) == 1 and "widens float32 to float64" in found[0] and "NumPy" in found[0]
    assert out.dtype == "float64"


def step(w, xy):
    x, y = xy
    return w - 0.1 * ft.grad(lambda w: (x @ w - y) ** 2)(w), None


@ft.custom_vjp
def dotted(w, x):
    return x @ w


dotted.defvjp(lambda w, x: (x @ w, x), lambda x, ct: (ct @ x, None))

TRANSFORMED = {
    "grad": lambda w: ft.grad(loss)(w, X, Y),
    "grad by both": lambda w: ft.grad(loss, argnums=(0, 1))(w, X, Y),
    "jvp": lambda w: ft.jvp(lambda w: X @ w, (w,), (w,)),
    "vmap": lambda w: ft.vmap(lambda w, x: x @ w, in_axes=(None, 0))(w, X),
    "jit of vmap of grad": lambda w: ft.jit(ft.vmap(ft.grad(lambda w, x: x @ w), in_axes=(None, 0)))(w, X),
    "jit in jit": lambda w: ft.jit(lambda w, x: ft.jit(lambda a, b: a @ b)(x, w))(w, X),
    "jit, a pytree": lambda w: ft.jit(lambda p: p["x"] @ p["w"])({"w": w, "x": X}),
    "jit, made of NumPy": lambda w: ft.jit(lambda w, x: x @ w)(w, fnp.asarray(X)),
    "scan": lambda w: lax.scan(step, w, (X, Y)),
    "jit of scan": lambda w: ft.jit(lambda w, x, y: lax.scan(step, w, (x, y)))(w, X, Y),
    "cond": lambda w: lax.cond(True, lambda w, x: x @ w, lambda w, x: x.sum(1), w, X),
    "custom_vjp": lambda w: ft.jit(dotted)(w, X),
    "make_jaxpr": lambda w: ft.make_jaxpr(lambda w, x: x @ w)(w, X),
    "eval_shape": lambda w: ft.eval_shape(lambda w, x: x @ w, w, X),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_transformations(name):
    found, _ = told(TRANSFORMED[name], fnp.ones(3))
    assert len(found) == 1 and found[0].startswith("matmul(") and "widens float32 to float64" in found[0]


@pytest.mark.parametrize(
    ("dtype", "other", "text", "remedy"),
    [
        ("float16", "float64", "widens float16 to float64", "'float16'"),
        ("bfloat16", "float64", "widens bfloat16 to float64", "'bfloat16'"),
        ("complex64", "float64", "widens complex64 to complex128", "'float32'"),
        ("complex64", "complex128", "widens complex64 to complex128", "'complex64'"),
        ("float32", "complex128", "widens float32 to complex128", "'complex64'"),
    ],
)
def test_dtypes(dtype, other, text, remedy):
    with pytest.warns(errors.WideningWarning) as caught:
        fnp.ones(3, dtype) * X[0].astype(other)
    assert text in str(caught[0].message) and f"X.astype({remedy})" in str(caught[0].message)


W64 = np.ones(3)

CHOSEN = {
    "float64 throughout": lambda w: fnp.asarray(np.ones(3)) * X,
    "NumPy alone": lambda w: fnp.tanh(X) @ W64,
    "two kinds of NumPy's": lambda w: fnp.add(X, X.astype("float32")),
    "two kinds of NumPy's in jit": lambda w: ft.jit(lambda a, b: a.sum() + b.sum())(X, X.astype("float32")),
    "asarray with a dtype": lambda w: fnp.asarray(X, "float64") @ w,
    "astype of what was made": lambda w: fnp.asarray(X).astype("float64") @ w,
    "astype in jit": lambda w: ft.jit(lambda w, x: x.astype("float64") @ w)(w, X),
    "astype of the other": lambda w: X @ w.astype("float64"),
    "astype of the other in jit": lambda w: ft.jit(lambda w, x: x @ w.astype("float64"))(w, X),
    "arrays that are not NumPy's": lambda w: fnp.ones((6, 3), "float64") @ w,
    "beside one that is not NumPy's": lambda w: fnp.concatenate([w, Y, fnp.ones(2, "float64")]),
    "to float32": lambda w: ft.jit(lambda w, x: x.astype("float32") @ w)(w, X),
    "numbers": lambda w: ft.jit(lambda w: w * np.float64(2) + np.asarray(3.0) + np.pi)(w),
    "weak numbers": lambda w: fnp.asarray(2.0) * X,
    "integers": lambda w: (fnp.arange(3) * X, fnp.arange(3) + np.arange(3), w[np.arange(3)]),
    "updates, which keep the dtype": lambda w: w.at[:].set(X[0]).at[0].add(X[0, 0]),
    "float32 and bfloat16": lambda w: fnp.ones(3, "bfloat16") * X.astype("float32"),
    "comparisons": lambda w: (w > X, fnp.isclose(w, X), fnp.allclose(w, X), fnp.array_equal(w, X), w == X),
    "integers made floats on the way": lambda w: (
        fnp.trapezoid(np.arange(6), Y),
        fnp.histogram(X, np.array([-1.0, 0.0, 1.0]), density=True),
        map_coordinates(fnp.arange(4.0), [np.array([0.5, 2.25])], 1),
        cg(2 * np.eye(2), np.array([2, 4])),
    ),
    "searches": lambda w: (fnp.searchsorted(w, Y), fnp.isin(w, Y)),
}


@pytest.mark.parametrize("name", CHOSEN)
def test_nothing_is_reported_of_chosen_dtypes(name):
    assert told(CHOSEN[name], fnp.ones(3))[0] == []


def test_nothing_is_reported_where_64_bits_are_the_default():
    w = fnp.ones(3)
    try:
        ft.set_default_dtype("float64")
        assert told(lambda: X @ w)[0] == []
    finally:
        ft.set_default_dtype("float32")


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit, ft.vmap], ids=["eager", "jit", "vmap"])
def test_it_may_be_an_error_or_nothing(wrap):
    w = fnp.ones(3)
    with WIDENING(widening="raise"):
        with pytest.raises(errors.DtypeError, match=r"add\(f32.*widens float32 to float64") as caught:
            wrap(lambda w, x: w + x)(w, X[0] if wrap is not ft.vmap else X[:3])
        assert "X.astype('float32')" in str(caught.value)
    with WIDENING(widening="allow"):
        found, out = told(wrap(lambda w, x: w * x), w, X[0] if wrap is not ft.vmap else X[:3])
    assert found == [] and out.dtype == "float64"


def test_python_decides_on_warnings_as_ever():
    w = fnp.ones(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", errors.WideningWarning)
        for _ in range(2):  # a warning raised as an error does not count as reported
            with pytest.raises(errors.WideningWarning):
                w + X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.WideningWarning)
        assert (w - X).dtype == "float64"


@pytest.mark.filterwarnings("ignore::functorch_like.errors.WideningWarning")
def test_explain_tells_it():
    f = ft.jit(loss)
    happened = ft.explain(f)(fnp.ones(3), X, Y)
    [event] = [event for event in happened.events if event.kind == "widen"]
    assert event.name == "matmul(f64[6,3], f32[3])"
    assert "widened matmul(f64[6,3], f32[3]): the float64 operand, a NumPy array (args[1])" in str(happened)
    assert f"{__file__}:" in event.about["why"] or "test_widening.py:" in event.about["why"]
    assert ft.explain(f)(fnp.ones(3), X.astype("float32"), Y.astype("float32")).count("widen") == 0


def test_calls_of_what_is_compiled_look_at_nothing(monkeypatch):
    f = ft.jit(lambda w, x: w * x)
    w, x = fnp.ones(3), X[0]
    told(f, w, x)
    told(lambda: w * x)
    for _ in range(2):  # NumPy computes the first calls
        w * x
    from functorch_like.calling import widening
    from functorch_like.ir import dtype_origins

    def never(*args):
        raise AssertionError(args)

    monkeypatch.setattr(widening, "notice", never)
    monkeypatch.setattr(dtype_origins, "origin", never)
    f(w, x)
    assert (w * x).dtype == "float64"


def test_arrays_made_of_numpys_die_as_others_do():
    from functorch_like.ir.dtype_origins import _MADE

    before = len(_MADE)
    x = fnp.asarray(X)
    assert len(_MADE) == before + 1
    del x
    assert len(_MADE) == before


@pytest.mark.parametrize(
    ("body", "called"), [("x * w", "multiply"), ("w - x", "subtract"), ("fnp.hypot(w, x)", "hypot")]
)
def test_the_operation_is_named_that_a_library_calls_on_behalf_of_the_users_line(body, called):
    """pandas calls the operation in this way for `series * w`."""
    names = {"fnp": fnp}
    file = "/elsewhere/site-packages/pandas/core/ops.py"
    exec(compile(f"def new_method(w, x):\n    return {body}\n", file, "exec"), names)
    [line], _ = told(lambda: names["new_method"](fnp.ones(3), X[0]))
    assert line.startswith(f"{called}(f")
