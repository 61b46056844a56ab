"""Both halves of reverse mode as separate functions, and derivatives at a point as pytrees."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.backends.xla import counters
from functorch_like.errors import ArgumentError

X = np.linspace(0.1, 0.9, 3, dtype=np.float32)
W = np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2)


def layer(x, w, scale=1.0):
    y = fnp.tanh(x @ w) * scale
    return {"y": y}, fnp.sum(x)


@pytest.mark.parametrize("jitted", [True, False])
@pytest.mark.parametrize("argnums", [0, 1, (0, 1), -1, (1,)])
def test_both_halves_give_what_vjp_gives(jitted, argnums):
    fwd, bwd = ft.fwd_and_bwd(lambda x, w: layer(x, w)[0], argnums, jitted=jitted)
    out, residuals = fwd(X, W)
    want, pullback = ft.vjp(lambda x, w: layer(x, w)[0], X, W)
    ct = {"y": fnp.asarray([2.0, -3.0])}
    np.testing.assert_allclose(out["y"], want["y"], rtol=1e-6)
    all_of_them = pullback(ct)
    expected = tuple(all_of_them[n] for n in argnums) if isinstance(argnums, tuple) else all_of_them[argnums]
    ft.testing.assert_allclose(bwd(residuals, ct), expected, rtol=1e-5)


def test_each_half_is_compiled_once():
    fwd, bwd = ft.fwd_and_bwd(lambda x, w: layer(x, w, 2.5), (0, 1), has_aux=True)
    x, w = fnp.asarray(X), fnp.asarray(W)
    for k in range(4):
        out, residuals, aux = fwd(x + k, w)
        first = bwd(residuals, out)
        if not k:
            for _ in range(3):  # NumPy computes the first calls
                x + 1
            before = counters.snapshot()
    assert not {"traces", "compiles", "cache_hits"} & set(counters.since(before))
    want = ft.grad(lambda x, w: 0.5 * fnp.sum(layer(x, w, 2.5)[0]["y"] ** 2), (0, 1))(x + 3, w)
    ft.testing.assert_allclose(first, want, rtol=1e-5)
    assert float(aux) == pytest.approx(float(np.sum(X + 3)), rel=1e-6)


def test_a_derivative_at_a_point_passes_through_jit_and_vmap():
    _, pullback = ft.jit(lambda x: ft.vjp(fnp.sin, x))(X)
    np.testing.assert_allclose(pullback(fnp.ones(3))[0], np.cos(X), rtol=1e-6)
    np.testing.assert_allclose(ft.jit(lambda p, c: p(c))(pullback, fnp.ones(3))[0], np.cos(X), rtol=1e-6)
    _, push = ft.jit(lambda x: ft.linearize(lambda v: fnp.sin(v) * v, x))(X)
    np.testing.assert_allclose(push(fnp.ones(3)), np.cos(X) * X + np.sin(X), rtol=1e-6)
    _, each = ft.vmap(lambda x: ft.vjp(fnp.sin, x))(X)
    np.testing.assert_allclose(ft.vmap(lambda p, c: p(c)[0])(each, X), np.cos(X) * X, rtol=1e-6)
    doubled = ft.tree.map(lambda a: 2 * a, pullback)
    np.testing.assert_allclose(doubled(fnp.ones(3))[0], 2 * np.cos(X), rtol=1e-6)
    assert "pullback" in repr(pullback)


def test_derivatives_of_both_halves():
    fwd, bwd = ft.fwd_and_bwd(lambda x: fnp.sum(fnp.sin(x) ** 2), 0)
    slope = lambda x: bwd(fwd(x)[1], 1.0)
    np.testing.assert_allclose(slope(X), np.sin(2 * X), rtol=1e-5)
    np.testing.assert_allclose(ft.grad(lambda x: fnp.sum(slope(x)))(X), 2 * np.cos(2 * X), rtol=1e-5)
    np.testing.assert_allclose(ft.vmap(slope)(X), np.sin(2 * X), rtol=1e-5)


def test_positions_that_are_not_there():
    with pytest.raises(ArgumentError, match="argnums"):
        ft.fwd_and_bwd(layer, "x")
    fwd, _ = ft.fwd_and_bwd(layer, 2)
    with pytest.raises(ArgumentError, match="positional"):
        fwd(X, W)
