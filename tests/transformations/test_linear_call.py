"""linear_call: the user's transposes, under every transformation."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors
from functorch_like.custom_derivatives import linear_call

X = np.linspace(0.5, 2.0, 3)


def transposed(f, like):
    return lambda y: ft.linear_transpose(f, like)(y)[0]


def test_the_transpose_is_the_one_that_was_given_and_back_again():
    f = lambda x: linear_call(lambda _, x: x, lambda _, t: 7.0 * t, (), x)
    found = [g(1.0) for g in (f, transposed(f, 1.0), transposed(transposed(f, 1.0), 1.0))]
    assert [float(v) for v in found] == [1.0, 7.0, 1.0]
    assert float(ft.grad(f)(1.0)) == 7.0 and float(ft.jvp(f, (1.0,), (1.0,))[1]) == 1.0
    assert float(ft.jit(ft.grad(f))(1.0)) == float(ft.grad(ft.jit(f))(1.0)) == 7.0


def scaled(r, x):
    divide = lambda r, p: {"a": p["a"] / r["r"], "s": fnp.sum(p["b"]) * r["r"]}
    back = lambda r, ct: {"a": ct["a"] / r["r"], "b": fnp.broadcast_to(ct["s"] * r["r"], (2,))}
    out = linear_call(divide, back, {"r": r}, {"a": x, "b": fnp.stack([x[0], 2 * x[1]])})
    return fnp.sum(out["a"] ** 2) + out["s"]


def plain(r, x):
    return fnp.sum((x / r) ** 2) + (x[0] + 2 * x[1]) * r


def test_a_true_transpose_gives_true_derivatives():
    for transform in (
        lambda f: f,
        lambda f: ft.grad(f, (0, 1)),
        lambda f: ft.jit(ft.grad(f, (0, 1))),
        lambda f: ft.jacfwd(f, (0, 1)),
        lambda f: ft.hessian(f, (0, 1)),
        lambda f: lambda r, x: ft.vmap(f, (0, None))(fnp.stack([r, 2 * r]), x),
        lambda f: lambda r, x: ft.vmap(ft.grad(f, (0, 1)), (None, 0))(r, fnp.stack([x, -x])),
        lambda f: lambda r, x: ft.grad(lambda x: fnp.sum(ft.vmap(f, (None, 0))(r, fnp.stack([x, x * x]))))(x),
        lambda f: lambda r, x: ft.lax.scan(lambda c, v: (c + f(r, v * x), c), 0.0 * r, x),
    ):
        given = fnp.asarray(1.5, "float64"), X
        ft.testing.assert_allclose(transform(scaled)(*given), transform(plain)(*given), rtol=1e-9)


def test_what_functions_close_over():
    w = fnp.asarray(X)

    def f(x, v):
        return linear_call(lambda _, x: w * v * x, lambda _, t: w * v * t, (), x)

    for g in (f, ft.jit(f)):
        want = (X * X * 2.0, X * 2.0)
        np.testing.assert_allclose(g(fnp.asarray(X), 2.0), want[0])
        np.testing.assert_allclose(ft.grad(lambda x, g=g: fnp.sum(g(x, 2.0)))(fnp.asarray(X)), want[1])
    np.testing.assert_allclose(ft.vmap(f, (None, 0))(X, fnp.asarray([1.0, 3.0], "float64"))[1], 3 * X * X)


def test_refusals():
    with pytest.raises(errors.DifferentiationError, match="i32"):
        linear_call(lambda r, x: x, lambda r, t: t, (), 3)
    with pytest.raises(errors.TreeError, match="linear_args are") as caught:
        linear_call(lambda r, x: x, lambda r, t: (t, t), (), 3.0)
    assert "return cotangents of the structure, shapes and dtypes of linear_args" in str(caught.value)
    with pytest.raises(errors.DifferentiationError, match="by a residual"):
        ft.linear_transpose(lambda r: linear_call(lambda r, x: r * x, lambda r, t: r * t, r, 2.0), 1.0)(1.0)
