"""Derivatives by dtype: narrow floats, numbers, integers, complex numbers; and derivatives that are zero."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp

X = np.linspace(-1.2, 1.3, 5)


def close(got, want, rtol=1e-10):
    np.testing.assert_allclose(np.asarray(got), want, rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_gradients_have_the_dtype_of_their_argument(dtype):
    x = fnp.asarray(X.astype(dtype))
    got = ft.grad(lambda x: fnp.sum(fnp.abs(x) ** 2).astype("float32"))(x)
    assert got.dtype == x.dtype
    assert not got.aval.weak_type


def test_gradients_of_numbers_are_arrays_of_the_default_dtype():
    got = ft.grad(lambda x: x * x)(3.0)
    assert got.dtype == np.float32 and float(got) == 6


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["plain", "jit"])
def test_zero_derivatives_are_arrays_too(wrap):
    zero = wrap(ft.grad(lambda x: 3.0))(2.0)
    tangent = wrap(lambda x: ft.jvp(lambda x: 3.0, (x,), (x,))[1])(2.0)
    pushed = wrap(lambda x: ft.linearize(lambda x: fnp.ones(2), x)[1](x))(2.0)
    for made in (zero, tangent, pushed):
        assert isinstance(made, ft.Array)
        assert made.dtype == np.float32 and not np.asarray(made).any()


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["plain", "jit"])
def test_gradients_are_as_weak_as_their_argument(wrap):
    half = fnp.asarray(np.ones(2, np.float16))
    for fun in (lambda x: x * x, lambda x: 3.0):
        assert (half * wrap(ft.grad(fun))(2.0)).dtype == np.float16
        assert (half * wrap(ft.grad(fun))(fnp.asarray(2.0, np.float32))).dtype == np.float32


def test_integers_have_float0_derivatives():
    fun = lambda x, n: fnp.sum(x * n)
    n = np.arange(5)
    dx, dn = ft.grad(fun, argnums=(0, 1), allow_int=True)(X, n)
    close(dx, n)
    assert dn.dtype == ft.float0 and dn.shape == (5,)
    dx, dn = ft.vjp(fun, X, n)[1](1.0)
    close(dx, n)
    assert dn.dtype == ft.float0
    out, dot = ft.jvp(lambda n: n * 2, (3,), (None,))
    assert int(out) == 6 and dot.dtype == ft.float0


def test_holomorphic():
    z = X + 1j * X[::-1]
    close(ft.vmap(ft.grad(lambda z: fnp.sin(z) * z, holomorphic=True))(z), np.cos(z) * z + np.sin(z))
    close(ft.vmap(ft.jit(ft.grad(lambda z: z**3, holomorphic=True)))(z), 3 * z**2)
    second = ft.grad(ft.grad(lambda z: fnp.exp(2 * z), holomorphic=True), holomorphic=True)
    close(ft.vmap(second)(z), 4 * np.exp(2 * z))


def test_real_functions_of_complex_arguments():
    """The convention is JAX's: for f(x + iy) = u, the gradient is du/dx - i du/dy."""
    z = X + 1j * X[::-1]
    close(ft.grad(lambda z: fnp.sum(fnp.abs(z) ** 2))(z), 2 * np.conj(z))
    close(ft.grad(lambda z: fnp.sum(fnp.real(z) * fnp.imag(z)))(z), z.imag - 1j * z.real)
