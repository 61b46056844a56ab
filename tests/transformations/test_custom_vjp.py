"""custom_vjp: reverse mode uses the user's rules, under all transformations."""

import functools
import weakref

import numpy as np
import pytest
from support import lifetimes
from support.nestings import DERIVATIVES, REVERSE, nested, nestings

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.custom_derivatives import CustomVJPPrimal, SymbolicZero
from functorch_like.errors import DtypeError, TreeError
from functorch_like.testing import check_grads

X = ft.device_put(np.asarray(0.7))  # in double precision


def doubled():
    """Return sin with twice its derivative, so that results show whether the rules were used, and how often."""

    @ft.custom_vjp
    def f(x):
        return fnp.sin(x)

    f.defvjp(lambda x: (f(x), x), lambda x, g: (2 * fnp.cos(x) * g,))
    return f


F = doubled()


@pytest.mark.parametrize("names", nestings(REVERSE, 2), ids="-".join)
def test_the_rules_are_used_in_every_nesting(names):
    factor = 2.0 if DERIVATIVES & set(names) else 1.0
    want = factor * np.asarray(nested(names, fnp.sin)(X))
    np.testing.assert_allclose(nested(names, F)(X), want, rtol=1e-12, atol=1e-12)


DEEP = [n for n in nestings({k: REVERSE[k] for k in ("jit", "grad", "vmap", "vjp")}, 3) if len(set(n)) == len(n) == 3]


@pytest.mark.parametrize("names", DEEP, ids="-".join)
def test_the_rules_are_used_three_deep(names):
    want = 2.0 * np.asarray(nested(names, fnp.sin)(X))
    np.testing.assert_allclose(nested(names, F)(X), want, rtol=1e-12, atol=1e-12)


def test_forward_over_reverse_differentiates_the_rules():
    @ft.custom_vjp
    def f(x):
        return fnp.sin(x)

    f.defvjp(lambda x: (fnp.sin(x), fnp.cos(x)), lambda c, g: (2 * c * g,))
    for way in (lambda g: g, ft.jit):
        got = ft.jacfwd(way(ft.jacrev(way(lambda x: f(x)))))(X)
        np.testing.assert_allclose(got, -2 * np.sin(0.7), rtol=1e-12)


def test_clipped_gradients():
    @functools.partial(ft.custom_vjp, nondiff_argnums=(0, 1))
    def clip_gradient(lo, hi, x):
        return x

    clip_gradient.defvjp(lambda lo, hi, x: (x, None), lambda lo, hi, _, g: (fnp.clip(g, lo, hi),))
    loss = lambda x: (clip_gradient(-1.0, 1.0, x) ** 2).sum()
    x = fnp.asarray([0.1, 3.0, -7.0])
    for slope in (ft.grad(loss), ft.jit(ft.grad(loss)), ft.grad(ft.jit(loss)), ft.vmap(ft.grad(loss))):
        np.testing.assert_allclose(slope(x), [0.2, 1.0, -1.0], rtol=1e-6)


def test_python_control_flow_sees_numbers():
    """The function and its rules run as plain Python outside of jit."""

    @ft.custom_vjp
    def f(x):
        return x**2 if x > 0 else -x

    f.defvjp(lambda x: (f(x), x), lambda x, g: ((2 * x if x > 0 else -1.0) * g,))
    assert [float(f(x)) for x in (3.0, -3.0)] == [9.0, 3.0]
    assert [float(ft.grad(f)(x)) for x in (3.0, -3.0)] == [6.0, -1.0]
    assert [float(ft.grad(ft.grad(f))(x)) for x in (3.0, -3.0)] == [2.0, 0.0]


