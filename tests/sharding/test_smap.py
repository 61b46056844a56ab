"""smap, auto_axes, explicit_axes and memory spaces, compared with NumPy."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.experimental.shard_alike import shard_alike
from functorch_like.sharding import MemorySpace, NamedSharding, auto_axes, explicit_axes
from functorch_like.sharding import PartitionSpec as P

X = np.cos(np.arange(32, dtype=np.float32)).reshape(8, 4)
W = np.sin(np.arange(12, dtype=np.float32)).reshape(4, 3)


@pytest.fixture
def mesh():
    with ft.use_mesh(ft.make_mesh((4, 2), ("x", "y"))) as mesh:
        yield mesh


def test_parts_along_one_axis(mesh):
    shapes = []

    def rows(x, w):
        shapes.append(x.shape)
        return x @ w, lax.psum(x.sum(), "x")

    for f in (ft.smap(rows, in_axes=(0, None), out_axes=(-2, None), axis_name="x"),):
        for run in (f, ft.jit(f)):
            product, total = run(X, W)
            np.testing.assert_allclose(product, X @ W, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(total, X.sum(dtype=np.float64), rtol=1e-5, atol=1e-5)
    assert set(shapes) == {(2, 4)}


def test_pytrees_and_the_last_dimension(mesh):
    @ft.smap(in_axes=({"a": -1},), out_axes={"r": 1}, axis_name="y")
    def f(tree):
        return {"r": tree["a"] - lax.pmean(tree["a"], "y")}

    wanted = X.reshape(8, 2, 2) - X.reshape(8, 2, 2).mean(1, keepdims=True)
    np.testing.assert_allclose(f({"a": X})["r"], wanted.reshape(8, 4), rtol=1e-5, atol=1e-6)


def test_nested_maps_and_derivatives(mesh):
    inner = ft.smap(lambda x: (x * x).sum(keepdims=True), in_axes=1, out_axes=1, axis_name="y")
    f = ft.jit(ft.smap(inner, in_axes=0, out_axes=0, axis_name="x"))
    np.testing.assert_allclose(f(X), (X.reshape(4, 2, 2, 2) ** 2).sum((1, 3)), rtol=1e-5)
    g = ft.grad(lambda x: ft.smap(lambda x: x**3, in_axes=0, out_axes=0, axis_name="x")(x).sum())(X)
    np.testing.assert_allclose(g, 3 * X**2, rtol=1e-5, atol=1e-6)


def test_what_smap_refuses(mesh):
    f = lambda x: x
    with pytest.raises(ft.errors.ArgumentError, match="one axis of a mesh"):
        ft.smap(f, in_axes=0, out_axes=0, axis_name=("x", "y"))
    with pytest.raises(ft.errors.ArgumentError, match="of type list"):
        ft.smap(f, in_axes=[0], out_axes=0, axis_name="x")
    with pytest.raises(ft.errors.ShapeError, match=r"in_axes .* is 2, and the array has 2"):
        ft.smap(f, in_axes=2, out_axes=0, axis_name="x")(X)
    with pytest.raises(ft.errors.ShapeError, match=r"out_axes .* is -3"):
        ft.smap(f, in_axes=0, out_axes=-3, axis_name="x")(X)
    with pytest.raises(ft.errors.ArgumentError, match="does not have"):
        ft.smap(f, in_axes=0, out_axes=0, axis_name="z")(X)
    with ft.use_mesh(None), pytest.raises(ft.errors.ArgumentError, match="none is in force"):
        ft.smap(f, in_axes=0, out_axes=0, axis_name="x")(X)


def test_auto_and_explicit_axes(mesh):
    double = auto_axes(lambda x: (x * 2, {"s": x}), out_sharding=(P("x"), {"s": P(None, "y")}))
    for run in (double, ft.jit(double)):
        y, rest = run(X)
        np.testing.assert_array_equal(y, X * 2)
        assert y.sharding.spec == P("x") and rest["s"].sharding.spec == P(None, "y")
    assert auto_axes(axes="x")(lambda x: x)(X, out_sharding=P("y")).sharding.spec == P("y")
    gradient = ft.grad(lambda x: auto_axes(lambda x: x * x, out_sharding=P("x"))(x).sum())(X)
    np.testing.assert_allclose(gradient, 2 * X, rtol=1e-6)

    places = []
    split = explicit_axes(lambda x, w: places.append((x.sharding.spec, w.sharding.spec)) or x @ w)
    np.testing.assert_allclose(split(X, W, in_sharding=(P("x"), P("y"))), X @ W, rtol=1e-5, atol=1e-6)
    assert places == [(P("x"), P("y"))]


def test_the_mesh_of_an_argument(mesh):
    x = ft.device_put(X, NamedSharding(mesh, P("x", "y")))
    with ft.use_mesh(None):
        assert auto_axes(lambda x: x + 1, out_sharding=P("y"))(x).sharding.spec == P("y")
        with pytest.raises(ft.errors.ArgumentError, match="no mesh was chosen"):
            auto_axes(lambda x: x + 1, out_sharding=P("y"))(X)


def test_what_the_modes_of_axes_refuse(mesh):
    for f in (auto_axes, explicit_axes):
        with pytest.raises(ft.errors.ArgumentError, match=r"got no (out|in)_sharding"):
            f(lambda x: x)(X)
    with pytest.raises(ft.errors.ArgumentError, match="'z', which"):
        auto_axes(lambda x: x, axes="z", out_sharding=P())(X)


def test_memory_spaces(mesh):
    x = ft.device_put(X, NamedSharding(mesh, P("x")))
    host = ft.device_put(x, MemorySpace.Host)
    assert host.sharding.memory_kind == "pinned_host" and host.sharding.spec == P("x")
    assert ft.device_put(host, MemorySpace.Device).sharding == x.sharding
    assert ft.device_put(host, MemorySpace.Any).sharding == host.sharding
    assert ft.device_put({"a": X}, MemorySpace.Host)["a"].sharding.memory_kind == "pinned_host"
    f = ft.jit(lambda x: fnp.sin(ft.device_put(ft.device_put(x, MemorySpace.Host), MemorySpace.Device)))
    np.testing.assert_allclose(f(X), np.sin(X), rtol=1e-5)


def test_values_are_split_alike(mesh):
    x = ft.device_put(X, NamedSharding(mesh, P("x", "y")))
    f = ft.jit(lambda x: shard_alike(x, fnp.cos(fnp.arange(32.0)).reshape(8, 4))[1])
    assert "sdy.sharding_group" in f.lower(x).as_text()
    y = f(x)
    assert y.sharding.spec == P("x", "y")
    np.testing.assert_allclose(y, X, rtol=1e-5, atol=1e-6)
