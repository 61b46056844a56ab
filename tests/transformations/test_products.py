"""hvp, gnvp and linear_transpose, compared with explicit matrices and by inner products."""

import numpy as np
import pytest
from support.messages import refusal, says

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors, lax

A = np.array([[0.5, -1.0, 2.0, 0.3], [1.5, 0.2, -0.7, 0.9], [-0.4, 1.1, 0.6, -0.2]])
X = np.linspace(-1.2, 1.3, 4)
V = np.array([0.3, -1.0, 0.2, 0.8])
wrapped = pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["plain", "jit"])


def close(got, want, rtol=1e-10):
    np.testing.assert_allclose(np.asarray(got), want, rtol=rtol, atol=1e-12)


# --------------------------------------------------------------------------------------------------------------- hvp
def energy(x):
    return fnp.sum(fnp.tanh(A @ x) ** 3)


def energy_hessian(x):
    t = np.tanh(A @ x)
    s = 1 - t**2
    return A.T @ np.diag(6 * t * s**2 - 6 * t**3 * s) @ A


@wrapped
def test_a_hessian_vector_product(wrap):
    want = energy_hessian(X) @ V
    close(wrap(lambda x, v: ft.hvp(energy, (x,), (v,)))(X, V), want)
    close(ft.hvp(wrap(energy), (X,), (V,)), want)
    vhp = lambda x, v: ft.vjp(ft.grad(energy), x)[1](v)[0]
    close(wrap(vhp)(X, V), want)
    close(ft.vmap(lambda v: ft.hvp(energy, (X,), (v,)))(np.eye(4)), energy_hessian(X))


def test_hvp_of_trees_and_of_arguments_that_stay():
    loss = lambda p, x: fnp.sum(p["w"] ** 2 * x) * p["b"]
    p, x = {"w": X, "b": np.float64(3)}, X + 2
    got = ft.hvp(loss, (p, x), ({"w": V, "b": None}, None))
    close(got["w"], 2 * x * 3 * V)
    close(got["b"], np.sum(2 * X * x * V))
    by_both = ft.hvp(loss, (p, x), ({"w": None, "b": None}, V), argnums=(0, 1))
    close(by_both[0]["w"], 2 * X * 3 * V)
    close(by_both[1], np.zeros(4))
    got, aux = ft.hvp(lambda x: (energy(x), x), (X,), (V,), has_aux=True)
    close(got, energy_hessian(X) @ V)
    close(aux, X)


def test_hvp_of_what_has_no_gradient():
    message = refusal(lambda: ft.hvp(lambda x: x, (X,), (V,)), errors.DifferentiationError)
    says(message.head, "scalar", "f64[4]")
    message = refusal(lambda: ft.hvp(3, (X,), (V,)), errors.ArgumentError)
    says(message.head, "hvp takes a function")


# -------------------------------------------------------------------------------------------------------------- gnvp
@wrapped
def test_a_gauss_newton_vector_product(wrap):
    model = lambda x: {"t": fnp.tanh(A @ x)}
    loss = lambda y: fnp.sum(fnp.exp(y["t"]))
    t = np.tanh(A @ X)
    jacobian = (1 - t**2)[:, None] * A
    want = jacobian.T @ np.diag(np.exp(t)) @ jacobian @ V
    close(wrap(lambda x, v: ft.gnvp(model, loss, (x,), (v,)))(X, V), want)
    close(ft.gnvp(wrap(model), wrap(loss), (X,), (V,)), want)


def test_gnvp_is_the_hessian_where_the_model_is_linear():
    loss = lambda y: fnp.sum(fnp.tanh(y) ** 3)
    close(ft.gnvp(lambda x: A @ x, loss, (X,), (V,)), energy_hessian(X) @ V)
    by_both = ft.gnvp(lambda a, x: a @ x, loss, (A, X), (None, V), argnums=(1,))
    close(by_both[0], energy_hessian(X) @ V)


def test_gnvp_evaluates_the_model_once():
    calls = []
    ft.gnvp(lambda x: calls.append(1) or A @ x, lambda y: fnp.sum(y**2), (X,), (V,))
    assert len(calls) == 1


def test_gnvp_of_arguments_that_do_not_fit():
    message = refusal(lambda: ft.gnvp(lambda x: x, fnp.sum, X, V), errors.ArgumentError)
    says(message.remedy, "gnvp(f, loss, (x,), (dx,))")
    message = refusal(lambda: ft.gnvp(lambda x: x, fnp.sum, (X,), (V,), argnums=1), errors.ArgumentError)
    says(message.head, "argnums=1")
    message = refusal(lambda: ft.gnvp(lambda x: x, lambda y: y, (X,), (V,)), errors.DifferentiationError)
    says(message.head, "scalar")


