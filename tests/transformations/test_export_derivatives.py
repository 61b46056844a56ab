"""Derivatives of exported programs, in the process that exported them and where they are read."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import export
from functorch_like.errors import ArgumentError, DifferentiationError, UnsupportedError


def layer(parameters, x, n):
    return {"y": fnp.tanh(x @ parameters["w"] + parameters["b"]) * n, "next": n + 1}


PARAMETERS = {"w": fnp.full((3, 4), 0.1), "b": fnp.zeros(4)}
X = np.arange(6, dtype=np.float32).reshape(2, 3) / 6


def stored_with_derivatives(order):
    made = export.export(ft.jit(layer))(PARAMETERS, X, 3)
    return export.deserialize(made.serialize(vjp_order=order))


@pytest.mark.parametrize("stored", [False, True])
def test_derivatives_of_exported_programs(stored):
    made = stored_with_derivatives(2) if stored else export.export(ft.jit(layer))(PARAMETERS, X, 3)
    loss = lambda call: lambda p, x: (call(p, x, 3)["y"] ** 2).sum()
    expected = ft.grad(loss(layer), (0, 1))(PARAMETERS, X)
    for transform in (lambda f: f, ft.jit):
        got = transform(ft.grad(loss(made.call), (0, 1)))(PARAMETERS, X)
        for a, b in zip(ft.tree.leaves(got), ft.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    second = lambda call: ft.grad(lambda x: (ft.grad(loss(call), 1)(PARAMETERS, x) ** 3).sum())(X)
    np.testing.assert_allclose(second(made.call), second(layer), rtol=1e-4, atol=1e-6)
    # The derivative by itself: the leaves of the arguments, then the cotangent of the only float among the results.
    ct = np.ones((2, 4), np.float32)
    _, pullback = ft.vjp(lambda p, x: layer(p, x, 3)["y"], PARAMETERS, X)
    grads = made.vjp().call(*ft.tree.leaves(PARAMETERS), X, np.int32(3), ct)
    for a, b in zip(grads, ft.tree.leaves(pullback(ct)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_derivatives_that_were_not_stored():
    assert not stored_with_derivatives(0).has_vjp()
    once = stored_with_derivatives(1)
    assert once.has_vjp() and not once.vjp().has_vjp()
    for ask in (stored_with_derivatives(0).vjp, once.vjp().vjp, lambda: once.serialize(vjp_order=2)):
        with pytest.raises(ArgumentError, match="stored without its derivative"):
            ask()
    with pytest.raises(UnsupportedError, match="no derivatives"):
        ft.grad(lambda x: stored_with_derivatives(0).call(PARAMETERS, x, 3)["y"].sum())(X)
    with pytest.raises(DifferentiationError, match="forward mode"):
        ft.jvp(lambda x: once.call(PARAMETERS, x, 3)["y"], (X,), (X,))


def test_a_derivative_that_is_cut_off():
    blob = export.export(ft.jit(fnp.sin))(ft.ShapeDtypeStruct((), "float32")).serialize(vjp_order=1)
    for length in range(0, len(blob), 97):
        with pytest.raises(ArgumentError):
            export.deserialize(blob[:length])
