"""while_loop and fori_loop are Python's loops, in forward mode, under vmap and jit."""

import itertools

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.backends.xla import counters
from functorch_like.ir.jaxpr import Jaxpr

X, W = np.array([0.7, -0.4, 1.3]), np.array([0.5, -1.1, 0.8])


def same(got, want, rtol=1e-9):
    for g, w in zip(ft.tree.leaves(got), ft.tree.leaves(want), strict=True):
        assert np.asarray(g).dtype == np.asarray(w).dtype
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=rtol, atol=1e-11)


def python_while(cond_fun, body_fun, val):
    while cond_fun(val):
        val = body_fun(val)
    return val


def python_fori(lower, upper, body_fun, val):
    for i in range(int(lower), int(upper)):
        val = body_fun(np.int32(i), val)
    return val


def growing(loop):
    """Return a loop of value-dependent length; its body closes over a value and passes one on unchanged."""

    def f(x, w, end):
        cond = lambda v: fnp.sum(v["x"] * v["x"]) < end
        body = lambda v: {"x": v["x"] * 1.5 + fnp.sin(w) * v["k"], "k": v["k"] + 1, "w": v["w"]}
        v = loop(cond, body, {"x": x, "k": np.int32(0), "w": w})
        return v["x"] * v["w"] + v["k"]

    return f


NESTS = {
    "plain": lambda f: f,
    "jit": ft.jit,
    "jvp": lambda f: lambda x, w, e: ft.jvp(lambda x, w: f(x, w, e), (x, w), (W, X)),
    "jvp by w": lambda f: lambda x, w, e: ft.jvp(lambda w: f(x, w, e), (w,), (X,)),
    "jvp of jvp": lambda f: lambda x, w, e: ft.jvp(lambda x: ft.jvp(lambda w: f(x, w, e), (w,), (X,))[1], (x,), (W,)),
    "jit of jacfwd": lambda f: ft.jit(ft.jacfwd(lambda x, w, e: f(x, w, e), argnums=(0, 1))),
    "linearize": lambda f: lambda x, w, e: ft.linearize(lambda x, w: f(x, w, e), x, w)[1](W, X),
}


@pytest.mark.parametrize("name", NESTS)
def test_while_loop_is_a_while(name):
    for end in (20.0, 500.0, 0.0):
        with ft.disable_jit():
            want = NESTS[name](growing(python_while))(X, W, end)
        same(NESTS[name](growing(lax.while_loop))(X, W, end), want)


@pytest.mark.parametrize("name", ["plain", "jvp", "jit"])
def test_vmap_of_while_loop_is_a_loop(name):
    f = NESTS[name](growing(lax.while_loop))
    stacks = np.stack([X, W, X - W]), np.stack([W, X, -X]), np.array([30.0, 300.0, 0.0])
    for axes in itertools.product([None, 0], repeat=3):
        if axes == (None, None, None) or (name == "jvp" and axes[:2] != (0, 0)):
            continue
        args = [s if d is not None else s[0] for s, d in zip(stacks, axes, strict=True)]
        each = [f(*[s[k if d is not None else 0] for s, d in zip(stacks, axes, strict=True)]) for k in range(3)]
        got, want = ft.tree.leaves(ft.vmap(f, in_axes=axes)(*args)), zip(*map(ft.tree.leaves, each), strict=True)
        same(got, [np.stack(list(map(np.asarray, column))) for column in want])


def rows(jaxpr, name):
    for e in jaxpr.equations:
        if e.prim.name == name:
            yield e
        for value in e.params.values():
            if isinstance(value, Jaxpr):
                yield from rows(value, name)


