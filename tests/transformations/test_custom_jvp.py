"""custom_jvp: derivatives use the user's rule, under all transformations."""

import copy
import functools

import numpy as np
import pytest
from support.nestings import ALL, DERIVATIVES, nested, nestings

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.custom_derivatives import SymbolicZero
from functorch_like.testing import check_grads

X = ft.device_put(np.asarray(0.7))  # in double precision


def doubled():
    """Return sin with twice its derivative, so that results show whether the rule was used, and how often."""

    @ft.custom_jvp
    def f(x):
        return fnp.sin(x)

    @f.defjvp
    def rule(primals, tangents):
        (x,), (dx,) = primals, tangents
        return f(x), 2 * fnp.cos(x) * dx

    return f


def twice(names):
    """Return the factor by which the doubled derivative changes a nesting: 1 without a derivative."""
    return 2.0 if DERIVATIVES & set(names) else 1.0


F = doubled()


@pytest.mark.parametrize("names", nestings(ALL, 2), ids="-".join)
def test_the_rule_is_used_in_every_nesting(names):
    want = twice(names) * np.asarray(nested(names, fnp.sin)(X))
    np.testing.assert_allclose(nested(names, F)(X), want, rtol=1e-12, atol=1e-12)


# One transformation of each kind at each position is enough, because everything is compiled three times at this depth.
DEEP = [n for n in nestings({k: ALL[k] for k in ("jit", "grad", "vmap", "jvp")}, 3) if len(set(n)) == len(n) == 3]


@pytest.mark.parametrize("names", DEEP, ids="-".join)
def test_the_rule_is_used_three_deep(names):
    want = twice(names) * np.asarray(nested(names, fnp.sin)(X))
    np.testing.assert_allclose(nested(names, F)(X), want, rtol=1e-12, atol=1e-12)


def test_log1pexp_is_stable():
    @ft.custom_jvp
    def log1pexp(x):
        return fnp.log1p(fnp.exp(x))

    @log1pexp.defjvp
    def rule(primals, tangents):
        (x,), (dx,) = primals, tangents
        return log1pexp(x), (1 - 1 / (1 + fnp.exp(x))) * dx

    assert not np.isfinite(ft.grad(lambda x: fnp.log1p(fnp.exp(x)))(100.0))
    for slope in (ft.grad(log1pexp), ft.jit(ft.grad(log1pexp)), ft.grad(ft.jit(log1pexp))):
        assert float(slope(100.0)) == 1.0
    np.testing.assert_allclose(ft.vmap(ft.grad(log1pexp))(fnp.asarray([0.0, 100.0])), [0.5, 1.0])
    check_grads(log1pexp, (np.asarray([0.3, -1.2, 2.0]),), order=3)


def test_a_convention_for_the_derivative_at_a_kink():
    @ft.custom_jvp
    def relu(x):
        return fnp.maximum(x, 0)

    relu.defjvps(lambda dx, out, x: fnp.where(x > 0, dx, 0.0))
    assert [float(ft.grad(relu)(x)) for x in (-1.0, 0.0, 1.0)] == [0.0, 0.0, 1.0]


def test_python_control_flow_sees_numbers():
    """The function and its rule run as plain Python outside of jit."""

    @ft.custom_jvp
    def f(x):
        return x**2 if x > 0 else -x

    @f.defjvp
    def rule(primals, tangents):
        (x,), (dx,) = primals, tangents
        return f(x), (2 * x if x > 0 else -1.0) * dx

    assert [float(f(x)) for x in (3.0, -3.0)] == [9.0, 3.0]
    assert [float(ft.grad(f)(x)) for x in (3.0, -3.0)] == [6.0, -1.0]
    assert [float(ft.grad(ft.grad(f))(x)) for x in (3.0, -3.0)] == [2.0, 0.0]


# ----------------------------------------------------------------------------------------------------------- arguments
def test_defjvps_adds_up_and_none_is_zero():
    @ft.custom_jvp
    def f(x, y, z):
        return x * y + z

    f.defjvps(lambda dx, out, x, y, z: dx * y, None, lambda dz, out, x, y, z: dz)
    assert [float(g) for g in ft.grad(f, (0, 1, 2))(2.0, 3.0, 4.0)] == [3.0, 0.0, 1.0]
    f.defjvps(None, None, None)
    assert [float(g) for g in ft.grad(f, (0, 1, 2))(2.0, 3.0, 4.0)] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("options", [{"nondiff_argnums": (0, 2)}, {"nondiff_argnames": ("fun", "power")}], ids=str)
