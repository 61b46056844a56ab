"""Derivatives with respect to integers (float0 zeros) as arguments and results of transformed functions."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp

X = np.linspace(0.5, 1.5, 3, dtype=np.float32)
N = np.arange(3, dtype=np.int32)


def scaled(x, n):
    return x * n, n


def is_zero(t, shape):
    return type(t) is np.ndarray and t.dtype == ft.float0 and t.shape == shape


def test_jvp_under_vmap():
    def both(x, n):
        return ft.jvp(scaled, (x, n), (1.0, np.zeros((), ft.float0)))

    (y, same), (dy, dn) = ft.vmap(both)(X, N)
    np.testing.assert_allclose(y, X * N)
    np.testing.assert_array_equal(same, N)
    np.testing.assert_allclose(dy, N)
    assert is_zero(dn, (3,))
    _, (_, dn) = ft.vmap(ft.vmap(both, in_axes=(None, 0), out_axes=-1))(X, np.zeros((3, 4), np.int32))
    assert is_zero(dn, (3, 4))
    _, (dy, dn) = ft.vmap(both, out_axes=(0, (0, None)))(X, N)
    assert is_zero(dn, ()) and dy.shape == (3,)


def test_tangents_of_integers_are_mapped_over():
    push = lambda x, n, t: ft.jvp(lambda x, n: x * n, (x, n), (1.0, t))[1]
    for t, axis in ((np.zeros(3, ft.float0), 0), (np.zeros((), ft.float0), None), (None, None)):
        np.testing.assert_allclose(ft.vmap(push, in_axes=(0, 0, axis))(X, N, t), N)
    with pytest.raises(ft.errors.ShapeError, match="different sizes"):
        ft.vmap(push)(X, N, np.zeros(4, ft.float0))


@pytest.mark.parametrize("chunk_size", [None, 2])
def test_vjp_under_vmap(chunk_size):
    pull = lambda x, n: ft.vjp(lambda x, n: x * n, x, n)[1](1.0)
    dx, dn = ft.vmap(pull, chunk_size=chunk_size)(X, N)
    np.testing.assert_allclose(dx, N)
    assert is_zero(dn, (3,))


def test_results_of_jit():
    f = ft.jit(lambda x, n: {"back": ft.vjp(lambda x, n: x * n, x, n)[1](1.0), "x": x})
    for _ in range(2):
        out = f(fnp.asarray(2.0), fnp.asarray(3))
        assert float(out["back"][0]) == 3.0 and is_zero(out["back"][1], ()) and float(out["x"]) == 2.0
    out = ft.jit(ft.vmap(lambda x, n: ft.vjp(lambda x, n: x * n, x, n)[1](1.0)))(X, N)
    np.testing.assert_allclose(out[0], N)
    assert is_zero(out[1], (3,))


def test_derivatives_of_functions_that_return_them():
    inner = lambda x, n: ft.vjp(lambda x, n: x * x * n, x, n)[1](fnp.ones_like(x))
    (gx, gn), (dx, dn) = ft.jvp(inner, (2.0, 3), (1.0, None))
    assert float(gx) == 12.0 and float(dx) == 6.0 and is_zero(gn, ()) and is_zero(dn, ())
