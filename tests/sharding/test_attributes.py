"""Attributes of meshes and shardings, under JAX's names, on eight virtual devices."""

import numpy as np
import pytest

import functorch_like as ft
from functorch_like.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, SingleDeviceSharding
from functorch_like.sharding import PartitionSpec as P


@pytest.fixture(scope="module")
def mesh():
    return ft.make_mesh((4, 2), ("x", "y"))


def test_the_local_part_of_a_mesh_of_one_process(mesh):
    """Meshes of several processes are tested in tests/distributed."""
    assert mesh.local_mesh is mesh
    assert Mesh(mesh.devices[::-1], ("x", "y")).local_mesh.device_ids.tolist() == mesh.device_ids[::-1].tolist()


def test_types_of_axes(mesh):
    for each in (mesh, mesh.abstract_mesh):
        assert each.axis_types == (AxisType.Auto, AxisType.Auto)
        assert (each.auto_axes, each.explicit_axes, each.manual_axes) == (("x", "y"), (), ())
        assert each.are_all_axes_auto and not each.are_all_axes_explicit
        assert not each.are_all_axes_manual and not each.are_all_axes_explicit_or_manual
    empty = AbstractMesh((), ())
    assert empty.empty and not empty.are_all_axes_auto


def test_meshes_with_other_names_sizes_and_devices(mesh):
    assert mesh.update() is mesh
    assert mesh.update(axis_names=("a", "b")) is Mesh(mesh.devices, ("a", "b"))
    assert mesh.update(ft.devices(), "z") is ft.make_mesh((8,), ("z",))
    assert mesh.abstract_mesh.update((2, 2)) == AbstractMesh((2, 2), ("x", "y"))
    assert mesh.abstract_mesh.update(axis_names=("a", "b")) == AbstractMesh((4, 2), ("a", "b"))
    with pytest.raises(ft.errors.ArgumentError, match="2 axes and 1 names"):
        mesh.update(axis_names="z")


def test_devices_of_a_sharding(mesh):
    where = NamedSharding(mesh, P("x"))
    assert where.num_devices == 8 and where.device_set == where.addressable_devices == set(ft.devices())
    assert where.has_addressable_devices and where.is_fully_addressable and not where.is_fully_replicated
    assert where.platform == "cpu" and where.memory_kind == "device"
    third = ft.devices()[3]
    one = SingleDeviceSharding(third)
    assert one.num_devices == 1 and one.device_set == one.addressable_devices == {third}
    assert one.has_addressable_devices and one.is_fully_addressable and one.is_fully_replicated
    assert one.devices_indices_map((8, 2)) == one.addressable_devices_indices_map((8, 2))
    assert one.devices_indices_map((8, 2)) == {third: (slice(None), slice(None))}
    assert one.shard_shape([8, 2]) == (8, 2)


def test_a_sharding_without_devices_says_so():
    where = NamedSharding(AbstractMesh((4, 2), ("x", "y")), P("x"))
    assert where.num_devices == 8 and where.shard_shape((8, 3)) == (2, 3)
    assert where.update(mesh=ft.make_mesh((4, 2), ("x", "y"))).device_set == set(ft.devices())
    for name in ("device_set", "addressable_devices", "has_addressable_devices", "is_fully_addressable", "platform"):
        with pytest.raises(ft.errors.DeviceError, match="has no devices: its mesh has none"):
            getattr(where, name)


def test_axes_that_split_nothing(mesh):
    assert NamedSharding(mesh, P("x")).replicated_axes == {"y"}
    assert NamedSharding(mesh, P(None, ("y", "x"))).replicated_axes == frozenset()


def test_shardings_with_other_parts(mesh):
    where = NamedSharding(mesh, P("x"), memory_kind="pinned_host")
    assert where.update(P("y")) == NamedSharding(mesh, P("y"), memory_kind="pinned_host")
    assert where.update(spec=("y",), memory_kind="device") == NamedSharding(mesh, P("y"), memory_kind="device")
    line = ft.make_mesh((8,), ("x",))
    assert where.update(mesh=line) == NamedSharding(line, P("x"), memory_kind="pinned_host")
    assert where.with_memory_kind("unpinned_host").memory_kind == "unpinned_host"
    with pytest.raises(ft.errors.ArgumentError, match=r"P\('z'\) names the axis 'z'"):
        where.update(("z",))
    with pytest.raises(ft.errors.ArgumentError, match="'disk' is not a kind of memory"):
        where.update(memory_kind="disk")
    with pytest.raises(ft.errors.ArgumentError, match="NamedSharding takes a mesh, got 3"):
        where.update(mesh=3)


def test_ranks_that_a_sharding_fits(mesh):
    where = NamedSharding(mesh, P(None, "x"))
    where.check_compatible_aval((3, 3))  # the rank alone is checked, not the sizes
    with pytest.raises(
        ft.errors.ShapeError, match=r"has 2 entries for an array of shape \(8,\), which has 1 dimension"
    ):
        where.check_compatible_aval((8,))
    SingleDeviceSharding(ft.devices()[0]).check_compatible_aval(())


def test_equal_layouts(mesh):
    where = NamedSharding(mesh, P(("x", "y")))
    line = NamedSharding(ft.make_mesh((8,), ("z",)), P("z"))
    assert where != line and where.is_equivalent_to(line, 2)
    assert not where.is_equivalent_to(NamedSharding(mesh, P(("y", "x"))), 2)
    assert not where.is_equivalent_to(where.with_memory_kind("pinned_host"), 2)
    one = NamedSharding(ft.make_mesh((1,), ("z",)), P("z"))
    assert one.is_equivalent_to(SingleDeviceSharding(ft.devices()[0]), 1)
    x = ft.device_put(np.arange(8.0), where)
    assert x.sharding.is_equivalent_to(line, x.ndim)