def test_nondiff_arguments_come_first_and_may_be_anything(options):
    @functools.partial(ft.custom_jvp, **options)
    def f(fun, x, power=3):
        return fun(x) ** power

    @f.defjvp
    def rule(fun, power, primals, tangents):
        assert callable(fun) and isinstance(power, int)
        (x,), (dx,) = primals, tangents
        return f(fun, x, power), 10 * dx

    for way in (lambda g: g, ft.jit):
        assert float(ft.grad(way(lambda x: f(lambda y: 2 * y, x)))(1.0)) == 10.0
        assert float(way(lambda x: f(lambda y: 2 * y, x, power=2))(1.0)) == 4.0


def test_arguments_by_name_and_defaults_have_positions_in_rules():
    @ft.custom_jvp
    def g(x, y=2.0):
        return x * y

    seen = []

    @g.defjvp
    def rule(primals, tangents):
        seen.append(len(primals))
        return primals[0] * primals[1], tangents[0] * primals[1] + 100 * tangents[1]

    assert float(ft.grad(lambda x: g(y=x, x=3.0))(5.0)) == 100.0
    assert float(ft.grad(g)(3.0)) == 2.0
    assert seen == [2, 2]


def test_pytrees_in_and_out():
    @ft.custom_jvp
    def f(params, x):
        return {"y": params["w"] * x, "sum": (params["b"].sum(), None)}

    @f.defjvp
    def rule(primals, tangents):
        (p, x), (dp, _) = primals, tangents
        assert set(dp) == {"w", "b"} and dp["b"].shape == p["b"].shape
        return f(p, x), {"y": 3 * dp["w"] * x, "sum": (5 * dp["b"].sum(), None)}

    params = {"w": fnp.ones(2), "b": fnp.ones(3)}
    loss = lambda p: (out := f(p, fnp.asarray([1.0, 2.0])))["y"].sum() + out["sum"][0]
    for slope in (ft.grad(loss), ft.jit(ft.grad(loss)), ft.grad(ft.jit(loss))):
        got = slope(params)
        assert got["w"].tolist() == [3.0, 6.0] and got["b"].tolist() == [5.0] * 3


def test_integers_have_float0_tangents():
    @ft.custom_jvp
    def f(x, n):
        return x * n, n + 1

    @f.defjvp
    def rule(primals, tangents):
        (x, n), (dx, dn) = primals, tangents
        assert dn.dtype == ft.float0 and dn.shape == n.shape
        return f(x, n), (7 * dx, dn)

    assert float(ft.grad(lambda x: f(x, 3)[0])(2.0)) == 7.0
    assert float(ft.jit(ft.grad(lambda x, n: f(x, n)[0]))(2.0, 3)) == 7.0
    f.defjvp(lambda primals, tangents: (f(*primals), (7 * tangents[0], None)))
    assert float(ft.grad(lambda x: f(x, 3)[0])(2.0)) == 7.0


def test_numbers_are_arrays_in_rules():
    @ft.custom_jvp
    def f(x, y):
        return x * y

    @f.defjvp
    def rule(primals, tangents):
        assert all(isinstance(v, ft.Array) for v in (*primals, *tangents))
        return f(*primals), tangents[0] * primals[1]

    assert float(ft.grad(f)(2.0, np.float32(3.0))) == 3.0
    assert ft.grad(f)(2.0, 3.0).weak_type


def test_numbers_beside_64_bits_keep_their_digits():
    @ft.custom_jvp
    def f(x, y):
        return x * y

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * primals[1]))
    for way in (lambda g: g, ft.jit, lambda g: ft.jit(ft.grad(g)), ft.grad, lambda g: ft.grad(ft.jit(g))):
        assert float(way(lambda x: f(x, 0.1))(ft.device_put(np.ones(())))) == 0.1


def test_options_alone_give_a_decorator():
    @ft.custom_jvp(nondiff_argnums=(0,))
    def f(n, x):
        return n * x

    f.defjvp(lambda n, primals, tangents: (f(n, *primals), 10 * n * tangents[0]))
    for g in (f, copy.copy(f)):
        assert float(ft.grad(lambda x, g=g: g(3, x))(1.0)) == 30.0
    assert repr(f) == "<custom_jvp f>" and f.__name__ == "f" and f.fun(3, 2.0) == 6.0


def test_methods_get_their_instance():
    class Scale:
        factor = 3.0

        @functools.partial(ft.custom_jvp, nondiff_argnums=0)
        def __call__(self, x):
            return self.factor * x

        @__call__.defjvp
        def rule(self, primals, tangents):
            return self(*primals), 10 * self.factor * tangents[0]

    assert float(ft.grad(Scale())(1.0)) == 30.0


