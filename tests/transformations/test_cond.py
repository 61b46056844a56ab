"""cond and switch: Python's `if` under all transformations; their residuals, traces and compilations."""

import gc
import itertools

import numpy as np
import pytest
from support import background

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.backends.xla import counters
from functorch_like.ir.jaxpr import Jaxpr

X = np.array([0.7, -0.4, 1.3])
W = np.array([0.5, -1.1, 0.8])


def true_fun(x, w):
    return fnp.sin(x) * w, {"s": x.sum() * 0 + fnp.sum(x * x)}


def false_fun(x, w):
    return w / (2 + x * x), {"s": fnp.prod(fnp.exp(x))}


def branching(pred, x, w):
    """A function with branches that close over nothing, over operands, and over a NumPy array."""
    y, others = lax.cond(pred, true_fun, lambda x, w: false_fun(x, W * 0 + w), x, w)
    z = lax.cond(pred, lambda: x, lambda: w)
    return fnp.sum(y * z) + others["s"]


def python(pred, x, w):
    y, others = true_fun(x, w) if pred else false_fun(x, w)
    return fnp.sum(y * (x if pred else w)) + others["s"]


def twice(f):
    return lambda pred, x, w: ft.grad(lambda x, w: ft.grad(f, argnums=(1, 2))(pred, x, w)[0].sum(), (0, 1))(x, w)


NESTS = {
    "plain": lambda f: f,
    "jit": ft.jit,
    "jvp": lambda f: lambda p, x, w: ft.jvp(lambda x, w: f(p, x, w), (x, w), (W, X)),
    "jvp by one": lambda f: lambda p, x, w: ft.jvp(lambda w: f(p, x, w), (w,), (X,)),
    "grad": lambda f: ft.grad(f, argnums=(1, 2)),
    "grad by one": lambda f: ft.grad(f, argnums=2),
    "jit of grad": lambda f: ft.jit(ft.grad(f, argnums=(1, 2))),
    "grad of jit": lambda f: ft.grad(ft.jit(f), argnums=(1, 2)),
    "linearize": lambda f: lambda p, x, w: ft.linearize(lambda x, w: f(p, x, w), x, w)[1](W, X),
    "linearize of jit": lambda f: lambda p, x, w: ft.linearize(ft.jit(lambda x, w: f(p, x, w)), x, w)[1](W, X),
    "grad of grad": twice,
    "jit of grad of grad of jit": lambda f: ft.jit(twice(ft.jit(f))),
    "jvp of grad": lambda f: lambda p, x, w: ft.jvp(lambda x: ft.grad(f, 1)(p, x, w), (x,), (W,)),
    "grad of jvp": lambda f: lambda p, x, w: ft.grad(lambda x: ft.jvp(lambda w: f(p, x, w), (w,), (X,))[1])(x),
    "hessian": lambda f: lambda p, x, w: ft.hessian(f, 1)(p, x, w),
}


def same(got, want, rtol=1e-9):
    for g, w in zip(ft.tree.leaves(got), ft.tree.leaves(want), strict=True):
        assert np.asarray(g).dtype == np.asarray(w).dtype
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("name", NESTS)
def test_cond_is_an_if(name):
    nest = NESTS[name]
    kinds = (True, False, fnp.asarray(True), np.bool_(False), 2, 0.0)
    for pred in kinds if name in ("plain", "jit") else kinds[:2]:
        same(nest(branching)(pred, X, W), nest(lambda p, x, w, pred=pred: python(bool(pred), x, w))(pred, X, W))


AXES = [a for a in itertools.product([None, 0], repeat=3) if any(d is not None for d in a)]


@pytest.mark.parametrize("name", ["plain", "grad", "grad of jit", "jvp", "grad of grad"])
def test_vmap_of_cond_is_a_loop(name):
    wrap = ft.jit if name != "plain" else lambda f: f  # one program each: compilation takes most of the time
    transformed = wrap(NESTS[name](branching))
    preds, xs, ws = np.array([True, False, True]), np.stack([X, W, X + W]), np.stack([W, X, X - W])
    for axes in AXES:
        args = [b if d is not None else b[0] for b, d in zip((preds, xs, ws), axes, strict=True)]
        got = wrap(ft.vmap(NESTS[name](branching), in_axes=axes))(*args)
        each = [
            ft.tree.leaves(transformed(*[a[k] if d is not None else a for a, d in zip(args, axes, strict=True)]))
            for k in range(3)
        ]
        same(got, [np.stack(list(map(np.asarray, leaf))) for leaf in zip(*each, strict=True)])


