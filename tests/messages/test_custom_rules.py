"""Errors of functions with custom rules: a rule is missing, returns something wrong, or cannot be used."""

import functools

import numpy as np
import pytest
from support.messages import line_of, refusal, says

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.custom_batching import custom_vmap

X = fnp.ones(3)
WAYS = pytest.mark.parametrize("way", [lambda g: g, ft.jit], ids=["plain", "jit"])


def with_jvp(rule):
    @ft.custom_jvp
    def f(x):
        return {"a": fnp.sin(x), "n": 3}

    f.defjvp(rule)
    return f


def with_vjp(fwd, bwd):
    @ft.custom_vjp
    def f(p, x):
        return p["w"] * x

    f.defvjp(fwd, bwd)
    return f


def slope(f, way):
    return lambda: ft.grad(way(lambda x: f(x)["a"].sum()))(X)


def pull(f, way):
    return lambda: ft.grad(way(lambda p, x: f(p, x).sum()), (0, 1))({"w": X}, X)


# ------------------------------------------------------------------------------------------------------- before a rule
def test_a_function_without_its_rule():
    for decorate, how in (
        (ft.custom_jvp, "@sine.defjvp"),
        (ft.custom_vjp, "sine.defvjp(fwd, bwd)"),
        (custom_vmap, "@sine.def_vmap"),
    ):

        def sine(x):
            return fnp.sin(x)

        message = refusal(functools.partial(decorate(sine), X), ValueError)
        says(message.head, f"sine is a {decorate.__name__} function without its rule")
        says(message.remedy, how)


def test_arguments_that_have_no_place():
    @ft.custom_jvp
    def f(params, x, *, mode=None):
        return x

    f.defjvp(lambda primals, tangents: (primals[1], tangents[1]))
    says(refusal(lambda: f(X)).head, "f(params, x, *, mode=None): missing a required argument: 'x'")
    says(refusal(lambda: f(X, X, mode=1)).head, "['mode'] by name alone")

    g = ft.custom_jvp(lambda params, x: x)
    g.defjvp(lambda primals, tangents: (primals[1], tangents[1]))
    message = refusal(lambda: g({"w": X, "act": "relu"}, X), TypeError)
    says(message.head, "argument params['act'] of <lambda> is 'relu' of type str")
    says(message.remedy, "nondiff_argnums")
    says(refusal(lambda: ft.custom_jvp(f.fun, nondiff_argnames="mode")).head, "['mode'], which have no position")
    says(refusal(lambda: ft.custom_vjp(f.fun, nondiff_argnums=(5,))).head, "nondiff_argnums=(5,)")
    says(refusal(lambda: ft.custom_jvp(f.fun, nondiff_argnums=0).defjvps(None)).remedy, "defjvp")


@WAYS
def test_a_derivative_by_a_nondiff_argument(way):
    f = ft.custom_jvp(lambda c, x: c * x, nondiff_argnums=(0,))
    f.defjvp(lambda c, primals, tangents: (c * primals[0], c * tangents[0]))
    message = refusal(lambda: ft.grad(way(lambda c: f(c, 2.0)))(3.0), TypeError)
    says(message.head, "derivative", "f32[]")
    says(message.remedy, "stop_gradient")


# ---------------------------------------------------------------------------------------------------------- custom_jvp
@WAYS
@pytest.mark.parametrize(
    ("tangent", "kind", "lines"),
    [
        (lambda t: {"a": t[:2], "n": None}, ValueError, ["['a']  f32[3]          f32[2]"]),
        (lambda t: {"a": t.astype("float64"), "n": None}, TypeError, ["['a']  f32[3]          f64[3]"]),
        (lambda t: {"a": t, "n": 1}, TypeError, ["['n']  float0[]        i32[]"]),
        (lambda t: (t, None), ValueError, ["['a']  f32[3]          -", "[0]    -               f32[3]"]),
        (lambda t: {"a": "x", "n": None}, TypeError, ["returned 'x' of type str at ['a']"]),
    ],
    ids=["shape", "dtype", "integer", "structure", "no array"],
)
def test_tangents_are_held_against_results(tangent, kind, lines, way):
    def rule(primals, tangents):
        return {"a": fnp.sin(primals[0]), "n": 3}, tangent(tangents[0])

    message = refusal(slope(with_jvp(rule), way), kind)
    says(message.head, "f(f32[3]): rule, a rule of f,", *lines)
    says(message.rule, line_of(rule, "def rule"))
    says(message.at, "test_custom_rules.py")


def test_results_of_a_rule_are_held_against_the_function():
    def rule(primals, tangents):
        return {"a": primals[0][:2], "n": 3}, {"a": tangents[0][:2], "n": None}

    message = refusal(slope(with_jvp(rule), ft.jit), ValueError)
    says(message.head, "f gives  its rule gives", "['a']  f32[3]   f32[2]")
    says(message.rule, line_of(rule, "def rule"))