@pytest.mark.parametrize("staged", [False, True], ids=["python", "while_loop"])
def test_a_fixed_point_is_differentiated_where_it_is(staged):
    """The implicit function theorem gives the derivative of x = f(a, x) without differentiating the iterations."""

    def iterate(step, x):
        if staged:
            moving = lambda pair: fnp.abs(pair[0] - pair[1]) > 1e-12
            return ft.lax.while_loop(moving, lambda pair: (pair[1], step(pair[1])), (x, step(x)))[1]
        for _ in range(8):
            x = step(x)
        return x

    @functools.partial(ft.custom_vjp, nondiff_argnums=(0,))
    def fixed_point(f, a, x):
        return iterate(lambda y: f(a, y), x)

    def fwd(f, a, x):
        found = fixed_point(f, a, x)
        return found, (a, found)

    def bwd(f, residuals, g):
        a, found = residuals
        _, pull = ft.vjp(lambda y: f(a, y), found)
        cotangent = g
        for _ in range(8):  # at the solution, the derivative of a Newton step is zero
            cotangent = g + pull(cotangent)[0]
        return ft.vjp(lambda b: f(b, found), a)[1](cotangent)[0], None

    fixed_point.defvjp(fwd, bwd)
    root = lambda a: fixed_point(lambda b, x: (x + b / x) / 2, a, a)  # Newton's iteration for the square root
    a = ft.device_put(np.asarray(3.0))
    for way in (lambda g: g, ft.jit):
        np.testing.assert_allclose(way(root)(a), np.sqrt(3.0), rtol=1e-12)
        np.testing.assert_allclose(way(ft.grad(root))(a), 0.5 / np.sqrt(3.0), rtol=1e-9)
        np.testing.assert_allclose(way(ft.grad(ft.grad(root)))(a), -0.25 * 3.0**-1.5, rtol=1e-8)
    check_grads(root, (np.asarray(2.0),), modes=("rev",))


# ----------------------------------------------------------------------------------------------- residuals, cotangents
@pytest.mark.parametrize("way", [lambda g: g, ft.jit], ids=["plain", "jit"])
def test_residuals_may_be_anything(way):
    @ft.custom_vjp
    def f(x):
        return x * 3

    def bwd(residuals, g):
        assert residuals["name"] == "f" and residuals["count"] == 2 and type(residuals["count"]) is int
        assert residuals["empty"] is None and residuals["flag"] is True
        return (residuals["function"](g) * residuals["array"][0],)

    kept = {"name": "f", "count": 2, "empty": None, "flag": True, "function": lambda g: 10 * g}
    f.defvjp(lambda x: (f(x), kept | {"array": [x]}), bwd)
    assert float(way(ft.grad(f))(2.0)) == 20.0
    assert float(ft.grad(way(f))(2.0)) == 20.0
    assert ft.vmap(way(ft.grad(f)))(fnp.asarray([2.0, 3.0])).tolist() == [20.0, 30.0]
    assert ft.grad(lambda x: ft.vmap(way(f))(x).sum())(fnp.asarray([2.0, 3.0])).tolist() == [20.0, 30.0]


def test_cotangents_that_are_none():
    @ft.custom_vjp
    def f(p, x, n):
        return {"a": p["w"] * x + p["b"][0], "b": n}

    f.defvjp(lambda p, x, n: (f(p, x, n), x), lambda x, g: ({"w": 5 * g["a"], "b": None}, None, None))
    params = {"w": 2.0, "b": (3.0, fnp.ones(2))}
    for way in (lambda g: g, ft.jit):
        grads = way(ft.grad(lambda p, x: f(p, x, 4)["a"], (0, 1)))(params, 7.0)
        assert [g.tolist() for g in ft.tree.leaves(grads)] == [0.0, [0.0, 0.0], 5.0, 0.0]
    f.defvjp(lambda p, x, n: (f(p, x, n), x), lambda x, g: (None, 2.0, np.zeros((), ft.float0)))
    assert float(ft.grad(lambda x: f(params, x, 4)["a"])(7.0)) == 2.0


def test_cotangents_of_numbers_may_have_any_precision():
    f = ft.custom_vjp(lambda x, y: x * y)
    f.defvjp(lambda x, y: (x * y, (x, y)), lambda r, g: (g * r[1], g * r[0]))
    for dtype in ("float16", "float64"):
        x = fnp.asarray(2.0, dtype)
        assert float(ft.grad(lambda y, x=x: f(x, y).astype("float32"))(3.0)) == 2.0
        assert ft.grad(f)(x, 3.0).dtype == dtype


