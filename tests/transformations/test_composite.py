"""lax.composite: one operation in StableHLO, and its decomposition under all transformations."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors, lax

X = np.linspace(0.1, 1.0, 4, dtype=np.float32)


def softmax(x, /, *, axis=None, scale=1.0):
    y = fnp.exp(x * scale)
    return {"p": y / fnp.sum(y, axis, keepdims=True)}


NAMED = lax.composite(softmax, "my.softmax", version=2)


def test_it_is_one_operation_with_attributes():
    text = ft.jit(lambda x: NAMED(x, axis=0, scale=2.5)).lower(X).as_text()
    assert 'stablehlo.composite "my.softmax"' in text and "axis = 0 : i64" in text and "version = 2" in text
    assert "scale = 2.5" in text and "stablehlo.exponential" in text
    assert "axis" not in ft.jit(lambda x: NAMED(x, axis=None)).lower(X).as_text()


def test_it_means_its_decomposition():
    for transform in (
        lambda f: f,
        ft.jit,
        lambda f: ft.jit(ft.grad(lambda x: fnp.sum(f(x)["p"] ** 2))),
        ft.jacfwd,
        lambda f: lambda x: ft.vmap(f)(fnp.stack([x, 2 * x])),
        lambda f: lambda x: lax.map(f, fnp.stack([x, 2 * x])),
        lambda f: ft.grad(ft.jit(lambda x: fnp.sum(ft.checkpoint(f)(x)["p"][0]))),
    ):
        got, want = (transform(lambda x, f=f: f(x, axis=0, scale=0.5))(X) for f in (NAMED, softmax))
        ft.testing.assert_allclose(got, want, rtol=1e-5)


def test_it_is_staged_once_for_each_set_of_attributes():
    seen = []
    f = lax.composite(lambda x, k=1: seen.append(k) or x * k, "my.scaled")
    for k in (2, 3, 2, 3):
        np.testing.assert_allclose(f(X, k=k), X * k)
    assert seen == [2, 3]
    w = fnp.asarray(X)
    g = lax.composite(lambda x: x * w, "my.closing")
    np.testing.assert_allclose(ft.jit(g)(X), X * X)


def test_refusals():
    with pytest.raises(errors.ArgumentError, match="name=3"):
        lax.composite(softmax, 3)
    with pytest.raises(errors.DtypeError, match="axis"):
        NAMED(X, axis=[[1]])
    with pytest.raises(errors.UnsupportedError, match="has effects"):
        lax.composite(lambda x: ft.debug.print("{}", x) or x, "my.printed")(X)