def test_an_unbatched_condition_stays_cheap():
    f = lambda n, x: lax.while_loop(lambda v: v[0] < n, lambda v: (v[0] + 1, v[1] * 2), (0, x))[1]
    (apart,) = rows(ft.make_jaxpr(ft.vmap(f, in_axes=(None, 0)))(3, X), "while")
    assert "select_n" not in str(apart.params["body_jaxpr"])
    (together,) = rows(ft.make_jaxpr(ft.vmap(f, in_axes=(0, None)))(np.arange(3), X), "while")
    assert "select_n" in str(together.params["body_jaxpr"])
    assert [e.prim.name for e in together.params["cond_jaxpr"].equations] == ["reduce_or"]
    same(ft.vmap(f, in_axes=(0, None))(np.array([0, 3, 1]), X), X * np.array([1.0, 8.0, 2.0])[:, None])


def test_elements_that_have_stopped_are_left_alone():
    f = lambda x: lax.while_loop(lambda v: v > 1.0, lambda v: 1.0 / (v - 1.0) - 1.0, x)  # stepping at 1 divides by 0
    x = np.array([1.0, 1.5, 0.5, 1.25])
    same(ft.vmap(f)(x), np.stack([f(v) for v in map(fnp.asarray, x)]))
    got = ft.vmap(lambda x: ft.jvp(f, (x,), (np.float64(1.0) * fnp.ones((), "float64"),))[1])(x)
    assert np.isfinite(got).all()


def test_reverse_mode_names_the_remedy():
    f = lambda x: lax.while_loop(lambda v: v < 100, lambda v: v * v, x)
    for nest in (ft.grad(f), ft.jit(ft.grad(f)), ft.grad(ft.jit(f))):
        with pytest.raises(ft.errors.UnsupportedError, match="how many steps a while_loop takes") as caught:
            nest(3.0)
        assert "fori_loop" in caught.value.fix and "scan" in caught.value.fix
    # A while_loop is allowed where no derivative goes through it.
    steps = lambda x: lax.while_loop(
        lambda v: v[0] < 100, lambda v: (v[0] * v[0], v[1] + 1), (lax.stop_gradient(x), 0)
    )[1]
    np.testing.assert_allclose(float(ft.grad(lambda x: x * steps(x))(3.0)), 3.0)


# ---------------------------------------------------------------------------------------------------------- fori_loop
BOUNDS = [(0, 4), (2, 5), (-3, 1), (3, 3), (4, 1)]


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_fori_loop_is_a_for(bounds):
    body = lambda i, v: (fnp.sin(v[0]) * (1 + i) + v[1], v[1] + i * i)
    start = lambda x: (x, np.int32(1))
    run = lambda loop: lambda lower, upper, x: loop(lower, upper, body, start(x))
    want = run(python_fori)(*bounds, X)
    for kind in (int, np.int32, fnp.asarray):
        same(run(lax.fori_loop)(*map(kind, bounds), X), want)
    same(ft.jit(run(lax.fori_loop))(*bounds, X), want)  # traced bounds: a while loop
    same(ft.jit(lambda x: run(lax.fori_loop)(*bounds, x))(X), want)
    for unroll in (2, True):
        same(lax.fori_loop(*bounds, body, start(X), unroll=unroll), want)
    total = lambda loop: lambda x: fnp.sum(run(loop)(*bounds, x)[0] ** 2)
    for nest in (ft.grad, lambda f: ft.jit(ft.hessian(f))):
        same(nest(total(lax.fori_loop))(X), nest(total(python_fori))(X))
    along = lambda f: lambda *b: ft.jvp(lambda x: f(*b, x)[0], (X,), (W,))[1]
    same(ft.jit(along(run(lax.fori_loop)))(*bounds), along(run(python_fori))(*bounds))


def test_vmap_of_bounds():
    f = lambda lower, upper, x: lax.fori_loop(lower, upper, lambda i, v: v * 0.5 + i, x)
    lower, upper = np.array([0, -2, 3]), np.array([3, 1, 1])
    want = [python_fori(a, b, lambda i, v: v * 0.5 + i, X) for a, b in zip(lower, upper, strict=True)]
    same(ft.vmap(f, in_axes=(0, 0, None))(lower, upper, X), np.stack(want))
    same(ft.jit(ft.vmap(f, in_axes=(None, 0, None)))(0, upper, X), np.stack([f(0, b, X) for b in upper]))


