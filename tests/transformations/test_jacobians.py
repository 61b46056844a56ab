"""jacfwd, jacrev, hessian: against closed forms and NumPy's differences; their trees, dtypes, chunks and errors."""

import numpy as np
import pytest
from support.messages import refusal, says

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors, testing

A = np.array([[0.5, -1.0, 2.0, 0.3], [1.5, 0.2, -0.7, 0.9], [-0.4, 1.1, 0.6, -0.2]])
X = np.linspace(-1.2, 1.3, 4)
JACOBIANS = [ft.jacfwd, ft.jacrev]
either = pytest.mark.parametrize("jacobian", JACOBIANS, ids=["jacfwd", "jacrev"])
wrapped = pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["plain", "jit"])


def close(got, want, rtol=1e-10):
    np.testing.assert_allclose(np.asarray(got), want, rtol=rtol, atol=1e-12)


def fun(x):
    return fnp.tanh(A @ x)


def slope(x):
    return (1 - np.tanh(A @ x) ** 2)[:, None] * A


def differences(f, x, step=1e-3):
    """The Jacobian by central differences of fourth order."""
    flat = np.asarray(x, np.float64).ravel()
    columns = []
    for e in np.eye(flat.size):
        at = lambda h, e=e: np.asarray(f((flat + h * step * e).reshape(np.shape(x))))
        columns.append((8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step))
    return np.stack(columns, -1).reshape(*columns[0].shape, *np.shape(x))


# ------------------------------------------------------------------------------------------------------------ values
@wrapped
@either
@pytest.mark.parametrize("size", [None, 1, 3])
def test_the_jacobian_is_its_closed_form(jacobian, wrap, size):
    close(wrap(jacobian(fun, chunk_size=size))(X), slope(X))
    close(jacobian(wrap(fun), chunk_size=size)(fnp.asarray(X)), slope(X))


@either
def test_ranks(jacobian):
    f = lambda m: fnp.einsum("ij,kj->ik", fnp.sin(m), m) * m[0, 0]
    m = np.linspace(-1, 1, 6).reshape(2, 3)
    want = differences(f, m)
    assert want.shape == (2, 2, 2, 3)
    close(ft.jit(jacobian(f))(m), want, rtol=1e-8)
    close(jacobian(lambda x: x**2)(3.0), 6)
    assert jacobian(lambda x: fnp.sum(x))(np.ones((2, 3))).shape == (2, 3)
    assert jacobian(lambda x: fnp.outer(x, x)[:0])(X).shape == (0, 4, 4)
    assert jacobian(lambda x: fnp.concatenate([x, x]).sum() * fnp.ones(2, "float64"))(np.zeros(0)).shape == (2, 0)


@either
def test_the_result_has_the_argument_in_each_leaf_of_the_result(jacobian):
    def f(p, y):
        return {"a": p["u"] * y, "b": [fnp.sum(p["u"] ** 2) * p["v"]]}

    p = {"u": X[:3], "v": np.float64(2)}
    out = jacobian(f)(p, np.float64(3))
    close(out["a"]["u"], 3 * np.eye(3))
    close(out["a"]["v"], np.zeros(3))
    close(out["b"][0]["u"], 4 * X[:3])
    close(out["b"][0]["v"], np.sum(X[:3] ** 2))
    both = jacobian(f, argnums=(1, 0))(p, np.float64(3))
    assert isinstance(both["a"], tuple)
    close(both["a"][0], X[:3])
    close(both["a"][1]["u"], 3 * np.eye(3))
    close(both["b"][0][0], 0)
    (alone,) = jacobian(lambda x, y: x * y, argnums=(-1,))(X, np.float64(2))
    close(alone, X)
    close(jacobian(lambda x, *, k: k * x)(X, k=2.0), 2 * np.eye(4))


@either
def test_aux_is_passed_through(jacobian):
    f = lambda x: (fun(x), {"double": 2 * x, "n": 3})
    for transform in (jacobian, ft.jit(jacobian(f, has_aux=True)) and jacobian):
        out, aux = transform(f, has_aux=True)(X)
        close(out, slope(X))
        close(aux["double"], 2 * X)
        assert int(aux["n"]) == 3
    out, aux = jacobian(f, has_aux=True, chunk_size=2)(X)
    close(aux["double"], 2 * X)