def test_integer_results_have_float0_cotangents():
    @ft.custom_vjp
    def f(x, n):
        return x * n, n + 1

    def bwd(_, g):
        assert g[1].dtype == ft.float0
        return 7 * g[0], g[1]

    f.defvjp(lambda x, n: (f(x, n), None), bwd)
    assert float(ft.grad(lambda x: f(x, 3)[0])(2.0)) == 7.0
    assert float(ft.jit(ft.grad(lambda x, n: f(x, n)[0]))(2.0, 3)) == 7.0


@pytest.mark.parametrize("nothing", [None, ()])
def test_what_a_rule_returns_for_an_argument_without_arrays_is_ignored(nothing):
    @ft.custom_vjp
    def scaled(x, bias, y):
        return 3 * x * y

    scaled.defvjp(lambda x, bias, y: (scaled(x, bias, y), (x, y)), lambda xy, ct: (3 * ct * xy[1], ct, 3 * ct * xy[0]))
    x, y = np.float32(2), np.float32(5)
    grads = ft.grad(scaled, argnums=(0, 1, 2))(x, nothing, y)
    assert (float(grads[0]), grads[1], float(grads[2])) == (15.0, nothing, 6.0)
    with pytest.raises(ft.errors.FtError):  # the entry for an argument with arrays counts
        ft.grad(scaled)(x, (x, y), y)


@pytest.mark.parametrize("wrap", [lambda g: g, ft.jit], ids=["eager", "jit"])
def test_what_a_rule_returns_for_integers_is_ignored(wrap):
    """Rules return zeros, or the integer itself."""
    for of in (fnp.zeros_like, lambda n: n, lambda n: 0, lambda n: 1.5, lambda n: np.zeros(n.shape, ft.float0)):
        f = ft.custom_vjp(lambda x, p: x * p["n"] * p["w"])
        f.defvjp(
            lambda x, p: (x * p["n"] * p["w"], (x, p)),
            lambda r, g, of=of: (g * r[1]["n"] * r[1]["w"], {"n": of(r[1]["n"]), "w": g * r[0] * r[1]["n"]}),
        )
        p = {"n": fnp.asarray(3), "w": fnp.asarray(5.0)}
        assert float(wrap(ft.grad(f))(2.0, p)) == 15.0
        along = lambda w, f=f: ft.vmap(lambda n: f(2.0, {"n": n, "w": w}))(fnp.arange(3)).sum()
        assert float(wrap(ft.grad(along))(5.0)) == 6.0
        pulled = ft.vjp(f, 2.0, p)[1](1.0)[1]
        assert float(pulled["w"]) == 6.0 and pulled["n"].dtype == ft.float0
    f.defvjp(lambda x, p: (x, None), lambda _, g: (g, {"n": 0, "w": fnp.ones((), "int32")}))  # of a float
    with pytest.raises(DtypeError, match="cotangent needed"):
        wrap(ft.grad(f))(2.0, p)


def test_symbolic_zeros():
    seen = []

    @ft.custom_vjp
    def f(x, y):
        return x * y, x + y

    def fwd(x, y):
        assert isinstance(x, CustomVJPPrimal)
        seen.append((x.perturbed, y.perturbed))
        return f(x.value, y.value), y.value

    def bwd(y, g):
        seen.append(tuple(type(ct) is SymbolicZero for ct in g))
        return (g[0] * y, g[1])

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    assert float(ft.grad(lambda x: f(x, 3.0)[0])(2.0)) == 3.0
    assert float(ft.jit(ft.grad(lambda x: f(x, 3.0)[0]))(2.0)) == 3.0
    assert seen == [(True, False), (False, True)] * 2


@pytest.mark.parametrize("options", [{"nondiff_argnums": (1,)}, {"nondiff_argnames": "power"}], ids=str)
def test_nondiff_arguments_come_first_in_bwd(options):
    @functools.partial(ft.custom_vjp, **options)
    def f(x, power, y=1.0):
        return x**power * y

    f.defvjp(lambda x, power, y: (f(x, power, y), x), lambda power, x, g: (100.0 * power * g, None))
    assert float(ft.grad(lambda x: f(x, 3))(2.0)) == 300.0
    assert float(ft.grad(ft.jit(lambda x: f(power=3, x=x)))(2.0)) == 300.0