def test_dtypes_of_bounds():
    array = fnp.asarray
    for lower, upper, dtype in ((0, 3, "int32"), (0, array(3, "int64"), "int64"), (array(0, "uint8"), 3, "uint8")):
        seen = []
        lax.fori_loop(lower, upper, lambda i, v: (seen.append(i.dtype.name), v)[1], 0.0)  # noqa: B023
        assert set(seen) <= {dtype}, (seen, dtype)
    with pytest.raises(ft.errors.DtypeError, match=r"upper of lax.fori_loop is not a whole number: f32\[\]"):
        lax.fori_loop(0, 2.5, lambda i, v: v, 0.0)
    with pytest.raises(ft.errors.ShapeError, match="is not a scalar"):
        lax.fori_loop(np.zeros(2, int), 2, lambda i, v: v, 0.0)


def test_bounds_that_are_floats():
    array = fnp.asarray
    count = lambda lower, upper: lax.fori_loop(lower, upper, lambda i, v: (v[0] + 1, v[1] + i), (0, 0.0))
    pairs = [
        (0.0, 3.0),
        (1.5, 4.7),
        (0.1, 3.1),
        (-0.25, 1.75),
        (2.0, 2.0),
        (3.0, -1.0),
        (0.0, np.nan),
        (array(1.0), 4.5),
    ]
    pairs += [(array(0.1, "float64"), 7.1), (array(0.1, "bfloat16"), 5.1), (2, 5)]
    for lower, upper in pairs:
        dtype = np.dtype(getattr(lower, "dtype", "float32"))
        i, last, rounds, total = np.asarray(float(lower), dtype), np.asarray(upper, dtype), 0, 0.0
        while i < last:
            rounds, total, i = rounds + 1, total + float(i), np.asarray(i + np.ones((), dtype), dtype)
        for f in (count, ft.jit(count)):
            got = f(lower, upper)
            assert got[0].item() == rounds, (lower, upper, got)
            np.testing.assert_allclose(float(got[1]), total, rtol=2e-2 if dtype.itemsize == 2 else 1e-6)
    # The index is weakly typed if the bounds are Python numbers; loops with known bounds have reverse mode.
    assert lax.fori_loop(0.0, 2.0, lambda i, v: v * i, fnp.ones(2, "float16")).dtype == "float16"
    same(ft.grad(lambda x: lax.fori_loop(1.0, 3.0, lambda i, v: v * x * i, 1.0))(np.float32(3.0)), np.float32(12.0))
    same(ft.vmap(lambda n: count(0.0 * n, n)[0])(fnp.array([3.0, 0.5, -1.0])), np.array([3, 1, 0], np.int32))
    for lower, upper in ((0, 2.5), (0.5, 2), (fnp.float32(1), fnp.int32(2))):
        with pytest.raises(ft.errors.DtypeError, match=r"of lax.fori_loop is not a whole number: f32\[\]"):
            count(lower, upper)
    with pytest.raises(ft.errors.ArgumentError, match="too far to count"):
        count(0.0, np.inf)


