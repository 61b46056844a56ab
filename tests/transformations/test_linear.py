"""jvp, vjp, linearize: tangents and cotangents, reuse, aux."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp

X = np.linspace(-1.2, 1.3, 4)
A = np.array([[0.5, -1.0, 2.0, 0.3], [1.5, 0.2, -0.7, 0.9]])


def close(got, want, rtol=1e-10):
    np.testing.assert_allclose(np.asarray(got), want, rtol=rtol, atol=1e-12)


def fun(x):
    return fnp.tanh(A @ x)


def jacobian(x):
    return (1 - np.tanh(A @ x) ** 2)[:, None] * A


def test_a_pullback_may_be_called_often():
    out, pull = ft.vjp(fun, X)
    close(out, np.tanh(A @ X))
    for ct in np.eye(2):
        close(pull(ct)[0], ct @ jacobian(X))
    close(pull(np.eye(2)[0])[0], jacobian(X)[0])


def test_a_pullback_can_be_transformed():
    _, pull = ft.vjp(fun, X)
    close(ft.vmap(pull)(np.eye(2))[0], jacobian(X))
    close(ft.jit(pull)(np.eye(2)[1])[0], jacobian(X)[1])
    close(ft.jit(ft.vmap(pull))(np.eye(2))[0], jacobian(X))
    _, again = ft.vjp(pull, np.ones(2))
    close(again((X,))[0], jacobian(X) @ X)


def test_a_pushforward_may_be_called_often_and_transformed():
    for f in (fun, ft.jit(fun)):
        out, push = ft.linearize(f, X)
        close(out, np.tanh(A @ X))
        for t in np.eye(4):
            close(push(t), jacobian(X) @ t)
        close(ft.vmap(push, out_axes=1)(np.eye(4)), jacobian(X))
        close(ft.jit(push)(X), jacobian(X) @ X)
        close(ft.grad(lambda t, push=push: push(t).sum())(X), jacobian(X).sum(0))


def test_linearizing_evaluates_once():
    calls = []

    def counted(x):
        calls.append(1)
        return fun(x)

    _, push = ft.linearize(counted, X)
    _, pull = ft.vjp(counted, X)
    for _ in range(3):
        push(X)
        pull(np.ones(2))
    assert len(calls) == 2


def test_many_operands_and_trees():
    def f(p, y):
        return {"out": p["a"] * y[0], "sum": fnp.sum(y[1])}

    p, y = {"a": X}, (X + 1, X + 2)
    _, dots = ft.jvp(f, (p, y), ({"a": X * 2}, (X * 3, X * 4)))
    close(dots["out"], X * 2 * (X + 1) + X * X * 3)
    close(dots["sum"], np.sum(X * 4))
    _, pull = ft.vjp(f, p, y)
    ct_p, ct_y = pull({"out": X, "sum": 2.0})
    close(ct_p["a"], X * (X + 1))
    close(ct_y[0], X * X)
    close(ct_y[1], np.full(4, 2.0))
    assert isinstance(ct_y, tuple)
    _, push = ft.linearize(f, p, y)
    close(push({"a": X * 2}, (X * 3, X * 4))["out"], dots["out"])


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["plain", "jit"])
def test_tangents_that_are_none_are_zero(wrap):
    f = wrap(lambda x, y: x * y)
    close(ft.jvp(f, (X, X + 1), (None, X))[1], X * X)
    close(ft.jvp(f, (X, X + 1), (X, None))[1], X * (X + 1))
    close(ft.jvp(f, (X, X + 1), (None, None))[1], np.zeros(4))
    _, push = ft.linearize(f, X, X + 1)
    close(push(None, X), X * X)
    close(push(X, None), X * (X + 1))


def test_aux():
    g = lambda x: (fun(x), {"kept": x * 2, "n": 3})
    out, dot, aux = ft.jvp(g, (X,), (X,), has_aux=True)
    close(dot, jacobian(X) @ X)
    close(aux["kept"], 2 * X)
    out, pull, aux = ft.vjp(g, X, has_aux=True)
    close(pull(np.ones(2))[0], jacobian(X).sum(0))
    close(aux["kept"], 2 * X)
    out, push, aux = ft.linearize(g, X, has_aux=True)
    close(push(X), jacobian(X) @ X)
    assert int(aux["n"]) == 3
    close(out, np.tanh(A @ X))


def test_results_that_do_not_depend_on_the_arguments():
    _, dot = ft.jvp(lambda x: (x, 3.0, np.arange(2)), (X,), (X,))
    close(dot[0], X)
    close(dot[1], 0)
    assert dot[2].dtype == ft.float0
    _, pull = ft.vjp(lambda x: (x * 2, fnp.ones(2)), X)
    close(pull((X, fnp.ones(2)))[0], 2 * X)


def test_tangents_that_are_numbers():
    close(ft.jvp(fnp.sin, (0.5,), (2,))[1], 2 * np.cos(0.5), rtol=1e-6)
    close(ft.jvp(lambda x: x * x, (np.float64(3),), (1.0,))[1], 6)
    assert ft.jvp(lambda x: x * x, (fnp.asarray(np.float64(3)),), (1.0,))[1].dtype == np.float64


def test_numbers_keep_their_digits_beside_float64():
    close(ft.jvp(lambda x: 3 * x, (np.ones(()),), (0.1,))[1], 0.30000000000000004, rtol=0)
    close(ft.vjp(lambda x: 3 * x, fnp.ones((), "float64"))[1](0.1)[0], 3 * 0.1, rtol=0)


def test_tangents_that_are_traced():
    """The outer transformation traces the tangent of the inner jvp."""
    close(ft.grad(lambda t: ft.jvp(fun, (X,), (t,))[1].sum())(X), jacobian(X).sum(0))
    close(ft.vmap(lambda t: ft.jvp(fun, (X,), (t,))[1], out_axes=1)(np.eye(4)), jacobian(X))
    close(ft.jit(lambda x, t: ft.jvp(fun, (x,), (t,))[1])(X, X), jacobian(X) @ X)


def test_the_jacobian_by_columns_and_by_rows():
    columns = ft.vmap(lambda t: ft.jvp(fun, (X,), (t,))[1], out_axes=-1)(np.eye(4))
    rows = ft.vmap(lambda c: ft.vjp(fun, X)[1](c)[0])(np.eye(2))
    close(columns, jacobian(X))
    close(rows, jacobian(X))


def test_transposes_of_functions_of_avals():
    x = np.arange(4.0, dtype=np.float32)
    aval = ft.make_jaxpr(lambda x: x)(x).in_avals[0]
    for given in (aval, ft.ShapeDtypeStruct((4,), "float32"), x):
        (ct,) = ft.linear_transpose(lambda x: 3 * x[::2], given)(np.float32([1, 2]))
        np.testing.assert_array_equal(ct, [3, 0, 6, 0])