def test_grad_of_vmap_of_cond():
    preds, xs = np.array([True, False, True]), np.stack([X, W, X + W])
    total = lambda f: lambda xs, w: sum(f(p, x, w) for p, x in zip(preds, xs, strict=True))
    mapped = lambda xs, w: ft.vmap(branching, in_axes=(0, 0, None))(preds, xs, w).sum()
    same(ft.grad(mapped, (0, 1))(xs, W), ft.grad(total(python), (0, 1))(xs, W))
    same(ft.jit(ft.grad(mapped, (0, 1)))(xs, W), ft.grad(total(python), (0, 1))(xs, W))


def test_an_unbatched_predicate_keeps_the_branches_apart():
    text = str(ft.make_jaxpr(ft.vmap(branching, in_axes=(None, 0, None)))(True, np.stack([X, W]), W))
    assert " = cond(" in text
    assert "select_n" not in text
    text = str(ft.make_jaxpr(ft.vmap(branching, in_axes=(0, None, None)))(np.array([True, False]), X, W))
    assert " = cond(" not in text
    assert "select_n" in text


def test_elements_get_no_cotangents_from_branches_they_do_not_take():
    safe = lambda x: lax.cond(x > 0, lambda x: fnp.sqrt(x), lambda x: 3 * x, x)
    x = np.array([4.0, -1.0, 0.0])
    want = [0.25, 3.0, 3.0]
    same(ft.vmap(ft.grad(safe))(x), np.array(want))
    same(ft.grad(lambda x: ft.vmap(safe)(x).sum())(x), np.array(want))


# ------------------------------------------------------------------------------------------------------------- switch
POWERS = [lambda x: x, lambda x: x * x, lambda x: x * x * x]


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_switch_takes_the_nearest_branch(wrap):
    f = wrap(lambda k, x: lax.switch(k, POWERS, x))
    x = np.float64(1.5) * np.ones(())
    for kind in (int, np.int64, np.int8, np.uint8, np.uint32, lambda k: fnp.asarray(k, "int16")):
        for k in (0, 1, 2, 5, 100):
            same(f(kind(k), x), np.asarray(1.5 ** (min(k, 2) + 1)))
    for k in (-1, -100):
        same(f(k, x), np.asarray(1.5))
    slopes = [wrap(ft.grad(lambda x, k=k: lax.switch(k, POWERS, x)))(np.ones(1)[0] * 1.5) for k in (-3, 1, 9)]
    np.testing.assert_allclose(np.asarray(slopes), [1.0, 3.0, 6.75], rtol=1e-6)


def test_vmap_keeps_operands_that_all_branches_return_whole():
    """They differ between elements only where the operands do, so `out_axes` may be None."""
    k, y = np.arange(3), np.arange(6, dtype="f").reshape(2, 3)
    branches = [lambda x, y: (x, y, y), lambda x, y: (x, y, x), lambda x, y: (x, y, y + x)]
    f = lambda k, x, y: lax.switch(k, branches, x, y)
    two = np.full(2, 2, "f")
    want = np.stack([y[:, 0], two, y[:, 2] + 2])
    for wrap in (lambda f: f, ft.jit):
        whole, columns, chosen = wrap(ft.vmap(f, in_axes=(0, None, 1), out_axes=(None, 1, 0)))(k, two, y)
        same(whole, two)
        same(columns, y)
        same(chosen, want)
    x, _ = ft.vmap(lambda p, x: lax.cond(p, lambda x: (x, x), lambda x: (x, -x), x), (0, None), (None, 0))(k > 0, 3.0)
    assert isinstance(x, ft.Array) and float(x) == 3.0
    # Gradients are those of each branch.
    square = lambda x, y: ft.vmap(lambda k, y: f(k, x, y)[2], (0, 1))(k, y).sum() + f(k[0], x, x)[0].sum() ** 2
    gx, gy = ft.grad(square, (0, 1))(two, y)
    same(gx, 5 * two)
    same(gy, np.array([[1, 0, 1], [1, 0, 1]], "f"))