# ------------------------------------------------------------------------------------------------------------- batches
@pytest.mark.parametrize("way", [lambda g: g, ft.jit], ids=["plain", "jit"])
@pytest.mark.parametrize("axes", [(0, None, None), (None, 1, None), (None, None, 0), (0, 1, 0)], ids=str)
def test_arguments_that_all_elements_share_sum_their_cotangents(axes, way):
    def plain(x, y, w):
        return fnp.sum(fnp.sin(x) * y) * w, y * w

    f = ft.custom_vjp(plain)

    def bwd(residuals, g):
        x, y, w = residuals
        a, b = g
        return a * w * fnp.cos(x) * y, a * w * fnp.sin(x) + b * w, a * fnp.sum(fnp.sin(x) * y) + fnp.sum(b * y)

    f.defvjp(lambda *args: (plain(*args), args), bwd)
    rng = np.random.default_rng(0)
    shapes = [(2,), (2,), ()]
    mapped = [s if d is None else (*s[:d], 3, *s[d:]) for s, d in zip(shapes, axes, strict=True)]
    args = [ft.device_put(np.asarray(rng.normal(size=s))) for s in mapped]
    over = lambda g: lambda *given: sum((o * o).sum() for o in ft.vmap(way(g), axes)(*given))
    each = lambda g: ft.vmap(ft.grad(lambda *given: way(g)(*given)[0], (0, 1, 2)), axes)
    for of in (lambda g: ft.grad(over(g), (0, 1, 2)), each):
        for got, want in zip(of(f)(*args), of(plain)(*args), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-11)


def test_a_constant_cotangent_is_that_of_each_element():
    @ft.custom_vjp
    def f(x, y):
        return x + y

    f.defvjp(lambda x, y: (x + y, None), lambda _, g: (g, 1.0))
    for way in (lambda g: g, ft.jit):
        loss = lambda y, way=way: ft.vmap(way(f), (0, None))(fnp.zeros(5), y).sum()
        assert float(ft.grad(loss)(1.0)) == 5.0


def test_maps_with_a_named_axis():
    f = doubled()
    total = lambda x: f(ft.lax.psum(x, "i"))
    plain = lambda x: 2 * fnp.sin(ft.lax.psum(x, "i"))
    x = ft.device_put(np.linspace(0.1, 0.5, 3))
    losses = [lambda x, g=g: (ft.vmap(g, axis_name="i")(x) * x).sum() for g in (total, plain)]
    for way in (lambda g: g, ft.jit):
        got = way(ft.grad(losses[0]))(x)
        values = np.sin(np.sum(x))
        want = values + 2 * np.cos(np.sum(x)) * np.sum(x)
        np.testing.assert_allclose(got, np.full(3, want), rtol=1e-12)


# -------------------------------------------------------------------------------------------------------- control flow
def test_inside_of_loops_and_branches():
    f = doubled()

    def loss(x, xs):
        y, ys = ft.lax.scan(lambda c, s: (f(c) + s, f(s)), x, xs)
        return ft.lax.cond(y > -100, lambda v: f(v), lambda v: v, y) + ys.sum()

    def unrolled(x, xs):
        ys = []
        for s in xs:
            x, y = f(x) + s, f(s)
            ys.append(y)
        return f(x) + fnp.stack(ys).sum()

    x, xs = ft.device_put(np.asarray(0.3)), ft.device_put(np.linspace(0.1, 1.0, 4))
    want = ft.grad(unrolled, (0, 1))(x, xs)
    for way in (ft.grad(loss, (0, 1)), ft.jit(ft.grad(loss, (0, 1))), ft.grad(ft.jit(loss), (0, 1))):
        for got, wanted in zip(way(x, xs), want, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-12)
    second = [ft.grad(lambda x, g=g: ft.grad(g)(x, xs))(x) for g in (loss, unrolled)]
    np.testing.assert_allclose(*second, rtol=1e-12)
    mapped = ft.vmap(ft.grad(loss), (0, None))(fnp.stack([x, 2 * x]), xs)
    np.testing.assert_allclose(mapped[0], want[0], rtol=1e-12)