def test_numbers_that_come_back_as_arrays_cost_no_second_trace():
    calls = []
    scale = fnp.float32(3.0)

    def body(c, x):
        calls.append(1)
        return c * x, c * fnp.float16(2)

    x = fnp.array([2.0, 0.5, 4.0], "float32")
    last, ys = lax.scan(body, 1.0, x)
    assert len(calls) == 1 and last.dtype == "float32" and not last.weak_type and ys.dtype == "float16"
    same(last, np.float32(4.0))
    same(ys, np.array([2, 4, 2], np.float16))
    doubled = lambda c: lax.while_loop(lambda c: c < 50, lambda c: (calls.append(1), c * scale)[1], c)
    out = doubled(1.0)
    assert len(calls) == 2 and not out.weak_type
    same(out, np.float32(81.0))
    looped = lambda x: lax.fori_loop(0, 3, lambda i, c: (calls.append(1), (c[0] * x, c[1] + 1))[1], (1.0, 0))[0]
    same(looped(scale), np.float32(27.0))
    assert len(calls) == 3
    total = lambda x: lax.scan(lambda c, v: (c * v, c + v), 1.0, x)[0]
    want = np.array([2.0, 8.0, 1.0], np.float32)
    for f in (ft.grad(total), ft.jit(ft.grad(total)), ft.jacfwd(total), ft.grad(ft.checkpoint(total))):
        same(f(x), want)
    same(ft.vmap(ft.grad(total))(fnp.stack([x, x])), np.stack([want, want]))
    same(ft.hessian(total)(x), np.array([[0, 4, 0.5], [4, 0, 2], [0.5, 2, 0]], np.float32))
    same(ft.grad(looped)(scale), np.float32(27.0))
    same(ft.jvp(looped, (scale,), (fnp.float32(1.0),))[1], np.float32(27.0))
    # If a number in the carry needs a wider kind, the body is traced twice, and dtypes that fit are kept.
    (a, b), _ = lax.scan(lambda c, _: ((c[0] * scale, c[1] + fnp.float16(1)), None), (1.0, 0), None, length=2)
    assert (a.dtype.name, b.dtype.name) == ("float32", "float16")


# ------------------------------------------------------------------------------------------ traces, memory, execution
def test_nothing_is_traced_or_compiled_again():
    calls = []

    def body(v):
        calls.append(1)
        return v * 2

    more = lambda v: fnp.sum(v) < 50
    runs = {
        "eager": lambda x: lax.while_loop(more, body, x),
        "jit": ft.jit(lambda x: lax.while_loop(more, body, x)),
        "jvp": lambda x: ft.jvp(lambda x: lax.while_loop(more, body, x), (x,), (x,)),
        "vmap": lambda x: ft.vmap(lambda x: lax.while_loop(more, body, x))(x),
    }
    for name, run in runs.items():
        x = ft.device_put(np.abs(X))
        run(x)
        calls.clear()
        before = counters.snapshot()
        for _ in range(3):
            run(x)
        after = counters.snapshot()
        assert not calls, name
        assert {k: after[k] - before[k] for k in ("modules", "compiles", "cache_hits", "traces")} == dict.fromkeys(
            ("modules", "compiles", "cache_hits", "traces"), 0
        ), name


def test_dead_carries_leave_the_loop():
    f = lambda x: lax.while_loop(
        lambda v: v[0] < 9, lambda v: (v[0] + 1, fnp.sin(v[1]), fnp.cos(v[2]) + v[0]), (x, x, x)
    )
    text = ft.jit(lambda x: f(x)[2]).lower(0.0).as_text()
    assert "cosine" in text and "sine" not in text.replace("cosine", "")
    assert "stablehlo.while" not in ft.jit(lambda x: (f(x), x)[1]).lower(0.0).as_text()


def test_numbers_take_the_dtype_the_body_returns():
    out = lax.while_loop(lambda v: v[1] < 3, lambda v: (v[0] + X[0], v[1] + 1), (0, 0))
    assert [o.dtype for o in out] == [np.float64, np.int32] and out[1].weak_type
    assert lax.fori_loop(0, 3, lambda i, v: v + i, 0).dtype == np.int32


