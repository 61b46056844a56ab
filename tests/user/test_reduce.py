"""lax.reduce and lax.reduce_window with named reductions and with users' own computations."""

import functools

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.errors import ArgumentError, ShapeError, UnsupportedError

X = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
N = np.random.default_rng(1).integers(0, 99, (3, 4)).astype(np.int32)
NAMED = {
    "add": (lax.add, 0, np.sum), "mul": (lax.mul, 1, np.prod), "max": (lax.max, -np.inf, np.max),
    "min": (lax.min, np.inf, np.min),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMED)
def test_named_folds_have_derivatives(name):
    computation, init, fold = NAMED[name]
    f = lambda x: lax.reduce(x, init, computation, (0, 2))
    for wrap in (lambda f: f, ft.jit):
        np.testing.assert_allclose(wrap(f)(X), fold(X, (0, 2)), rtol=1e-5)
    assert "reduce(" not in str(ft.make_jaxpr(f)(X)).replace("make_jaxpr", "")
    assert np.isfinite(ft.grad(lambda x: f(x).sum())(X)).all()


def test_bitwise_folds():
    folds = (
        (lax.bitwise_and, -1, np.bitwise_and),
        (lax.bitwise_or, 0, np.bitwise_or),
        (lax.bitwise_xor, 0, np.bitwise_xor),
    )
    for computation, init, ufunc in folds:
        np.testing.assert_array_equal(lax.reduce(N, init, computation, (1,)), ufunc.reduce(N, 1))


def test_an_initial_value_that_is_not_neutral_takes_part():
    np.testing.assert_allclose(lax.reduce(X, 5.0, lax.add, (0, 1, 2)), X.sum() + 5, rtol=1e-5)


def hypotenuse(a, b):
    return lax.sqrt(a * a + b * b)


def test_a_computation_of_one_s_own():
    want = np.sqrt((X**2).sum(1))
    f = lambda x: lax.reduce(x, 0.0, hypotenuse, (1,))
    for wrap in (lambda f: f, ft.jit, ft.vmap):
        axis = 0 if wrap is ft.vmap else 1
        g = wrap(lambda x, axis=axis: lax.reduce(x, 0.0, hypotenuse, (axis,)))
        np.testing.assert_allclose(g(X), want, rtol=1e-5)
    np.testing.assert_allclose(ft.grad(lambda x: fnp.sum(f(x)))(X), X / want[:, None], rtol=1e-5)


def test_initial_values_may_differ_under_vmap():
    inits = np.array([0.0, 3.0], np.float32)
    got = ft.vmap(lambda x, i: lax.reduce(x, i, hypotenuse, (0, 1)))(X, inits)
    np.testing.assert_allclose(got, np.sqrt((X**2).sum((1, 2)) + inits**2), rtol=1e-5)


def test_several_operands_are_folded_together():
    def later(a, b):
        wins = b["value"] > a["value"]
        return {k: fnp.where(wins, b[k], a[k]) for k in a}

    places = np.broadcast_to(np.arange(3, dtype=np.int32)[:, None], (2, 3, 4))
    operands, inits = {"value": X, "place": places}, {"value": -np.inf, "place": -1}
    out = ft.jit(lambda v: lax.reduce(v, inits, later, (1,)))(operands)
    np.testing.assert_array_equal(out["place"], X.argmax(1))
    np.testing.assert_array_equal(out["value"], X.max(1))


def test_a_function_is_recorded_once():
    calls = []

    def counted(a, b):
        calls.append(1)
        return fnp.maximum(a, b)

    for _ in range(3):
        lax.reduce(X, -np.inf, counted, (0,))
    assert len(calls) == 1