def test_inside_of_checkpoint():
    f = doubled()
    loss = lambda x: ft.checkpoint(lambda v: f(f(v)))(x)
    want = 4 * np.cos(np.sin(0.7)) * np.cos(0.7)
    for way in (ft.grad(loss), ft.jit(ft.grad(loss)), ft.grad(ft.jit(loss))):
        np.testing.assert_allclose(way(X), want, rtol=1e-12)
    second = [ft.grad(ft.grad(g))(X) for g in (loss, lambda x: f(f(x)))]
    np.testing.assert_allclose(*second, rtol=1e-12)
    np.testing.assert_allclose(ft.vmap(ft.grad(loss))(fnp.stack([X, X])), [want, want], rtol=1e-12)


# ---------------------------------------------------------------------------------------------------------------- cost
@pytest.mark.parametrize(
    "way",
    [
        lambda f: ft.grad(ft.jit(f)),
        lambda f: ft.jit(ft.grad(f)),
        lambda f: ft.grad(ft.jit(ft.grad(f))),
        lambda f: lambda x: ft.vmap(ft.grad(ft.jit(f)))(fnp.stack([x, x])),
    ],
    ids=["grad(jit)", "jit(grad)", "grad(jit(grad))", "vmap(grad(jit))"],
)
def test_repeated_calls_run_no_python(way):
    runs = []

    def noting(name, fun):
        def noted(*args):
            runs.append(name)
            return fun(*args)

        return noted

    f = ft.custom_vjp(noting("function", fnp.sin))
    f.defvjp(noting("fwd", lambda x: (fnp.sin(x), fnp.cos(x))), noting("bwd", lambda c, g: (c * g,)))
    inner = lambda x: f(x)
    g = way(inner)
    first = g(1.0)
    assert {"fwd", "bwd"} <= set(runs)
    runs.clear()
    again = g(1.0)
    np.testing.assert_array_equal(again, first)
    assert not runs


def test_functions_die_with_what_was_made_of_them():
    def used():
        f = doubled()
        ft.vmap(ft.grad(ft.jit(lambda x: f(x))))(fnp.ones(2))
        ft.grad(lambda x: f(x))(X)
        return weakref.ref(f)

    gone = used()
    lifetimes.collect()
    assert gone() is None


def test_fwd_is_not_run_without_a_derivative():
    f = ft.custom_vjp(fnp.sin)
    f.defvjp(lambda x: pytest.fail("fwd was run"), lambda *_: pytest.fail("bwd was run"))
    assert float(ft.jit(f)(0.0)) == 0.0
    assert ft.vmap(f)(fnp.zeros(2)).tolist() == [0.0, 0.0]
    assert float(ft.grad(lambda x: x * f(2.0))(1.0)) == pytest.approx(np.sin(2.0))


@pytest.mark.parametrize("optimize", [False, True])
def test_optimize_remat_computes_the_function_where_residuals_are_not_needed(optimize):
    def build():
        @ft.custom_vjp
        def f(x):
            return fnp.sin(x)

        # fwd gives the same value by another primitive, so that the program shows which of the two it computes.
        f.defvjp(lambda x: (ft.lax.cos(x - np.pi / 2), fnp.cos(x)), lambda c, g: (2 * c * g,), optimize_remat=optimize)
        return f

    f = build()
    text = ft.jit(lambda x: ft.vjp(f, x)[0]).lower(X).as_text()
    assert ("stablehlo.sine" in text) == optimize
    assert ("stablehlo.cosine" in text) != optimize
    # The first pass of a checkpointed function needs no residuals.
    text = ft.jit(ft.value_and_grad(lambda x: fnp.exp(ft.checkpoint(f)(x)))).lower(X).as_text()
    assert text.count("stablehlo.sine") == optimize
    np.testing.assert_allclose(ft.jit(ft.grad(f))(X), 2 * np.cos(0.7), rtol=1e-12)
    np.testing.assert_allclose(ft.grad(ft.jit(ft.grad(f)))(X), -2 * np.sin(0.7), rtol=1e-12)
    mapped = ft.jit(ft.grad(lambda x: ft.vmap(f)(x).sum()))(fnp.stack([X, X]))
    np.testing.assert_allclose(mapped, [2 * np.cos(0.7)] * 2, rtol=1e-12)
    np.testing.assert_allclose(ft.vmap(ft.jit(ft.grad(f)))(fnp.stack([X, X])), [2 * np.cos(0.7)] * 2, rtol=1e-12)