@WAYS
def test_a_rule_that_returns_no_pair(way):
    message = refusal(slope(with_jvp(lambda primals, tangents: tangents[0]), way))
    says(message.head, "a rule of f returned", "not a pair")
    says(message.remedy, "(result, tangent of the result)")


@WAYS
@pytest.mark.parametrize(
    ("part", "why"),
    [
        (lambda t, out, x: t * t, "both operands of mul(f32[], f32[]) depend"),
        (lambda t, out, x: fnp.sin(t), "sin(f32[]) is not linear"),
        (lambda t, out, x: fnp.where(t > 0, t, 0.0), "gt(f32[], f32[]) is not linear"),
        (lambda t, out, x: x / t, "div(f32[], f32[]) is linear in operand 0 alone"),
    ],
    ids=["square", "sin", "where", "div"],
)
def test_a_tangent_that_is_not_linear(part, why, way):
    f = ft.custom_jvp(lambda x: x * x)
    f.defjvps(part)
    for loss in (f, lambda x: ft.vmap(f)(fnp.stack([x, x])).sum()):
        message = refusal(lambda loss=loss: ft.grad(way(loss))(2.0), TypeError)
        says(message.head.replace("f32[2]", "f32[]"), "is not linear in its tangents", why)
        says(message.rule, "test_custom_rules.py")


@WAYS
def test_a_tangent_with_something_added(way):
    f = ft.custom_jvp(lambda x: x * x)
    f.defjvps(lambda t, out, x: t + 1.0)
    says(refusal(lambda: ft.grad(way(f))(2.0)).head, "an operand of add(f32[], f32[]) is a constant that is not zero")


def test_a_tangent_that_does_not_depend_on_tangents():
    f = ft.custom_jvp(lambda x: x * x)
    f.defjvps(lambda t, out, x: fnp.ones_like(x))
    says(refusal(lambda: ft.grad(f)(2.0)).head, "does not depend on the given ones, and is not zero")


def test_rules_whose_linearity_is_hidden_are_let_through():
    f = ft.custom_jvp(lambda x: x * x)
    double = lambda t: ft.pure_callback(lambda a: np.asarray(2 * a, np.float32), t, t)
    f.defjvps(lambda t, out, x: double(t) * x)
    assert float(ft.jit(lambda x: ft.jvp(f, (x,), (1.0,))[1])(3.0)) == 6.0
    halved = lambda t: ft.lax.while_loop(lambda p: p[0] < 2, lambda p: (p[0] + 1, p[1] / 2), (0, t))[1]
    f.defjvps(lambda t, out, x: halved(t) * x)
    assert float(ft.jit(lambda x: ft.jvp(f, (x,), (1.0,))[1])(4.0)) == 1.0


def test_the_number_of_rules():
    f = ft.custom_jvp(lambda x, y: x * y)
    f.defjvps(lambda t, out, x, y: t)
    says(refusal(lambda: ft.grad(f)(1.0, 2.0)).head, "1 rules", "2 arguments")


# ---------------------------------------------------------------------------------------------------------- custom_vjp
def product(p, x):
    return p["w"] * x, None


@WAYS
@pytest.mark.parametrize(
    ("cotangents", "kind", "lines"),
    [
        (lambda g: ({"w": g[:2]}, g), ValueError, ["[0]['w']  f32[3]            f32[2]"]),
        (lambda g: ({"w": g}, g.astype("float16")), TypeError, ["[1]  f32[3]            f16[3]"]),
        (
            lambda g: ({"w": g}, [g, g]),
            ValueError,
            ["[1]     f32[3]            -", "[1][0]  -                 f32[3]"],
        ),
        (lambda g: ({"w": g, "b": g}, g), ValueError, ["[0]['b']  -                 f32[3]"]),
        (lambda g: g, ValueError, ["returned", "for the cotangents of 2 arguments"]),
        (lambda g: None, ValueError, ["returned None for the cotangents of 2 arguments"]),
        (lambda g: (g, g, g), ValueError, ["returned a tuple of 3 for the cotangents of 2 arguments"]),
    ],
    ids=["shape", "dtype", "structure", "extra", "array", "nothing", "count"],
)
def test_cotangents_are_held_against_arguments(cotangents, kind, lines, way):
    def bwd(residuals, g):
        return cotangents(g)

    message = refusal(pull(with_vjp(product, bwd), way), kind)
    says(message.head, "f(f32[3], f32[3]): bwd, a rule of f,", *lines)
    says(message.rule, line_of(bwd, "def bwd"))
    says(message.at, "test_custom_rules.py")


def test_fwd_is_held_against_the_function():
    bwd = lambda residuals, g: (None, g)
    message = refusal(pull(with_vjp(lambda p, x: (p, None), bwd), ft.jit), ValueError)
    says(message.head, "f gives  its rule gives", "['w']", "f32[3]")
    says(refusal(pull(with_vjp(lambda p, x: p["w"] * x, bwd), ft.jit)).head, "not a pair")
    says(refusal(pull(with_vjp(lambda p, x: p["w"] * x, bwd), lambda g: g)).remedy, "residuals may be None")