# -------------------------------------------------------------------------------------------------- linear_transpose
STRUCT = ft.ShapeDtypeStruct((4,), "float64")
LINEAR = {
    "matrix": lambda x: A @ x,
    "sums": lambda x: {"a": fnp.cumsum(x)[1:], "b": (fnp.sum(x), 3 * x[::2])},
    "zeros joined": lambda x: fnp.concatenate([fnp.zeros(2, "float64"), x / 7]),
    "written": lambda x: fnp.zeros(6, "float64").at[1:5].add(x).at[0].set(2 * x[1]),
    "chosen": lambda x: fnp.where(A[0] > 0, x, -2 * x),
    "padded": lambda x: fnp.pad(x, (1, 2)) - fnp.pad(x, (2, 1)),
    "convolved": lambda x: lax.conv_general_dilated(x[None, None], fnp.asarray(A[:, None, :2]), (1,), "SAME"),
    "solved": lambda x: fnp.linalg.solve(A.T @ A + np.eye(4), x),
    "transformed": lambda x: fnp.fft.rfft(x),
    "mapped": lambda x: ft.vmap(lambda y: y * A[0])(x[:, None] * A[0]),
    "a derivative": lambda x: ft.jvp(fnp.sin, (X,), (x,))[1],
}


@wrapped
@pytest.mark.parametrize("name", LINEAR)
def test_a_transpose_pairs_with_its_function(name, wrap):
    rng = np.random.default_rng(0)
    f = LINEAR[name]
    out = f(V)
    ct = ft.tree.map(
        lambda o: rng.normal(size=o.shape) + (1j * rng.normal(size=o.shape) if o.dtype.kind == "c" else 0), out
    )
    back = wrap(ft.linear_transpose(wrap(f), STRUCT))(ct)
    assert isinstance(back, tuple)
    want = sum(
        np.sum(np.asarray(c) * np.asarray(o)).real for c, o in zip(ft.tree.leaves(ct), ft.tree.leaves(out), strict=True)
    )
    close(np.dot(np.asarray(back[0]), V), want)


def test_several_arguments_and_trees():
    f = lambda p, y: p["a"] * 2 + p["b"][0] - y
    back = ft.linear_transpose(f, {"a": STRUCT, "b": [X]}, ft.ShapeDtypeStruct((4,), "float64"))
    p, y = back(V)
    close(p["a"], 2 * V)
    close(p["b"][0], V)
    close(y, -V)
    (z,) = ft.linear_transpose(lambda z: (2 + 1j) * z, ft.ShapeDtypeStruct((), "complex64"))(1.0 + 0j)
    assert complex(z) == 2 + 1j  # without conjugation
    (unused,) = ft.linear_transpose(lambda x: fnp.zeros(2), STRUCT)(fnp.ones(2))
    close(unused, np.zeros(4))


def test_a_transpose_of_a_transpose():
    back = ft.linear_transpose(lambda x: A @ x, STRUCT)
    again = ft.linear_transpose(lambda y: back(y)[0], ft.ShapeDtypeStruct((3,), "float64"))
    close(again(V)[0], A @ V)
    close(ft.vmap(lambda y: back(y)[0])(np.eye(3)), A)
    close(ft.grad(lambda y: fnp.sum(back(y)[0] ** 2))(A[:, 0]), 2 * A @ (A.T @ A[:, 0]))


NONLINEAR = {
    "sin": (lambda x: fnp.sin(x), "sin(f64[4]) is not linear"),
    "squares": (lambda x: x * x, "both operands of mul(f64[4], f64[4])"),
    "reciprocals": (lambda x: 1 / x, "linear in operand 0 alone"),
    "sums with constants": (lambda x: x + 1, "constant that is not zero"),
    "joined to constants": (lambda x: fnp.concatenate([x, fnp.ones(2)]), "constant that is not zero"),
    "constants": (lambda x: (x, 3.0), "constant result"),
    "comparisons": (lambda x: fnp.where(x > 0, x, 0 * x), "gt(f64[4], f64[4]) is not linear"),
    "maxima": (lambda x: fnp.max(x), "reduce_max"),
}


@wrapped
@pytest.mark.parametrize("name", NONLINEAR)
def test_what_is_not_linear_is_reported_with_its_line(name, wrap):
    f, told = NONLINEAR[name]
    message = refusal(lambda: ft.linear_transpose(wrap(f), STRUCT), errors.DifferentiationError)
    says(message.head, "linear_transpose is not linear", told)
    says(message.at, "test_products.py")
    says(message.remedy, "vjp")


def test_arguments_of_linear_transpose():
    message = refusal(lambda: ft.linear_transpose(lambda p: p, {"n": np.arange(3)}), errors.DifferentiationError)
    says(message.head, "i64[3]", "args[0]['n']")
    message = refusal(lambda: ft.linear_transpose(A, STRUCT), errors.ArgumentError)
    says(message.remedy, "linear_transpose(f)(x)")
    back = ft.linear_transpose(lambda x: (x, x), STRUCT)
    message = refusal(lambda: back(V), errors.TreeError)
    says(message.head, "structure")