# ----------------------------------------------------------------------------------- custom_gradient, closure_convert
def test_custom_gradient_keeps_what_the_rule_closes_over():
    @ft.custom_gradient
    def f(x, y):
        """Product."""
        z = fnp.sin(x)
        return z * y, lambda g: (10 * g * z, g * y)

    assert f.__doc__ == "Product." and f.__name__ == "f"
    z = np.sin(0.5)
    for way in (lambda g: g, ft.jit):
        np.testing.assert_allclose(way(ft.grad(f, (0, 1)))(0.5, 2.0), [10 * z, 2.0], rtol=1e-6)
        np.testing.assert_allclose(ft.grad(way(f), (0, 1))(0.5, 2.0), [10 * z, 2.0], rtol=1e-6)
        np.testing.assert_allclose(ft.grad(way(ft.grad(f)))(0.5, 2.0), 10 * np.cos(0.5), rtol=1e-6)
        got = ft.vmap(way(ft.grad(f)), (0, None))(fnp.asarray([0.5, 0.0]), 2.0)
        np.testing.assert_allclose(got, [10 * z, 0.0], rtol=1e-6)
        got = ft.grad(lambda x, way=way: ft.vmap(way(f), (0, None))(x, 2.0).sum())(fnp.asarray([0.5, 0.0]))
        np.testing.assert_allclose(got, [10 * z, 0.0], rtol=1e-6)
    np.testing.assert_allclose(f(y=2.0, x=0.5), 2 * z, rtol=1e-6)


def test_custom_gradient_of_pytrees():
    @ft.custom_gradient
    def f(p):
        return {"out": p["x"] * 2, "count": 3}, lambda g: {"x": 5 * g["out"]}

    assert float(ft.grad(lambda p: f(p)["out"])({"x": 1.0})["x"]) == 5.0


def test_closure_convert_brings_derivatives_to_what_is_closed_over():
    def minimum(objective, start):
        """Minimize by Newton's method, differentiated implicitly: a function with rules takes the objective."""
        converted, values = ft.closure_convert(objective, start)
        return solve(converted, start, *values)

    @functools.partial(ft.custom_vjp, nondiff_argnums=(0,))
    def solve(f, x, *values):
        slope, curve = ft.grad(f), ft.grad(ft.grad(f))
        for _ in range(30):
            x = x - slope(x, *values) / curve(x, *values)
        return x

    def fwd(f, x, *values):
        found = solve(f, x, *values)
        return found, (found, values)

    def bwd(f, residuals, g):
        x, values = residuals
        slope = ft.grad(f)
        _, pull = ft.vjp(lambda *vs: slope(x, *vs), *values)
        return fnp.zeros_like(x), *pull(-g / ft.grad(slope)(x, *values))

    solve.defvjp(fwd, bwd)

    def loss(a):
        b = 2 * a
        return minimum(lambda x: (x - b) ** 2 + (x - a) ** 4, fnp.ones_like(a))

    step = 1e-4
    want = (loss(X + step) - loss(X - step)) / (2 * step)
    for way in (lambda g: g, ft.jit):
        np.testing.assert_allclose(way(ft.grad(loss))(X), want, rtol=1e-6)
        np.testing.assert_allclose(ft.grad(way(loss))(X), want, rtol=1e-6)
        np.testing.assert_allclose(ft.vmap(way(ft.grad(loss)))(X[None])[0], want, rtol=1e-6)


def test_closure_convert_moves_only_what_is_being_transformed():
    constant = fnp.ones(100)
    converted, values = ft.closure_convert(lambda x: x * constant.sum(), 1.0)
    assert values == [] and float(converted(2.0)) == 200.0
    found = []

    def loss(c, n):
        converted, values = ft.closure_convert(lambda x: (x * c + n, c), 1.0)
        found.append(len(values))
        return converted(2.0, *values)[0]

    assert float(ft.grad(loss)(3.0, 1)) == 2.0
    assert float(ft.jit(loss)(3.0, 1)) == 7.0
    assert found == [1, 1]


