"""Arguments of meshes and shardings that are refused: each error names what was given and what to do."""

import pickle

import numpy as np
import pytest

import functorch_like as ft
from functorch_like import lax, primitives
from functorch_like.errors import ArgumentError, DeviceError, ExchangeError, ShapeError, UnsupportedError
from functorch_like.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, Sharding, SingleDeviceSharding
from functorch_like.sharding import PartitionSpec as P

MESH = ft.make_mesh((4, 2), ("a", "b"))
X = np.arange(64.0).reshape(8, 8)
KINDS = "'device', 'pinned_host', 'unpinned_host'"
SINGLE = SingleDeviceSharding(ft.devices()[1])
WHOLE = NamedSharding(MESH, P())

REFUSED = {
    "no spec": (lambda: NamedSharding("x"), ArgumentError, "NamedSharding takes a mesh, got 'x' of type str"),
    "nothing": (lambda: NamedSharding(), ArgumentError, "NamedSharding takes a mesh, got None"),
    "mesh alone": (lambda: NamedSharding(MESH), ArgumentError, "takes a PartitionSpec, got None"),
    "no mesh": (lambda: NamedSharding("x", P()), ArgumentError, "takes a mesh, got 'x' of type str"),
    "no such axis": (lambda: NamedSharding(MESH, P("z")), ArgumentError, "names the axis 'z', which Mesh"),
    "no device": (lambda: SingleDeviceSharding("cpu"), ArgumentError, "takes a device, got 'cpu' of type str"),
    "the base": (lambda: Sharding(), ArgumentError, "Sharding is the base"),
    "memory": (lambda: NamedSharding(MESH, P(), memory_kind="vram"), ArgumentError, f"'vram' is not a kind .*{KINDS}"),
    "misspelt": (lambda: WHOLE.with_memory_kind("pinned_hots"), ArgumentError, "did you mean 'pinned_host"),
    "memory 3": (lambda: WHOLE.with_memory_kind(3), ArgumentError, "memory_kind=3 is not a kind of memory"),
    "memory of one": (lambda: SINGLE.with_memory_kind("vram"), ArgumentError, "memory_kind='vram' is not a kind"),
    "shape of a mesh": (lambda: ft.make_mesh("ab", ("a", "b")), ArgumentError, "axis_shapes of a mesh is 'ab'"),
    "half a device": (lambda: ft.make_mesh((1.5,), ("a",)), ArgumentError, "axis_shapes of a mesh is"),
    "shape of parts": (lambda: WHOLE.shard_shape("8"), ShapeError, "'8' of type str is not a shape"),
    "no callback": (lambda: ft.make_array_from_callback((8,), WHOLE, 3), ArgumentError, "data_callback is 3"),
    "jit without devices": (
        lambda: ft.jit(lambda x: x, in_shardings=NamedSharding(AbstractMesh((8,), ("a",)), P("a")))(X),
        ArgumentError,
        "are on AbstractMesh.*, which has no devices",
    ),
    "a device and a mesh": (
        lambda: ft.jit(lambda x: x, in_shardings=SINGLE, out_shardings=WHOLE)(X), DeviceError, "on different devices"
    ),
    "two devices": (
        lambda: ft.jit(lambda x: x, in_shardings=SINGLE, out_shardings=SingleDeviceSharding(ft.devices()[2]))(X),
        DeviceError,
        r"SingleDeviceSharding\(cpu:1\) and SingleDeviceSharding\(cpu:2\)",
    ),
    "placed elsewhere": (
        lambda: ft.jit(lambda x: x, in_shardings=SINGLE)(ft.device_put(X, ft.devices()[3])),
        ArgumentError,
        r"args\[0\] of jit\(<lambda>\) is f64\[8,8\] on SingleDeviceSharding\(cpu:3\)",
    ),
    "one entry": (
        lambda: ft.jit(lambda x: x.sum(), out_shardings=NamedSharding(MESH, P("a")))(X),
        ShapeError,
        r"P\('a'\) has 1 entry for result, f64\[\], which has 0 dimensions",
    ),
    "axis of vmap": (
        lambda: ft.jit(
            ft.vmap(lambda x: lax.with_sharding_constraint(x, NamedSharding(MESH, P("a"))), spmd_axis_name="z")
        )(X),
        ArgumentError,
        "spmd_axis_name of vmap names the axis 'z', which Mesh",
    ),
    "a manual axis": (
        lambda: ft.shard_map(
            lambda x: lax.with_sharding_constraint(x, P("a")), mesh=MESH, in_specs=P("a"), out_specs=P("a")
        )(X),
        ArgumentError,
        r"by P\('a'\) inside of a shard_map that is written by the parts along 'a'.*leave 'a' out",
    ),
    "DLPack": (lambda: np.from_dlpack(ft.device_put(X, NamedSharding(MESH, P("a")))), ExchangeError, "is split over"),
    "manual axes": (lambda: Mesh(MESH.devices, ("a", "b"), AxisType.Manual), UnsupportedError, "ft.shard_map"),
    "too few types": (lambda: AbstractMesh((4, 2), ("a", "b"), (AxisType.Auto,)), ArgumentError, "one AxisType"),
}  # fmt: skip