def test_vmap_of_switch():
    k, x = np.array([0, 1, 2, 7, -4]), np.linspace(0.5, 1.5, 5)
    f = lambda k, x: lax.switch(k, POWERS, x)
    power = np.clip(k, 0, 2) + 1
    same(ft.vmap(f)(k, x), x**power)
    same(ft.vmap(ft.grad(f, 1))(k, x), power * x ** (power - 1))
    same(ft.grad(lambda x: ft.vmap(f)(k, x).sum())(x), power * x ** (power - 1))
    same(ft.vmap(f, in_axes=(None, 0))(2, x), x**3)
    same(ft.vmap(f, in_axes=(0, None))(k, np.asarray(1.25)), 1.25**power)


def test_one_branch_is_a_call():
    assert " = cond(" not in str(ft.make_jaxpr(lambda k, x: lax.switch(k, [fnp.sin], x))(3, 1.0))
    same(lax.switch(3, [fnp.sin], X), np.sin(X))


# --------------------------------------------------------------------------------------------------- operands, results
def test_operands_and_results_are_pytrees():
    f = lambda p, tree: lax.cond(p, lambda t: {"a": t["x"], "b": None}, lambda t: {"a": t["y"][0], "b": None}, tree)
    tree = {"x": X, "y": (W, 3)}
    same(f(True, tree)["a"], X)
    same(ft.jit(f)(False, tree)["a"], W)
    same(lax.cond(True, lambda t: t["x"] + 1, lambda t: t["x"], operand={"x": X}), X + 1)
    same(lax.cond(False, lambda none: X, lambda none: W, operand=None), W)
    same(lax.switch(0, [lambda x: x], operand=X), X)


def test_numbers_take_the_dtype_of_the_other_branch():
    for other in (X, X.astype(np.float32)):
        out = lax.cond(False, lambda x: x[0], lambda x: 0, other)
        assert out.dtype == other.dtype and not out.weak_type
    out = lax.cond(True, lambda: 1, lambda: 2.5)
    assert out.dtype == np.float32 and out.weak_type and out.item() == 1.0
    assert lax.cond(fnp.asarray(False), lambda: 1, lambda: 2).dtype == np.int32


def test_a_known_predicate_picks_the_branch_when_staging():
    def f(x, known):
        a = lax.cond(known > 0, fnp.sin, fnp.cos, x)
        b = lax.switch(1, POWERS, x)
        return a + b + ft.grad(lambda y: lax.cond(known, fnp.sin, fnp.cos, y))(1.0)

    text = str(ft.make_jaxpr(lambda x: f(x, 3))(X))
    assert " = cond(" not in text
    assert "cos(" not in text.split("mul(")[0]


def test_disable_jit_runs_the_branch_as_python():
    with ft.disable_jit():
        assert lax.cond(True, lambda x: float(x) + 1, lambda x: 1 / 0, 2.0) == 3.0
        assert lax.switch(5, [lambda: "first", lambda: "last"]) == "last"
        slope = ft.grad(lambda x: lax.cond(x > 1, lambda x: x * float(x > 0), lambda x: 1 / 0, x))
        assert float(slope(2.0)) == 1.0


# ----------------------------------------------------------------------------------------- traces, memory, execution
def test_nothing_is_traced_or_compiled_again():
    calls = []

    def counted(x):
        calls.append(1)
        return fnp.sin(x)

    def other(x):
        calls.append(1)
        return fnp.cos(x)

    runs = {
        "eager": lambda k, x: lax.cond(k > 1, counted, other, x),
        "grad": lambda k, x: ft.grad(lambda x: lax.cond(k > 1, counted, other, x).sum())(x),
        "vmap": lambda k, x: ft.vmap(lambda x: lax.cond(k > 1, counted, other, x))(x),
        "switch": lambda k, x: lax.switch(k, [counted, other, counted], x),
        "jit": ft.jit(lambda k, x: lax.cond(k > 1, counted, other, x)),
    }
    for run in runs.values():
        x = ft.device_put(X)
        for _ in range(2):  # two warm-up runs: array and number predicates differ
            run(fnp.asarray(1), x), run(fnp.asarray(2), x)
        calls.clear()
        before = counters.snapshot()
        for k in range(4):
            run(fnp.asarray(k), x)
        after = counters.snapshot()
        assert not calls
        assert {c: after[c] - before[c] for c in ("traces", "modules", "compiles", "cache_hits")} == {
            "traces": 0, "modules": 0, "compiles": 0, "cache_hits": 0,
        }  # fmt: skip