def test_what_it_refuses():
    own = lambda a, b: a + b
    with pytest.raises(ArgumentError, match="2 initial values"):
        lax.reduce(X, (0.0, 0.0), own, (0,))
    with pytest.raises(ShapeError, match="differ in shape"):
        lax.reduce((X, X[0]), (0.0, 0.0), lambda a, b: (a[0] + b[0], a[1] + b[1]), (0,))
    with pytest.raises(ArgumentError, match="computation"):
        lax.reduce(X, 0.0, lambda a, b: a > b, (0,))
    with pytest.raises(ArgumentError, match="return the structure that it takes"):
        lax.reduce(X, 0.0, lambda a, b: (a, b), (0,))
    with pytest.raises(UnsupportedError, match="another operand"):
        ft.jit(lambda x, w: lax.reduce(x, 0.0, lambda a, b: a + w * b, (0,)))(X, 2.0)
    with pytest.raises(ShapeError):
        lax.reduce(X, 0.0, functools.partial(own), (3,))


# -------------------------------------------------------------------------------------------------------------- windows
def windows(x, size, step, low, high, fill):
    """Return all windows of a vector, by NumPy."""
    padded = np.pad(x, (low, high), constant_values=fill)
    return np.lib.stride_tricks.sliding_window_view(padded, size)[::step]


def test_windows_by_a_computation_of_one_s_own():
    x = X[0, 0].astype(np.float64)
    want = np.sqrt((windows(x, 2, 1, 0, 1, 0) ** 2).sum(1))
    f = lambda x: lax.reduce_window(x, 0.0, hypotenuse, (2,), (1,), "SAME")
    for wrap in (lambda f: f, ft.jit):
        np.testing.assert_allclose(wrap(f)(x), want)
    np.testing.assert_allclose(ft.vmap(f)(np.stack([x, 2 * x])), np.stack([want, 2 * want]))
    total = lambda x: fnp.sum(f(x))
    numeric = [(total(x + h) - total(x - h)) / 2e-6 for h in 1e-6 * np.eye(4)]
    np.testing.assert_allclose(ft.grad(total)(x), numeric, rtol=1e-6)


def test_windows_of_several_arrays():
    def later(a, b):
        wins = b[0] > a[0]
        return tuple(fnp.where(wins, y, x) for x, y in zip(a, b, strict=True))

    x, places = X[0, 0], np.arange(4, dtype=np.int32)
    for padding, (low, high) in {"VALID": (0, 0), "SAME_LOWER": (1, 0), "SAME": (0, 1)}.items():
        found = lax.reduce_window((x, places), (-np.inf, -1), later, (2,), (1,), padding)
        parts = windows(x, 2, 1, low, high, -np.inf)
        np.testing.assert_array_equal(found[0], parts.max(1))
        np.testing.assert_array_equal(found[1], parts.argmax(1) + np.arange(len(parts)) - low)


def test_initial_values_of_windows_may_differ_under_vmap():
    inits = np.array([0.0, 3.0], np.float32)
    f = lambda x, i: lax.reduce_window(x, i, hypotenuse, (2,), (2,), [(1, 1)], (2,))
    xs = X[0, :2, :3]
    got = ft.vmap(f)(xs, inits)
    # The windows are (i x0) (i x1) (i x2), where i fills padding and holes. Each reduction starts from i as well.
    np.testing.assert_allclose(got, np.sqrt(xs**2 + 2 * inits[:, None] ** 2), rtol=1e-5)


def test_what_windows_refuse():
    with pytest.raises(ArgumentError, match="initial values"):
        lax.reduce_window((X, X), 0.0, hypotenuse, (1, 1, 1), (1, 1, 1), "VALID")
    with pytest.raises(ShapeError, match="window_dimensions"):
        lax.reduce_window(X, 0.0, hypotenuse, (2,), (1,), "VALID")
    with pytest.raises(ArgumentError, match="padding"):
        lax.reduce_window(X, 0.0, hypotenuse, (1, 1, 1), (1, 1, 1), "FULL")
    with pytest.raises(UnsupportedError, match="another operand"):
        ft.jit(lambda x, w: lax.reduce_window(x, 0.0, lambda a, b: a + w * b, (1, 1, 1), (1, 1, 1), "VALID"))(X, 2.0)