@pytest.mark.parametrize(("wrong", "kind", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(wrong, kind, message):
    with pytest.raises(kind, match=f"(?s){message}"):
        wrong()


def test_meshes_that_look_alike_are_distinguished():
    """Errors name the devices where two meshes differ in nothing else."""
    first, second = (
        ft.device_put(X, NamedSharding(Mesh(ft.devices()[4 * k : 4 * k + 4], "h"), P("h"))) for k in (0, 1)
    )
    turned = Mesh(MESH.devices[::-1], ("a", "b"))
    x = ft.device_put(X, WHOLE)
    for call in (lambda a, b: a + b, ft.jit(lambda a, b: a + b)):
        with pytest.raises(DeviceError, match="other devices: cpu:4, cpu:5, cpu:6, cpu:7 instead of cpu:0, cpu:1, "):
            call(first, second)
        with pytest.raises(
            DeviceError, match=r"other devices: cpu:0, cpu:1, \.\.\., cpu:7 instead of cpu:0, cpu:1, cpu:2"
        ):
            call(first, x)
        with pytest.raises(DeviceError, match=r"which has the same devices in another order"):
            call(x, ft.device_put(X, NamedSharding(turned, P("b"))))
    inside = ft.jit(lambda x: lax.with_sharding_constraint(x, NamedSharding(turned, P("a"))))
    with pytest.raises(DeviceError, match="is named, which has the same devices in another order"):
        inside(x)


def test_types_of_axes():
    assert Mesh(MESH.devices, ("a", "b"), (AxisType.Auto,) * 2) is MESH
    assert MESH.axis_types == (AxisType.Auto, AxisType.Auto)
    assert ft.make_mesh((4, 2), ("a", "b"), (AxisType.Auto,) * 2) is MESH


def test_names_that_users_import_stand_for_the_classes():
    x = ft.device_put(X, NamedSharding(MESH, P("a")))
    assert isinstance(x.sharding, NamedSharding) and isinstance(x.sharding, Sharding)
    assert not isinstance(x.sharding, SingleDeviceSharding) and isinstance(SINGLE, Sharding)
    assert issubclass(NamedSharding, Sharding) and issubclass(type(x.sharding), NamedSharding)
    assert pickle.loads(pickle.dumps(x.sharding)) == x.sharding


def test_jit_on_one_device():
    f = ft.jit(lambda x, y: (x + y, x * 2), in_shardings=(SINGLE, None))
    for arguments in ((X, X), (ft.numpy.asarray(X), 1.0), (ft.device_put(X, ft.devices()[1]), X)):
        total, twice = f(*arguments)
        assert total.devices() == twice.devices() == {ft.devices()[1]}
        np.testing.assert_array_equal(twice, 2 * X)
        with pytest.raises(DeviceError):  # the result is bound to its device
            twice + ft.device_put(X, ft.devices()[2])
    assert ft.jit(lambda x: x + 1, out_shardings=SINGLE)(X).sharding == SINGLE
    np.testing.assert_array_equal(ft.jit(lambda x: f(x, x)[0])(X), 2 * X)


def test_first_calls_of_operations_refuse_operands_on_two_devices():
    first, last = (ft.device_put(X, device) for device in ft.devices()[:2])
    for call in (lambda: primitives.add(first, last), lambda: primitives.select_n(first > 0, last, first)):
        for _ in range(2):
            with pytest.raises(DeviceError, match=r"runs on .*:0, .* is bound to .*:1"):
                call()
    free = ft.numpy.asarray(X)
    for total in (primitives.add(last, free), primitives.add(free, last)):
        assert total.devices() == {ft.devices()[1]} and total._committed


@pytest.mark.parametrize(
    "make",
    [
        lambda: P("a", "a"),
        lambda: P(3),
        lambda: Mesh(ft.devices(), ("a", "b")),
        lambda: Mesh(ft.devices()[:1] * 2, ("a",)),
        lambda: AbstractMesh((2, 2), ("a",)),
    ],
)
def test_meshes_and_specs_name_the_line_of_the_user(make):
    with pytest.raises((ArgumentError, DeviceError)) as e:
        make()
    assert __file__ in e.value.at
    assert all(frame.path.name == "test_refused.py" for frame in e.traceback)