def test_functions_made_anew_for_each_call_do_not_pile_up():
    def alive():
        background.finish()
        gc.collect()
        return sum(isinstance(o, Jaxpr) for o in gc.get_objects())

    def run():
        for _ in range(40):
            lax.cond(fnp.asarray(True), kept, lambda x: x * 2, X)
            lax.cond(fnp.asarray(True), lambda x: x * 2, kept, X)

    kept = lambda x: x
    run()
    before = alive()
    run()
    assert alive() <= before


def conds(jaxpr):
    """Yield the cond equations of a jaxpr and of its inner jaxprs."""
    for e in jaxpr.equations:
        if e.prim.name == "cond":
            yield e
        for value in e.params.values():
            for inner in value if isinstance(value, tuple) else (value,):
                if isinstance(inner, Jaxpr):
                    yield from conds(inner)


def test_residuals_share_slots_and_operands_are_no_residuals():
    w = np.ones((7, 7), np.float32)
    vector = lambda k: np.full(7, k, np.float32)

    def loss(x, w):
        y = lax.cond(
            x[0] > 0,
            lambda x: fnp.tanh(fnp.tanh(w @ x)),  # two residuals of its own, and the closed-over w
            lambda x: fnp.sin(fnp.exp(w @ x)) * x,  # three residuals of its own, and x
            x,
        )
        return y.sum()

    forward, backward = conds(ft.make_jaxpr(ft.grad(loss))(vector(1), w))
    shapes = sorted(str(v.aval) for v in forward.outputs)
    assert shapes.count("f32[7,7]") == 0, "w is passed to the backward half as it is"
    assert shapes.count("f32[7]") <= 4, shapes
    assert sum(v.aval.shape == (7, 7) for v in backward.inputs) == 1
    forward, backward = conds(ft.make_jaxpr(ft.grad(loss, argnums=1))(vector(1), w))
    same(
        ft.grad(loss, (0, 1))(vector(0.1), w),
        ft.grad(lambda x, w: fnp.tanh(fnp.tanh(w @ x)).sum(), (0, 1))(vector(0.1), w),
        1e-5,
    )


def test_dead_results_and_operands_leave_the_branches():
    def f(p, x, w):
        y, _ = lax.cond(p, lambda: (x * 2, fnp.sin(w)), lambda: (x + 1, fnp.cos(w)))
        return y

    lowered = ft.jit(f).lower(True, X, W).as_text()
    assert "sine" not in lowered and "cosine" not in lowered
    assert "stablehlo.case" in lowered


def test_branches_run_alone():
    heavy = lambda x: fnp.linalg.matrix_power(x, 7)
    lowered = ft.jit(lambda p, x: lax.cond(p, heavy, lambda x: x, x)).lower(True, np.eye(3, dtype=np.float32))
    assert "conditional" in lowered.compile().as_text()


def test_integers_and_booleans_pass_through_derivatives():
    def f(x, n):
        y, m = lax.cond(n > 1, lambda: (x * n, n + 1), lambda: (x, n))
        return y * m

    assert float(ft.grad(f)(2.0, 3)) == 12.0
    assert float(ft.jit(ft.grad(f))(2.0, 1)) == 1.0


def test_nested_conds():
    def f(x):
        inner = lambda x: lax.cond(x > 2, lambda x: x**3, lambda x: x**2, x)
        return lax.cond(x > 0, inner, lambda x: -inner(-x), x)

    for wrap in (lambda f: f, ft.jit):
        got = [float(wrap(ft.grad(f))(x)) for x in (3.0, 1.0, -1.0, -3.0)]
        np.testing.assert_allclose(got, [27, 2, 2, 27])
        got = [float(wrap(ft.grad(ft.grad(f)))(x)) for x in (3.0, 1.0, -1.0, -3.0)]
        np.testing.assert_allclose(got, [18, 2, -2, -18])
    np.testing.assert_allclose(ft.vmap(ft.grad(f))(np.array([3.0, 1.0, -1.0, -3.0])), [27, 2, 2, 27])