@either
def test_dtypes_follow_the_results_and_the_arguments(jacobian):
    half = jacobian(lambda x: (x * 2).astype("float16"))(fnp.ones(2, "float32"))
    assert half.dtype == ("float16" if jacobian is ft.jacfwd else "float32")
    assert jacobian(lambda x: x * x)(2.0).weak_type
    assert not jacobian(lambda x: x * fnp.ones(2))(2.0).weak_type
    assert not jacobian(lambda x: x * x)(fnp.asarray(2.0, "float32")).weak_type
    assert isinstance(jacobian(lambda x: 3.0)(2.0), ft.Array)


def test_integers():
    out = ft.jacrev(lambda x, n: x * n, argnums=(0, 1), allow_int=True)(X, 2)
    close(out[0], 2 * np.eye(4))
    assert out[1].dtype == ft.float0 and out[1].shape == (4,)
    out = ft.jacfwd(lambda x: (x, x.astype("int32")))(X)
    assert out[1].dtype == ft.float0 and out[1].shape == (4, 4)


# ----------------------------------------------------------------------------------------------------------- complex
Z = np.array([0.3 + 0.4j, -0.7 + 0.2j])


@wrapped
@either
def test_holomorphic(jacobian, wrap):
    f = lambda z: fnp.stack([fnp.sin(z[0]) * z[1], fnp.exp(z[1]) / z[0]])
    want = np.array([[np.cos(Z[0]) * Z[1], np.sin(Z[0])], [-np.exp(Z[1]) / Z[0] ** 2, np.exp(Z[1]) / Z[0]]])
    close(wrap(jacobian(f, holomorphic=True))(Z), want)


def test_real_to_complex_and_complex_to_real():
    curve = lambda x: fnp.exp(1j * x) * x
    close(ft.jacfwd(curve)(X), np.diag(np.exp(1j * X) * (1 + 1j * X)))
    size = lambda z: fnp.real(z) ** 2 * fnp.imag(z)
    want = np.diag(2 * Z.real * Z.imag - 1j * Z.real**2)  # d/dx - i d/dy
    close(ft.jacrev(size)(Z), want)
    close(ft.vmap(ft.grad(size))(Z), np.diag(want))


def test_complex_that_has_no_such_derivative():
    message = refusal(lambda: ft.jacfwd(lambda z: z * z)(Z), errors.DifferentiationError)
    says(message.head, "c128[2]", "real")
    says(message.remedy, "holomorphic=True", "jvp")
    message = refusal(lambda: ft.jacrev(lambda z: z * z)(Z), errors.DifferentiationError)
    says(message.head, "jacrev", "c128[2]")
    says(message.remedy, "holomorphic=True")
    for jacobian in JACOBIANS:
        message = refusal(lambda j=jacobian: j(lambda z: z * z, holomorphic=True)(X), errors.DifferentiationError)
        says(message.head, "complex arguments", "f64[4]")
        message = refusal(lambda j=jacobian: j(lambda z: abs(z), holomorphic=True)(Z), errors.DifferentiationError)
        says(message.head, "complex results", "f64[2]")


# ---------------------------------------------------------------------------------------------------------- hessian
@wrapped
def test_the_hessian_is_symmetric_and_the_difference_of_the_gradient(wrap):
    f = lambda x: fnp.log(fnp.sum(fnp.exp(A @ x))) * fnp.sin(x[0])
    got = np.asarray(wrap(ft.hessian(f))(X))
    close(got, got.T)
    close(got, differences(ft.jit(ft.grad(f)), X), rtol=1e-7)
    for outer in JACOBIANS:
        for inner in JACOBIANS:
            close(ft.jit(outer(inner(f)))(X), got)