def test_effects_happen_in_each_step_and_in_order():
    seen = []

    def f(x, ordered=True):
        def body(v):
            ft.io_callback(lambda a: seen.append(float(a)), None, v, ordered=ordered)
            return v * 2

        return lax.while_loop(lambda v: v < 20, body, x)

    for g in (f, ft.jit(f), ft.jit(lambda x: f(f(x) * 0 + x))):
        seen.clear()
        g(3.0)
        assert seen == [3.0, 6.0, 12.0] * (len(seen) // 3) and seen
    for wrap in (lambda g: g, ft.jit):
        for ordered in (False, True):
            seen.clear()  # elements stop separately, and each has the same effects as alone
            g = wrap(ft.vmap(lambda x: f(x, ordered)))  # noqa: B023
            assert g(np.array([3.0, 12.0])).tolist() == [24.0, 24.0]
            assert seen == [3.0, 6.0, 12.0, 12.0]


def test_disable_jit_runs_the_loop_as_python():
    with ft.disable_jit():
        assert lax.while_loop(lambda v: v < 10, lambda v: v + int(v), 1) == 16


def test_while_in_scan_and_scan_in_while():
    halve = lambda n: lax.while_loop(lambda v: v[0] > 1, lambda v: (v[0] // 2, v[1] + 1), (n, 0))[1]
    np.testing.assert_array_equal(lax.map(halve, np.array([1, 2, 9, 64])), [0, 1, 3, 6])
    step = lambda v: lax.scan(lambda c, x: (c * 1.1 + x * x, None), v, W)[0]
    f = lambda x: lax.while_loop(lambda v: v < 40, step, x)
    same(f(fnp.asarray(1.0, "float64")), python_while(lambda v: v < 40, lambda v: step(v), fnp.asarray(1.0, "float64")))
    got = ft.jvp(f, (fnp.asarray(1.0, "float64"),), (fnp.asarray(1.0, "float64"),))[1]
    np.testing.assert_allclose(got, (f(1.0 + 1e-6 * np.ones(())) - f(1.0 - 1e-6 * np.ones(()))) / 2e-6, rtol=1e-6)


BODIES = {
    "jit": ft.jit(fnp.sin),
    "checkpoint": ft.checkpoint(fnp.sin),
    "scan": lambda x: lax.scan(lambda c, _: (fnp.sin(c), None), x, None, length=1)[0],
    "cond": lambda x: lax.cond(x[0] > -9, fnp.sin, fnp.cos, x),
    "loop": lambda x: lax.while_loop(lambda s: s[0] < 1, lambda s: (s[0] + 1, fnp.sin(s[1])), (0, x))[1],
}


@pytest.mark.parametrize("body", BODIES)
def test_values_that_a_loop_gives_are_known_when_it_is_linearized(body):
    """Indices and branches depend on no tangent, whatever the body calls."""

    def f(x):
        y = lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, BODIES[body](s[1])), (0, x))[1]
        branch = lax.cond(fnp.sum(y) > 0.1, fnp.sum, lambda v: fnp.sum(fnp.cos(v)), y)
        return fnp.sum(y[fnp.argmax(y)] * y) + branch

    x, along = np.array([0.5, 0.2, 0.3]), np.array([1.0, -0.5, 0.25])
    h = 1e-5
    difference = (f(x + h * along) - f(x - h * along)) / (2 * h)
    np.testing.assert_allclose(ft.jvp(f, (x,), (along,))[1], difference, rtol=1e-8)
    np.testing.assert_allclose(ft.linearize(f, x)[1](along), difference, rtol=1e-8)
    for slope in (ft.grad(f), ft.jit(ft.grad(f))):
        with pytest.raises(ft.errors.UnsupportedError, match="reverse mode"):
            slope(x)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "bfloat16", "float64"])
def test_the_index_of_counted_loops_takes_the_dtype_of_arrays(dtype):
    x = fnp.ones(2, dtype)
    for got in (
        lax.fori_loop(0, 3, lambda i, c: c + i, x),
        ft.jit(lambda n: lax.fori_loop(0, n, lambda i, c: c + i, x))(3),
    ):
        assert got.dtype == dtype and got.tolist() == [4, 4]
    assert lax.fori_loop(np.int32(0), 3, lambda i, c: i, fnp.int32(7)).dtype == "int32"
    assert lax.fori_loop(2**40, 2**40 + 3, lambda i, c: c + i, fnp.zeros((), "int64")) == 3 * 2**40 + 3