def test_collectives_in_branches():
    f = lambda p, x: lax.cond(p, lambda x: lax.psum(x, "i"), lambda x: x, x)
    x = np.arange(4.0)
    same(ft.vmap(f, in_axes=(None, 0), axis_name="i")(True, x), np.full(4, 6.0))
    same(ft.vmap(f, in_axes=(None, 0), axis_name="i")(False, x), x)


# ------------------------------------------------------------------------------------------------------------ effects
def test_effects_of_the_branch_taken_happen_in_order():
    seen = []

    def say(tag, x, ordered=True):
        ft.io_callback(lambda a: seen.append((tag, float(a))), None, ft.lax.stop_gradient(x), ordered=ordered)

    def f(p, x):
        say("before", x)
        y = lax.cond(p, lambda x: (say("true", x), x * 2)[1], lambda x: x * 3, x)
        lax.cond(p, lambda: say("alone", x), lambda: say("otherwise", x, ordered=False))
        say("after", y)
        return y

    taken = [("before", 2.0), ("true", 2.0), ("alone", 2.0), ("after", 4.0)]
    other = [("before", 2.0), ("otherwise", 2.0), ("after", 6.0)]
    for g in (f, ft.jit(f), ft.grad(f, 1), ft.jit(ft.grad(f, 1)), ft.grad(ft.jit(f), 1)):
        for pred, want in ((True, taken), (False, other)):
            seen.clear()
            g(pred, 2.0)
            assert seen == want


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_elements_of_vmap_have_the_effects_of_their_branches_alone(wrap):
    seen = []

    def f(p, x, scale):
        def true_fun(x):
            ft.debug.callback(lambda a: seen.append(float(a)), x)
            return scale * x * x

        return lax.cond(p, true_fun, lambda x: scale * x, x)

    preds, xs = np.array([True, False, True]), np.array([1.0, 2.0, 3.0])
    same(wrap(ft.vmap(f, (0, 0, None)))(preds, xs, np.asarray(2.0)), np.array([2.0, 4.0, 18.0]))
    ft.effects_barrier()
    assert sorted(seen) == [1.0, 3.0]
    seen.clear()
    slope = ft.grad(lambda xs, scale: ft.vmap(f, (0, 0, None))(preds, xs, scale).sum(), (0, 1))
    same(wrap(slope)(xs, np.asarray(2.0)), (np.array([4.0, 2.0, 12.0]), np.asarray(12.0)))
    ft.effects_barrier()
    assert sorted(seen) == [1.0, 3.0]


# ----------------------------------------------------------------------------------------------------------- platforms
def test_the_function_for_the_platform_at_hand():
    f = lambda x: lax.platform_dependent(x, cuda=fnp.sin, cpu=fnp.cos)
    on = ft.default_backend()
    want, slope = (np.cos(X), -np.sin(X)) if on == "cpu" else (np.sin(X), np.cos(X))
    for wrap in (lambda f: f, ft.jit):
        same(wrap(f)(X), want)
        same(wrap(ft.grad(lambda x: f(x).sum()))(X), slope)
        same(wrap(ft.vmap(f))(X), want)
    lowered = ft.jit(f).lower(X).as_text()
    assert "stablehlo.case" not in lowered
    assert ("stablehlo.sine" in lowered, "stablehlo.cosine" in lowered) == (on != "cpu", on == "cpu")
    same(
        ft.jit(lambda x: lax.platform_dependent(x, gpu=fnp.sin, default=fnp.exp))(X),
        np.exp(X) if on == "cpu" else np.sin(X),
    )


def test_a_platform_without_a_function():
    missing = {"cuda": fnp.sin} if ft.default_backend() == "cpu" else {"cpu": fnp.sin}
    for wrap in (lambda f: f, ft.jit):
        with pytest.raises(ft.errors.UnsupportedError, match="no function for the platform"):
            wrap(lambda x: lax.platform_dependent(x, **missing))(X)
    with pytest.raises(ft.errors.ArgumentError, match="quantum"):
        lax.platform_dependent(X, quantum=fnp.sin)
    with pytest.raises(ft.errors.UnsupportedError, match="functions for tpu only, and no default="):
        lax.platform_dependent(X, tpu=fnp.sin)
