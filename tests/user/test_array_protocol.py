"""Objects with `__jax_array__` are accepted wherever arrays are."""

import operator

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp


class Boxed:
    """An array of another library, such as a parameter of a layer."""

    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        return fnp.asarray(self.value)


X, Y = np.array([3.0, 2.0, 5.0], np.float32), np.array([1.0, 4.0, 5.0], np.float32)
OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
    operator.matmul, operator.eq, operator.lt, operator.ge,
]  # fmt: skip


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit, lambda f: ft.jit(ft.vmap(f))], ids=["eager", "jit", "vmap"])
def test_operators(wrap):
    for f in OPERATORS:
        if f is operator.matmul and wrap is not ft.jit:
            continue
        other = Boxed(np.float32(2)) if f is not operator.matmul else Boxed(Y)
        want = f(X, other.value)
        np.testing.assert_allclose(wrap(lambda x, f=f, other=other: f(x, other))(fnp.asarray(X)), want, rtol=1e-6)


def test_reflected_operators():
    x = fnp.asarray(X)
    for f in (operator.sub, operator.truediv, operator.pow, operator.matmul, operator.lt):
        np.testing.assert_allclose(f(Boxed(Y), x), f(Y, X), rtol=1e-6)
    np.testing.assert_allclose(ft.grad(lambda x: (Boxed(Y) * x * Boxed(X)).sum())(x), X * Y)


def test_lists_are_refused_as_before():
    with pytest.raises(ft.errors.DtypeError, match="a list are not combined"):
        fnp.asarray(X) + [1.0, 2.0, 3.0]
    with pytest.raises(TypeError):
        fnp.asarray(X) + object()


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_functions_of_arrays(wrap):
    a = fnp.asarray(X)
    for f, want in (
        (lambda b: fnp.sin(b), np.sin(Y)), (lambda b: fnp.add(a, b), X + Y), (lambda b: fnp.dot(b, b), Y @ Y),
        (lambda b: fnp.where(a > 2, b, a), np.where(X > 2, Y, X)), (lambda b: fnp.sum(b), Y.sum()),
        (lambda b: fnp.stack([b, a]), np.stack([Y, X])), (lambda b: fnp.array([b, b]), np.array([Y, Y])),
        (lambda b: ft.lax.max(b, a), np.maximum(X, Y)), (lambda b: ft.nn.relu(b), Y), (lambda b: a[: fnp.size(b)], X),
        (lambda b: a.at[0].set(Boxed(9.0)), [9, 2, 5]), (lambda b: fnp.zeros_like(b), 0 * Y),
        (lambda b: ft.lax.dynamic_slice(b, (1,), (2,)), Y[1:]), (lambda b: fnp.einsum("i,i", b, a), X @ Y),
    ):  # fmt: skip
        np.testing.assert_allclose(wrap(lambda f=f: f(Boxed(Y)))(), want, rtol=1e-6)


def test_functions_that_take_functions_are_called_once():
    calls = []

    def body(carry, x):
        calls.append(1)
        raise ValueError("of the user")

    with pytest.raises(ValueError, match="of the user"):
        ft.lax.scan(body, 0.0, fnp.ones(2))
    assert len(calls) == 1
    with pytest.raises(ft.errors.DtypeError, match="__jax_array__"):
        ft.jit(lambda x: x)(Boxed(Y))
    with pytest.raises(ft.errors.ShapeError):
        fnp.add(Boxed(Y), fnp.ones(2))


def test_indices_and_masks():
    x, mask = fnp.asarray(X), Boxed(np.array([True, False, True]))
    assert x[Boxed(1)] == X[1] and x[mask].tolist() == [3, 5]
    assert x.at[Boxed(1)].set(7).tolist() == [3, 7, 5]
    assert x.at[mask].add(1).tolist() == [4, 2, 6]


def test_functions_of_scipy():
    import scipy.special

    for name in ("gammaln", "erf", "expit", "ndtr"):
        want = getattr(scipy.special, name)(X.astype(float))
        np.testing.assert_allclose(getattr(ft.scipy.special, name)(Boxed(X)), want, rtol=1e-6)


def test_is_it_complex():
    assert fnp.iscomplexobj(Boxed(X + 1j)) and fnp.isrealobj(Boxed(X))
