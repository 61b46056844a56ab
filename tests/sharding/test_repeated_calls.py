"""Repeated calls of programs with collectives; before jaxlib 0.12 each of these calls goes through Python."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import backends
from functorch_like.errors import DonatedError
from functorch_like.sharding import NamedSharding
from functorch_like.sharding import PartitionSpec as P

X = np.arange(64.0).reshape(8, 8)


@pytest.fixture(scope="module")
def put():
    mesh = ft.make_mesh((4, 2), ("a", "b"))
    return lambda x, *spec: ft.device_put(x, NamedSharding(mesh, P(*spec)))


def test_calls_that_differ(put):
    f = ft.jit(lambda x, scale=1.0, **more: (x.sum() * scale, {"more": sum(v.sum() for v in more.values())}))
    calls = [
        ((put(X, "a"),), {}),
        ((put(2 * X, "a"),), {}),
        ((put(X, "a", "b"),), {}),  # another sharding
        ((put(X[:4], "a"),), {}),  # another shape
        ((put(X.astype(np.float32), "a"),), {}),
        ((put(X, "a"),), {"b": put(X, "b")}),
        ((put(X, "a"),), {"c": put(3 * X, "b")}),  # another name
        ((put(X, "a"), 2.0), {}),
        ((X,), {}),
        ((put(X, "a"), put(np.float64(3))), {}),
        ((ft.device_put(X, ft.devices()[2]),), {}),
    ]
    for _ in range(3):
        for args, kwargs in [call for call in calls for _ in range(2)]:
            total, rest = f(*args, **kwargs)
            scale = float(args[1]) if len(args) > 1 else 1.0
            np.testing.assert_allclose(float(total), np.asarray(args[0], np.float64).sum() * scale)
            np.testing.assert_allclose(float(rest["more"]), sum(np.asarray(v).sum() for v in kwargs.values()))


def test_calls_like_the_last_one_take_the_short_way(put, monkeypatch):
    f = ft.jit(lambda tree, unused: {"sum": tree["x"].sum(), "y": tree["y"] * 2}, donate_argnums=1)
    given = lambda: ({"x": put(X, "a"), "y": put(X, "b")}, put(X, "a"))
    f(*given())
    monkeypatch.setattr("functorch_like.transforms.jit_state.FlatCall", None)  # the slow path constructs it first
    for _ in range(3):
        out = f(*given())
        assert float(out["sum"]) == X.sum()
        np.testing.assert_array_equal(np.asarray(out["y"]), 2 * X)


def test_errors_of_repeated_calls_name_the_function(put):
    def total(x):
        return x.sum()

    f = ft.jit(total)
    gone = put(X, "a")
    f(gone)
    gone.delete()
    for _ in range(2):
        with pytest.raises(DonatedError, match="deleted"):
            f(gone)
    assert float(f(put(X, "a"))) == X.sum()


def test_what_is_set_meanwhile(put):
    f = ft.jit(lambda x: fnp.sum(x @ x))
    x = put(X, "a")
    f(x), f(x)
    for setting in (backends.flags(deterministic_algorithms="on"), ft.default_matmul_precision("high")):
        with setting:  # a program is compiled for the settings in force, so it is traced again
            assert "traced <lambda>" in str(ft.explain(f)(x))
        np.testing.assert_allclose(float(f(x)), (X @ X).sum())
    with ft.disable_jit():
        np.testing.assert_allclose(float(f(x)), (X @ X).sum())
    for forget in (ft.clear_caches, f.clear_cache):
        forget()
        told = str(ft.explain(f)(x))
        assert "traced <lambda>" in told, told
        np.testing.assert_allclose(float(f(x)), (X @ X).sum())
    gradient = ft.grad(f)(x)
    np.testing.assert_allclose(np.asarray(gradient), X.sum(1)[None] + X.sum(0)[:, None])


def test_a_donated_argument(put):
    f = ft.jit(lambda x: x - x.sum(), donate_argnums=0)
    x, expected = put(X, "a"), X
    for _ in range(3):
        x, expected = f(x), expected - expected.sum()
    np.testing.assert_allclose(np.asarray(x), expected)
    used = put(X, "a")
    f(used)
    with pytest.raises(DonatedError, match="was donated"):
        f(used)
    np.testing.assert_allclose(np.asarray(f(put(X, "a"))), X - X.sum())