def test_the_hessian_of_trees():
    f = lambda p, s: fnp.sum(p["w"] ** 2 * s) * p["b"]
    p, s = {"w": X, "b": np.float64(3)}, np.float64(2)
    got = ft.jit(ft.hessian(f))(p, s)
    close(got["w"]["w"], np.diag(np.full(4, 12.0)))
    close(got["w"]["b"], 4 * X)
    close(got["b"]["w"], 4 * X)
    close(got["b"]["b"], 0)
    both = ft.jit(ft.hessian(f, argnums=(0, 1)))(p, s)
    close(both[0]["w"][1], 6 * X)
    close(both[1][0]["w"], 6 * X)
    out, aux = ft.hessian(lambda x: (fnp.sum(x**3), x), has_aux=True)(X)
    close(out, np.diag(6 * X))
    close(aux, X)
    assert ft.hessian(lambda x: fnp.stack([x[0] * x[1], x[2]]))(X).shape == (2, 4, 4)
    close(ft.hessian(lambda z: z**3, holomorphic=True)(Z[0]), 6 * Z[0])


def test_three_times():
    close(ft.jacrev(ft.hessian(lambda x: fnp.sum(x**4)))(X)[1, 1], 24 * X * np.eye(4)[1])


# ---------------------------------------------------------------------------------------------------- repeated calls
REPEATED = {
    "jacrev of jit": lambda f: ft.jacrev(f),
    "jacfwd of jit": lambda f: ft.jacfwd(f),
    "chunks of jacrev of jit": lambda f: ft.jacrev(f, chunk_size=2),
    "chunks of jacfwd of jit": lambda f: ft.jacfwd(f, chunk_size=2),
    "hessian of jit": lambda f: ft.hessian(f),
    "jit of hessian": lambda f: ft.jit(ft.hessian(f)),
    "vmap of hessian of jit": lambda f: lambda x: ft.vmap(ft.hessian(f))(x[None]),
}


@pytest.mark.parametrize("name", REPEATED)
def test_later_calls_trace_and_compile_nothing(name):
    derived = REPEATED[name](ft.jit(fun))
    derived(fnp.asarray(X))
    with testing.count_traces() as traces:
        for k in range(2):  # NumPy computes the first two calls of a cheap eager function
            derived(fnp.asarray(X + k))
        with testing.count_compiles() as compiles:
            derived(fnp.asarray(X + 3))
    assert (traces.each, compiles.each) == ({}, {})


def test_the_function_is_evaluated_once_whatever_the_number_of_chunks():
    calls = []
    f = lambda x: calls.append(1) or fun(x)
    for jacobian in JACOBIANS:
        jacobian(f, chunk_size=1)(X)
        jacobian(f)(X)
    assert len(calls) == 4


# ------------------------------------------------------------------------------------------------------------ errors
@either
def test_what_cannot_be_differentiated_by(jacobian):
    message = refusal(lambda: jacobian(fun)(np.arange(4)), errors.DifferentiationError)
    says(message.head, jacobian.__name__, "i64[4]")
    message = refusal(lambda: jacobian(fun)("text"), errors.DtypeError)
    says(message.head, jacobian.__name__, "'text'")
    message = refusal(lambda: jacobian(fun, argnums=1)(X), errors.ArgumentError)
    says(message.head, f"{jacobian.__name__} got argnums=1", "1 positional")
    message = refusal(lambda: jacobian(fun(X)), errors.ArgumentError)
    says(message.remedy, f"{jacobian.__name__}(f)(x)")
    message = refusal(lambda: jacobian(fun, chunk_size=0), errors.ArgumentError)
    says(message.head, f"chunk_size of {jacobian.__name__}", "0")


def test_results_that_have_no_rows():
    message = refusal(lambda: ft.jacrev(lambda x: (x, 3))(X), errors.DifferentiationError)
    says(message.head, "i32[]")
    message = refusal(lambda: ft.hessian(lambda x: fnp.sum(x * 1j))(X), errors.DifferentiationError)
    says(message.head, "c128[]")


def test_errors_of_hessian_name_it():
    message = refusal(lambda: ft.hessian(fun)(np.arange(4)), errors.DifferentiationError)
    says(message.head, "hessian: ", "i64[4]")
    message = refusal(lambda: ft.hessian(lambda x: fnp.sum(x * 1j))(X), errors.DifferentiationError)
    says(message.head, "hessian needs real float results")
    message = refusal(lambda: ft.hessian(fun, argnums=1)(X), errors.ArgumentError)
    says(message.head, "hessian got argnums=1")
    message = refusal(lambda: ft.hessian(fun(X)), errors.ArgumentError)
    says(message.remedy, "hessian(f)(x)")


def test_jacobian_is_jacrev():
    assert ft.jacobian is ft.jacrev