# ------------------------------------------------------------------------------------------------------ symbolic zeros
def test_symbolic_zeros_tell_what_is_not_differentiated():
    seen = []

    @ft.custom_jvp
    def f(x, y):
        return x * y, x + y

    @functools.partial(f.defjvp, symbolic_zeros=True)
    def rule(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        seen.append([type(t) is SymbolicZero for t in tangents])
        assert isinstance(dy, SymbolicZero) and (dy.shape, dy.dtype) == (y.shape, y.dtype)
        return f(x, y), (dx * y, dy)

    assert float(ft.grad(lambda x: f(x, 3.0)[0])(2.0)) == 3.0
    assert float(ft.grad(ft.jit(lambda x: f(x, 3.0)[1]))(2.0)) == 0.0
    assert ft.vmap(ft.grad(lambda x: f(x, 3.0)[0]))(fnp.ones(2)).tolist() == [3.0, 3.0]
    assert ft.grad(lambda x: ft.vmap(f, (0, None))(x, 3.0)[0].sum())(fnp.ones(2)).tolist() == [3.0, 3.0]
    assert seen == [[False, True]] * 4


# ------------------------------------------------------------------------------------------------------------ nestings
def test_a_rule_that_uses_other_rules():
    f = doubled()

    @ft.custom_jvp
    def g(x):
        return f(x) * x

    @g.defjvp
    def rule(primals, tangents):
        (x,), (dx,) = primals, tangents
        return g(x), ft.jvp(f, (x,), (dx,))[1] * 10

    x = 0.7
    np.testing.assert_allclose(ft.grad(g)(x), 20 * np.cos(x), rtol=1e-6)
    np.testing.assert_allclose(ft.grad(ft.jit(ft.grad(g)))(x), -20 * np.sin(x), rtol=1e-6)


def test_a_linear_function_applied_to_tangents():
    """The function is called inside of another rule, where its operand has no value in reverse mode."""

    @ft.custom_jvp
    def double(t):
        return 2 * t

    double.defjvps(lambda dt, out, t: double(dt))

    @ft.custom_jvp
    def f(x):
        return x * x

    f.defjvps(lambda dx, out, x: double(dx) * x)
    for way in (lambda g: g, ft.jit):
        assert float(ft.grad(way(f))(3.0)) == 6.0
        assert float(ft.vmap(ft.grad(way(f)))(fnp.asarray([3.0]))[0]) == 6.0
    (back,) = ft.linear_transpose(double, fnp.ones(2))(fnp.asarray([1.0, 5.0]))
    assert back.tolist() == [2.0, 10.0]


def test_batches_that_only_some_arguments_have():
    @ft.custom_jvp
    def f(x, y):
        return fnp.sum(fnp.sin(x) * y), y

    @f.defjvp
    def rule(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        return f(x, y), (fnp.sum(fnp.cos(x) * dx * y + fnp.sin(x) * dy), dy)

    plain = lambda x, y: (fnp.sum(fnp.sin(x) * y), y)
    rng = np.random.default_rng(0)
    x, y, xs, ys = (rng.normal(size=s) for s in ((4,), (4,), (3, 4), (4, 3)))
    for args, axes in (((xs, y), (0, None)), ((x, ys), (None, 1)), ((xs, ys), (0, 1))):
        loss = lambda g, axes=axes: lambda *given: sum(o.sum() for o in ft.vmap(g, axes)(*given))
        for got, want in zip(*(ft.grad(loss(g), (0, 1))(*args) for g in (f, plain)), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12)
        pushed = [ft.vmap(lambda *a, g=g: ft.jvp(g, a, a), axes)(*args) for g in (f, plain)]
        for got, want in zip(*map(ft.tree.leaves, pushed), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12)


def test_inside_of_control_flow():
    f = doubled()

    def loss(x):
        y = ft.lax.cond(x > 0, f, lambda v: v, x)
        return ft.lax.switch(1, [lambda v: v, f], y)

    x = 0.7
    want = 4 * np.cos(np.sin(x)) * np.cos(x)
    for way in (ft.grad(loss), ft.jit(ft.grad(loss)), ft.grad(ft.jit(loss)), lambda v: ft.jvp(loss, (v,), (1.0,))[1]):
        np.testing.assert_allclose(way(x), want, rtol=1e-6)
    np.testing.assert_allclose(ft.vmap(ft.grad(loss))(fnp.asarray([x, -x])), [want, 2 * np.cos(x)], rtol=1e-6)


# ------------------------------------------------------------------------------------------------------------- closures
def scaled_by(c, derivative=1.0):
    @ft.custom_jvp
    def f(x):
        return x * c

    @f.defjvp
    def rule(primals, tangents):
        return f(*primals), tangents[0] * c * derivative

    return f


@pytest.mark.parametrize("way", [lambda g: g, ft.jit], ids=["plain", "jit"])
def test_closing_over_what_vmap_and_jit_trace(way):
    cs = fnp.asarray([1.0, 2.0, 3.0])
    assert ft.vmap(way(lambda c: scaled_by(c)(2.0)))(cs).tolist() == [2.0, 4.0, 6.0]
    assert ft.vmap(way(lambda c: ft.grad(scaled_by(c, 10))(2.0)))(cs).tolist() == [10.0, 20.0, 30.0]
    assert float(ft.grad(way(lambda x: ft.vmap(lambda c: scaled_by(c, 10)(x))(cs).sum()))(2.0)) == 60.0
    assert float(way(lambda c: ft.grad(scaled_by(c, 10))(2.0))(3.0)) == 30.0
    got = ft.vmap(lambda c: ft.vmap(lambda d: ft.grad(way(scaled_by(c + d, 10)))(c * d))(cs))(cs)
    assert got.tolist() == [[20.0, 30.0, 40.0], [30.0, 40.0, 50.0], [40.0, 50.0, 60.0]]


def test_closing_over_what_is_not_differentiated():
    loss = lambda x: scaled_by(ft.lax.stop_gradient(x), 10)(x)
    assert float(ft.grad(loss)(3.0)) == 30.0
    assert float(ft.jit(ft.grad(loss))(3.0)) == 30.0


# --------------------------------------------------------------------------------------------------------------- cost
@pytest.mark.parametrize(
    "way",
    [
        lambda f: ft.jit(f),
        lambda f: ft.grad(ft.jit(f)),
        lambda f: ft.jit(ft.grad(f)),
        lambda f: ft.vmap(ft.jit(f), axis_size=1, in_axes=None, out_axes=None),
        lambda f: ft.grad(ft.jit(ft.grad(f))),
    ],
    ids=["jit", "grad(jit)", "jit(grad)", "vmap(jit)", "grad(jit(grad))"],
)
def test_repeated_calls_run_no_python(way):
    runs = []

    @ft.custom_jvp
    def f(x):
        runs.append("function")
        return fnp.sin(x)

    @f.defjvp
    def rule(primals, tangents):
        runs.append("rule")
        return f(*primals), fnp.cos(primals[0]) * tangents[0]

    g = way(lambda x: f(x))
    first = g(1.0)
    assert runs
    runs.clear()
    assert float(g(1.0)) == float(first)
    assert not runs


def test_equal_calls_are_computed_and_unused_ones_dropped():
    f = doubled()
    text = ft.jit(lambda x: (f(x) * 0 + f(x), f(x + 1))[0]).lower(1.0).compile().as_text()
    assert text.count(" sine(") == 1
    np.testing.assert_allclose(ft.grad(ft.jit(lambda x: f(x) + f(x)))(0.7), 4 * np.cos(0.7), rtol=1e-6)


def test_the_jaxpr_shows_the_function_and_names_the_rule():
    text = str(ft.make_jaxpr(doubled())(1.0))
    assert "def f(a: f32[]):  # traced by custom_jvp_call" in text
    assert "custom_jvp_call(a, fun=f, rule=rule, consts=0)" in text


def test_a_zero_tangent_that_is_written_out():
    """Reverse mode goes through a rule that returns zeros, into a function without forward mode."""

    @ft.custom_jvp
    def rounded(x):
        return fnp.round(x)

    rounded.defjvp(lambda primals, tangents: (rounded(*primals), fnp.zeros_like(primals[0])))

    @ft.custom_vjp
    def square(x):
        return x * x

    square.defvjp(lambda x: (x * x, x), lambda x, g: (2 * x * g,))
    assert float(ft.grad(lambda x: square(rounded(x)) + x)(2.7)) == 1.0
    assert float(ft.jit(ft.grad(lambda x: square(rounded(x)) + x))(2.7)) == 1.0


def test_tangents_that_are_primals_in_a_program():
    @ft.custom_jvp
    def square(x):
        return x**2

    square.defjvp(lambda primals, tangents: (primals[0] ** 2, 2 * primals[0] * tangents[0]))
    root = lambda a: lax.custom_root(
        lambda s: s**3 + s - a,
        fnp.zeros_like(a),
        lambda f, x: lax.fori_loop(0, 30, lambda i, s: s - f(s) / (3 * s**2 + 1), x),
        lambda g, y: y / g(fnp.ones_like(y)),
    )
    x = fnp.asarray([0.5, 2.0])
    along = lambda f: ft.jit(lambda x: ft.jvp(f, (x,), (x,))[1])
    np.testing.assert_allclose(along(square)(x), 2 * x**2, rtol=1e-6)
    y = root(x)
    np.testing.assert_allclose(along(root)(x), x / (3 * y**2 + 1), rtol=1e-5)
    np.testing.assert_allclose(ft.jit(ft.vmap(along(square)))(x), 2 * x**2, rtol=1e-6)
    np.testing.assert_allclose(ft.grad(lambda x: along(square)(x).sum())(x), 4 * x, rtol=1e-6)
