"""grad and value_and_grad: arguments, trees, aux, control flow; against closed forms in float64."""

import numpy as np
import pytest
from scipy import special

import functorch_like as ft
import functorch_like.numpy as fnp

X = np.linspace(-1.2, 1.3, 5)


def close(got, want, rtol=1e-10):
    np.testing.assert_allclose(np.asarray(got), want, rtol=rtol, atol=1e-12)


FORMS = {
    "sin": (lambda x: fnp.sin(x), np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x)),
    "exp": (
        lambda x: fnp.exp(2 * x),
        lambda x: 2 * np.exp(2 * x),
        lambda x: 4 * np.exp(2 * x),
        lambda x: 8 * np.exp(2 * x),
    ),
    "power": (lambda x: x**5, lambda x: 5 * x**4, lambda x: 20 * x**3, lambda x: 60 * x**2),
    "reciprocal": (
        lambda x: 1 / (x + 3),
        lambda x: -((x + 3) ** -2),
        lambda x: 2 * (x + 3) ** -3,
        lambda x: -6 * (x + 3) ** -4,
    ),
    "tanh": (
        lambda x: fnp.tanh(x),
        lambda x: 1 - np.tanh(x) ** 2,
        lambda x: -2 * np.tanh(x) * (1 - np.tanh(x) ** 2),
        lambda x: (1 - np.tanh(x) ** 2) * (6 * np.tanh(x) ** 2 - 2),
    ),
    "log": (lambda x: fnp.log(x + 2), lambda x: 1 / (x + 2), lambda x: -((x + 2) ** -2), lambda x: 2 * (x + 2) ** -3),
    "sigmoid": (
        lambda x: 1 / (1 + fnp.exp(-x)),
        lambda x: special.expit(x) * special.expit(-x),
        lambda x: special.expit(x) * special.expit(-x) * (1 - 2 * special.expit(x)),
        None,
    ),
}


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["plain", "jit"])
@pytest.mark.parametrize("name", FORMS)
def test_three_derivatives_have_their_closed_forms(name, wrap):
    fun, *forms = FORMS[name]
    derived = wrap(fun)
    for form in forms:
        derived = ft.grad(derived)
        if form is not None:
            close(ft.vmap(derived)(X), form(X))
            close(wrap(ft.vmap(derived))(X), form(X))


def test_every_mode_gives_the_same_second_derivative():
    fun = lambda x: fnp.sin(x) * fnp.exp(x)
    want = 2 * np.cos(X) * np.exp(X)
    forward = lambda f: lambda x: ft.jvp(f, (x,), (fnp.ones_like(x),))[1]
    backward = lambda f: lambda x: ft.vjp(f, x)[1](fnp.ones_like(x))[0]
    pushed = lambda f: lambda x: ft.linearize(f, x)[1](fnp.ones_like(x))
    for outer in (forward, backward, pushed):
        for inner in (forward, backward, pushed):
            close(outer(inner(fun))(X), want)
            close(ft.jit(outer(ft.jit(inner(ft.jit(fun)))))(X), want)


def test_argnums():
    fun = lambda a, b, c: fnp.sum(a * b**2 * c)
    a, b, c = X, X + 2, X - 3
    parts = (b**2 * c, 2 * a * b * c, a * b**2)
    for argnums, want in [(0, 0), (1, 1), (2, 2), (-1, 2), (-3, 0), (np.int64(1), 1)]:
        close(ft.grad(fun, argnums=argnums)(a, b, c), parts[want])
    for argnums in [(0, 1), (2, 0), (-1,), [1, 2]]:
        got = ft.grad(fun, argnums=argnums)(a, b, c)
        assert isinstance(got, tuple) and len(got) == len(argnums)
        for g, n in zip(got, argnums, strict=True):
            close(g, parts[n])


def test_keyword_arguments_are_passed_and_not_differentiated():
    fun = lambda x, *, scale, mode="a": fnp.sum(x * scale) if mode == "a" else fnp.sum(x)
    close(ft.grad(fun)(X, scale=3.0), np.full(5, 3.0))
    close(ft.grad(fun)(X, scale=X, mode="b"), np.ones(5))


def test_gradients_have_the_structure_of_their_argument():
    params = {"layers": [(X, None), (X + 1, X[:2])], "scale": 2.0}

    def loss(p):
        return p["scale"] * sum(fnp.sum(w**2) for w, _ in p["layers"]) + fnp.sum(p["layers"][1][1])

    got = ft.grad(loss)(params)
    close(got["layers"][0][0], 4 * X)
    assert got["layers"][0][1] is None
    close(got["layers"][1][1], np.ones(2))
    assert isinstance(got["layers"][0], tuple)
    close(got["scale"], np.sum(X**2) + np.sum((X + 1) ** 2), rtol=1e-5)


