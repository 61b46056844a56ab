"""Arrays in a memory other than the device's default memory, on one device without a mesh and on meshes."""

import pickle

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.errors import DeviceError
from functorch_like.sharding import NamedSharding, SingleDeviceSharding
from functorch_like.sharding import PartitionSpec as P

KINDS = ["device", "pinned_host", "unpinned_host"]
HOST = KINDS[1:]
X = np.arange(12.0, dtype=np.float32).reshape(3, 4)
FIRST, SECOND = ft.devices()[:2]


def one(kind, device=SECOND):
    return SingleDeviceSharding(device, memory_kind=kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "start",
    {
        "NumPy": lambda: X,
        "free": lambda: fnp.asarray(X),
        "same device": lambda: ft.device_put(X, SECOND),
        "other device": lambda: ft.device_put(X, FIRST),
        "other memory": lambda: ft.device_put(X, one("pinned_host", FIRST)),
        "mesh": lambda: ft.device_put(X, NamedSharding(ft.make_mesh((2,), ("i",)), P(None, "i"))),
    }.values(),
    ids=["NumPy", "free", "same device", "other device", "other memory", "mesh"],
)
def test_moving_there_and_back(start, kind):
    x = ft.device_put(start(), one(kind))
    assert x.sharding == one(kind) and x.sharding.memory_kind == kind and x.devices() == {SECOND}
    assert ft.device_put(x, one(kind)) is x
    assert ft.device_put(x, SECOND).sharding == one("device")
    assert ft.device_put(x, FIRST).devices() == {FIRST}
    split = NamedSharding(ft.make_mesh((4,), ("i",)), P(None, "i"), memory_kind=kind)
    for moved in (x, ft.device_put(x, SECOND), ft.device_put(x, FIRST), ft.device_put(x, split)):
        np.testing.assert_array_equal(np.asarray(moved), X)
    assert ft.device_put(x, split).sharding == split


@pytest.mark.parametrize("kind", HOST)
def test_what_is_computed_of_it_is_in_usual_memory(kind):
    x, other = ft.device_put(X, one(kind)), ft.device_put(X, SECOND)
    f = ft.jit(lambda x, y: x * 2 + y)
    for _ in range(3):  # the first call goes through Python, later ones through C++
        for total in (f(x, other), f(other, x), x * 2 + other):
            np.testing.assert_array_equal(np.asarray(total), 3 * X)
            assert total.sharding == one("device")
    with pytest.raises(DeviceError, match="bound to"):
        x + ft.device_put(X, FIRST)
    gradient = ft.jit(ft.grad(lambda x: (x**2).sum()))(x)
    np.testing.assert_array_equal(np.asarray(gradient), 2 * X)
    np.testing.assert_array_equal(np.asarray(x), X)


@pytest.mark.parametrize("kind", HOST)
def test_in_shardings_and_out_shardings_of_jit(kind):
    twice = ft.jit(lambda x: (x * 2, x.sum()), in_shardings=one(kind), out_shardings=(one(kind), one("device")))
    for argument in (X, ft.device_put(X, one(kind)), X):
        out, total = twice(argument)
        assert out.sharding.memory_kind == kind and out.devices() == total.devices() == {SECOND}
        assert total.sharding.memory_kind == "device" and float(total) == X.sum()
        np.testing.assert_array_equal(np.asarray(out), 2 * X)
        np.testing.assert_array_equal(np.asarray(out + ft.device_put(X, SECOND)), 3 * X)


def test_donation_and_pickling():
    x = ft.device_put(X, one("pinned_host"))
    np.testing.assert_array_equal(np.asarray(ft.jit(lambda x: x + 1, donate_argnums=0)(x)), X + 1)
    for kind in KINDS:
        assert pickle.loads(pickle.dumps(one(kind))) == one(kind)
    assert "pinned_host" in repr(one("pinned_host"))


def test_a_mesh_of_one_device_is_that_device():
    mesh = ft.make_mesh((1,), ("i",), devices=[SECOND])
    on_mesh, alone = ft.device_put(X, NamedSharding(mesh, P("i"))), ft.device_put(X, SECOND)
    f = ft.jit(lambda x, y: x - y)
    for _ in range(3):
        for out in (f(on_mesh, alone), f(alone, on_mesh), on_mesh - alone, alone - on_mesh):
            assert out.devices() == {SECOND} and not np.asarray(out).any()
    with pytest.raises(DeviceError):
        on_mesh + ft.device_put(X, FIRST)


@pytest.mark.parametrize("kind", HOST)
def test_device_put_inside_of_programs_is_the_identity_on_cpus(kind):
    where = NamedSharding(ft.make_mesh((4,), ("i",)), P(None, "i"), memory_kind=kind)
    for place in (where, one(kind)):
        f = lambda x, place=place: (ft.device_put(fnp.sin(x), place) ** 2).sum()
        np.testing.assert_allclose(np.asarray(ft.jit(ft.grad(f))(X)), np.sin(2 * X), rtol=1e-5, atol=1e-6)
        assert "memory_placement(" in str(ft.make_jaxpr(f)(X))


@pytest.mark.parametrize("kind", HOST)
def test_results_in_other_memory_than_the_arguments(kind):
    x = ft.device_put(X, SECOND)
    for f in (lambda x: x, lambda x: 2 * x):
        out = ft.jit(f, out_shardings=one(kind))(x)
        assert out.sharding.memory_kind == kind and out.devices() == {SECOND}
        np.testing.assert_array_equal(np.asarray(out), f(X))
        mesh = ft.make_mesh((1,), ("i",), devices=[SECOND])
        out = ft.jit(f, out_shardings=NamedSharding(mesh, P(), memory_kind=kind))(
            ft.device_put(X, NamedSharding(mesh, P()))
        )
        assert out.sharding.memory_kind == out.addressable_shards[0].data.sharding.memory_kind == kind
        np.testing.assert_array_equal(np.asarray(out), f(X))
    with pytest.raises(ft.errors.ArgumentError, match="in_shardings say"):
        ft.jit(lambda x: x, in_shardings=one(kind))(x)