@WAYS
def test_forward_mode_through_custom_vjp(way):
    def bwd(residuals, g):
        return {"w": g}, g

    f = with_vjp(product, bwd)
    for push in (
        lambda: ft.jvp(way(lambda x: f({"w": X}, x)), (X,), (X,)),
        lambda: ft.jacfwd(way(lambda x: f({"w": X}, x)))(X),
        lambda: ft.linearize(way(lambda x: f({"w": X}, x)), X)[1](X),
        lambda: ft.jit(lambda x: ft.jvp(way(lambda x: f({"w": X}, x)), (x,), (x,)))(X),
    ):
        message = refusal(push, TypeError)
        says(message.head, "forward mode", "f, a custom_vjp function", "only bwd is known")
        says(message.remedy, "custom_jvp", "reverse mode")


# ------------------------------------------------------------------------------------------------------------ closures
@WAYS
@pytest.mark.parametrize("kind", [ft.custom_jvp, ft.custom_vjp])
def test_a_derivative_by_what_a_function_closes_over(kind, way):
    def times(c):
        f = kind(lambda x: x * c)
        if kind is ft.custom_jvp:
            f.defjvps(lambda t, out, x: t * c)
        else:
            f.defvjp(lambda x: (x * c, c), lambda c, g: (g * c,))
        return f

    for loss in (lambda c: times(c)(c), lambda c: times(c)(2.0)):
        for slope in (ft.grad(way(loss)), way(ft.grad(loss))):
            message = refusal(functools.partial(slope, 3.0))
            says(message.remedy, "pass the value", "as an argument")
            assert "already returned" not in message.head


def test_a_rule_that_closes_over_what_jit_traced():
    def loss(x, c):
        f = ft.custom_vjp(lambda v: v * c)
        f.defvjp(lambda v: (v * c, None), lambda _, g: (g * c,))
        return f(x)

    message = refusal(lambda: ft.grad(ft.jit(loss))(2.0, 3.0), RuntimeError)
    says(message.remedy, "pass the value to <lambda> as an argument")


# --------------------------------------------------------------------------------------------------------- custom_vmap
@WAYS
@pytest.mark.parametrize(
    ("results", "lines"),
    [
        (lambda x: x, ["returned", "not a pair"]),
        (lambda x: (x, (True, True)), ["out_batched=(True, True)"]),
        (lambda x: (x[:2], True), ["no leading axis of 3", "[f32[2,2]]"]),
    ],
    ids=["pair", "flags", "axis"],
)
def test_results_of_a_rule_for_batches(results, lines, way):
    f = custom_vmap(lambda x: fnp.sin(x))

    def rule(axis_size, in_batched, x):
        return results(x)

    f.def_vmap(rule)
    message = refusal(lambda: ft.vmap(way(f))(fnp.ones((3, 2))))
    says(message.head, "rule, a rule of <lambda>,", *lines)
    says(message.rule, line_of(rule, "def rule"))


def test_results_of_a_rule_for_batches_are_held_against_the_function():
    f = custom_vmap(lambda x: {"a": x, "b": x})
    f.def_vmap(lambda n, batched, x: ({"a": x, "b": fnp.stack([x, x], 1)}, {"a": True, "b": True}))
    message = refusal(lambda: ft.vmap(ft.jit(f))(X), ValueError)
    says(message.head, "['b']  f32[3]         f32[3,2]")
    f.def_vmap(lambda n, batched, x: ((x, x), (True, True)))
    message = refusal(lambda: ft.vmap(ft.jit(f))(X), ValueError)
    says(message.head, "['a']", "[0]", "its rule gives")


@WAYS
def test_a_rule_for_batches_that_closes_over_a_batch(way):
    def times(c):
        f = custom_vmap(lambda x: x * c)
        f.def_vmap(lambda n, batched, x: (x * c, True))
        return f

    message = refusal(lambda: ft.vmap(way(lambda c: times(c)(c)))(X))
    says(message.remedy, "pass the value", "as an argument")


# ----------------------------------------------------------------------------------- custom_gradient, closure_convert
def test_custom_gradient_and_closure_convert():
    says(refusal(lambda: ft.custom_gradient(lambda x: x)(1.0)).remedy, "(result, rule)")
    bad = ft.custom_gradient(lambda x: (x, lambda g: (g, g)))
    says(refusal(lambda: ft.grad(bad)(1.0)).head, "a tuple of 2 for the cotangents of 1 argument")
    converted, _ = ft.closure_convert(fnp.sin, 1.0)
    says(refusal(lambda: converted(1.0, 2.0)).remedy, "converted(*args, *values)")
    says(refusal(lambda: converted(X)).head, "[f32[]]", "[f32[3]]")