def test_value_and_aux():
    fun = lambda x: (fnp.sum(x**2), {"double": x * 2, "note": 3})
    value, slope = ft.value_and_grad(lambda x: fun(x)[0])(X)
    close(value, np.sum(X**2))
    close(slope, 2 * X)
    (value, aux), slope = ft.value_and_grad(fun, has_aux=True)(X)
    close(aux["double"], 2 * X)
    assert int(aux["note"]) == 3
    slope, aux = ft.grad(fun, has_aux=True)(X)
    close(slope, 2 * X)
    close(aux["double"], 2 * X)
    slope, (value, aux) = ft.grad_and_value(fun, has_aux=True)(X)
    close(value, np.sum(X**2))
    slope, value = ft.grad_and_value(lambda x: fun(x)[0])(X)
    close(slope, 2 * X)


def test_aux_is_not_a_leak_under_other_transformations():
    fun = lambda x: (x**2, fnp.sin(x))
    slopes, aux = ft.vmap(ft.grad(fun, has_aux=True))(X)
    close(slopes, 2 * X)
    close(aux, np.sin(X))
    slopes, aux = ft.jit(ft.vmap(ft.grad(fun, has_aux=True)))(X)
    close(aux, np.sin(X))
    second = ft.grad(lambda x: ft.grad(fun, has_aux=True)(x)[1])(0.5)
    close(second, np.cos(0.5), rtol=1e-6)


def test_python_control_flow_on_values():
    def fun(x):
        if x > 0:
            return x * 3
        n = 0
        while x < 0:
            x, n = x + 1, n + 1
        return x**2 * n

    assert float(ft.grad(fun)(2.0)) == 3
    assert float(ft.grad(fun)(-1.5)) == 2 * 0.5 * 2
    assert float(ft.grad(ft.grad(fun))(-1.5)) == 4
    assert float(ft.jvp(fun, (2.0,), (1.0,))[1]) == 3

    def rounds(x):
        return sum(x**k for k in range(int(x)))

    assert float(ft.grad(rounds)(3.0)) == 1 + 2 * 3.0


def test_a_result_that_does_not_depend_on_the_argument():
    close(ft.grad(lambda x: 3.0)(2.0), 0)
    got = ft.grad(lambda x, y: fnp.sum(y))(X, X)
    close(got, np.zeros(5))
    assert got.dtype == np.float64
    close(ft.jit(ft.grad(lambda x, y: fnp.sum(y)))(X, X), np.zeros(5))


def test_stop_gradient():
    close(ft.grad(lambda x: x * ft.stop_gradient(x))(3.0), 3)
    close(ft.grad(ft.jit(lambda x: fnp.sum(x * ft.stop_gradient(x**2))))(X), X**2)


def test_perturbations_are_not_confused():
    inner = lambda x: ft.grad(lambda y: x * y)(2.0)
    close(ft.grad(lambda x: x * inner(x))(3.0), 6)
    d = lambda f: lambda x: ft.jvp(f, (x,), (1.0,))[1]
    close(d(lambda x: x * d(lambda y: x + y)(1.0))(1.0), 1)
    close(d(lambda x: x * d(lambda y: x * y)(2.0))(3.0), 6)


def test_repeated_use_adds_up():
    def fun(x):
        y = x
        for _ in range(6):
            y = y + y * x + x
        return y

    eps = 1e-6
    plain = lambda x: np.asarray(fun(x))
    close(ft.grad(fun)(np.float64(0.5)), (plain(0.5 + eps) - plain(0.5 - eps)) / (2 * eps), rtol=1e-4)
    p = np.polynomial.Polynomial([0, 1])
    close(ft.vmap(ft.grad(fun))(X), fun(p).deriv()(X))


def test_a_long_chain_needs_no_recursion():
    def fun(x):
        for _ in range(3000):
            x = x * 1.0001 + 0.001
        return x

    close(ft.jit(ft.grad(fun))(np.float32(1.0)), 1.0001**3000, rtol=1e-3)


def test_the_gradient_by_a_python_number_is_weakly_typed():
    slope = ft.grad(lambda x: x * x)
    half = fnp.ones(2, "bfloat16")
    assert (half * slope(0.5)).dtype == fnp.bfloat16
    assert (half * ft.jit(slope)(0.5)).dtype == fnp.bfloat16
    assert slope(np.float32([0.5])[0]).weak_type and not slope(fnp.asarray(0.5, "float32")).weak_type