@pytest.mark.parametrize("way", [lambda f: ft.grad(f), lambda f: ft.jit(ft.grad(f)), lambda f: ft.grad(ft.jit(f))])
@pytest.mark.parametrize("kind", ["custom_vjp", "custom_jvp"])
def test_rules_see_the_weak_types_that_the_function_saw(way, kind):
    seen = []
    if kind == "custom_vjp":
        f = ft.custom_vjp(lambda n, x: n * x)
        f.defvjp(lambda n, x: (seen.append(n.weak_type) or n * x, n), lambda n, ct: (None, n * ct))
    else:
        f = ft.custom_jvp(lambda n, x: n * x)
        f.defjvp(lambda p, t: (seen.append(p[0].weak_type) or p[0] * p[1], p[0] * t[1]))
    with ft.numpy_dtype_promotion("strict"):
        slope = way(lambda x: f(fnp.where(x < 1, 2, -1), x))(fnp.asarray(3.0))
    assert float(slope) == -1.0 and seen and all(seen)


def test_a_cotangent_may_stand_for_a_container_of_one_leaf():
    """As in JAX, `{"x": ct}` and `ct` are cotangents of `{"x": [a]}`."""
    for given in (lambda ct: {"x": [ct]}, lambda ct: {"x": ct}, lambda ct: ct):

        @ft.custom_vjp
        def f(tree):
            return ft.numpy.sin(tree["x"][0])

        f.defvjp(lambda tree: (f(tree), tree["x"][0]), lambda x, ct, given=given: (given(2 * ct * x),))
        assert ft.grad(f)({"x": [3.0]}) == {"x": [6.0]}

    @ft.custom_vjp
    def g(pair):
        return pair[0] * pair[1]

    g.defvjp(lambda pair: (g(pair), None), lambda _, ct: (ct,))
    with pytest.raises(TreeError, match="cotangent needed"):
        ft.grad(g)((1.0, 2.0))


class Box:
    """A node of pytrees that functions change."""

    def __init__(self, value, calls=0):
        self.value, self.calls = value, calls


ft.tree_util.register_pytree_node(Box, lambda b: ((b.value,), b.calls), lambda calls, xs: Box(xs[0], calls))


@pytest.mark.parametrize("kind", [ft.custom_vjp, ft.custom_jvp, ft.custom_batching.custom_vmap])
def test_containers_that_a_function_changes_are_not_the_caller_s(kind):
    """As under transformations, where they are made anew; a library counts its calls in one."""

    def count(box, scale):
        box.calls += 1
        value, box.value = box.value, None
        return scale * value

    f = kind(count)
    if kind is ft.custom_vjp:
        f.defvjp(lambda box, scale: (count(box, scale), scale), lambda scale, ct: (Box(scale * ct), None))
    elif kind is ft.custom_jvp:
        f.defjvp(lambda primals, tangents: (count(*primals), primals[1] * tangents[0].value))
    else:
        f.def_vmap(lambda size, batched, box, scale: (count(box, scale), batched[0].value))
    box, scale = Box(fnp.asarray([3.0, 4.0])), fnp.asarray(2.0)
    for call in (f, ft.jit(f), f):
        np.testing.assert_array_equal(call(box, scale), [6.0, 8.0])
        assert box.calls == 0 and box.value is not None


@pytest.mark.parametrize("way", [lambda g: g, ft.jit], ids=["plain", "jit"])
def test_cotangents_and_tangents_are_arrays(way):
    seen = []

    @ft.custom_vjp
    def f(x):
        return x * 2

    def bwd(x, g):
        assert isinstance(g, ft.Array)
        seen.append((g * fnp.ones(2, "float16")).dtype)  # that of an array, not of a Python number
        return (g * 2,)

    f.defvjp(lambda x: (f(x), x), bwd)
    assert float(way(ft.grad(f))(fnp.ones((), "float32"))) == 2
    way(lambda x: ft.vjp(f, x)[1](np.ones((), "float32")))(fnp.ones((), "float32"))
    assert seen == ["float32"] * 2

    @ft.custom_jvp
    def h(x):
        return x * 2

    @h.defjvp
    def _(primals, tangents):
        assert isinstance(primals[0], ft.Array) and isinstance(tangents[0], ft.Array)
        return h(*primals), 2 * tangents[0]

    np.testing.assert_array_equal(way(lambda x: ft.jvp(h, (x,), (np.ones(2),))[1])(np.ones(2)), 2.0)
