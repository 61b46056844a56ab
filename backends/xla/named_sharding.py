"""Shardings: the devices that hold an array, and which part of it each one has.

jaxlib's own classes, given the methods that C++ leaves to Python and those that users call.
"""

from __future__ import annotations

import copyreg
import math
import operator
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like.avals import ExplicitAxes
from functorch_like.backends.xla import client, jax_import_stubs, memory, sharding
from functorch_like.backends.xla.configuration import current_mesh
from functorch_like.backends.xla.jaxlib_api import JaxRuntimeError, _jax, xc
from functorch_like.backends.xla.mesh import AbstractMesh, Mesh
from functorch_like.backends.xla.partition_spec import UNCONSTRAINED, PartitionSpec
from functorch_like.errors import ArgumentError, DeviceError, ShapeError, nearest

if TYPE_CHECKING:
    from functorch_like.arrays.array_type import NamedSharding as NamedSharding
    from functorch_like.arrays.array_type import Sharding as Sharding
    from functorch_like.arrays.array_type import SingleDeviceSharding as SingleDeviceSharding
else:
    Sharding = _jax.Sharding
    NamedSharding = _jax.NamedSharding
    SingleDeviceSharding = _jax.SingleDeviceSharding
Index = tuple[slice, ...]


# -------------------------------------------------------------------------------------------------------------- checks
def check(mesh: Any, spec: Any) -> None:
    """Refuse values that cannot be the mesh and the spec of a NamedSharding.

    Raises:
        ArgumentError: for other types, or an axis that the mesh lacks.
    """
    if not isinstance(mesh, AbstractMesh):
        raise ArgumentError(
            f"NamedSharding takes a mesh, got {mesh!r:.60} of type {type(mesh).__name__}",
            fix="NamedSharding(mesh, PartitionSpec(...))",
        )
    if not isinstance(spec, PartitionSpec):
        raise ArgumentError(
            f"NamedSharding takes a PartitionSpec, got {spec!r:.60} of type {type(spec).__name__}",
            fix="NamedSharding(mesh, PartitionSpec(...))",
        )
    check_axes(mesh, spec.mentioned(), repr(spec))


def check_memory_kind(place: Any, kind: Any) -> None:
    """Refuse a kind of memory that devices lack.

    Args:
        place: a mesh or a device.
        kind: "device", "pinned_host", ...; None for the usual one.

    Raises:
        ArgumentError: naming those that they have.
    """
    if kind is None or (isinstance(kind, str) and not isinstance(place, (Mesh, xc.Device))):
        return
    device = place.devices.flat[0] if isinstance(place, Mesh) else place
    kinds = [memory.kind for memory in device.addressable_memories()] if isinstance(device, xc.Device) else []
    if kind not in kinds:
        raise ArgumentError(
            f"memory_kind={kind!r:.60} is not a kind of memory of {device}{nearest(str(kind), kinds)}",
            fix=f"use one of {', '.join(map(repr, kinds))}, or None",
        )


def check_axes(mesh: AbstractMesh, axes: Sequence[str], what: str) -> None:
    """Refuse axes that a mesh lacks."""
    for name in axes:
        if name not in mesh.shape:
            there = ", ".join(map(repr, mesh.axis_names)) or "none"
            raise ArgumentError(
                f"{what} names the axis {name!r}, which {mesh!r} does not have{nearest(name, mesh.axis_names)}",
                fix=f"its axes are {there}",
            )


def from_user(where: Any, what: str) -> Any:
    """Return the sharding that a user gave: a PartitionSpec, or an abstract mesh, refers to the mesh of `use_mesh`.

    Raises:
        ArgumentError: for other types, and for a spec where no mesh was chosen.
    """
    mesh = current_mesh.value
    if isinstance(where, Sharding):
        of_current = isinstance(where, NamedSharding) and mesh is not None and where.mesh == mesh.abstract_mesh
        return named(mesh, where.spec, where.memory_kind) if of_current else where
    if isinstance(where, PartitionSpec):
        if mesh is None:
            raise ArgumentError(
                f"{what} is {where!r}, and no mesh was chosen",
                fix="pass NamedSharding(mesh, spec), or choose one: with ft.use_mesh(mesh)",
            )
        return named(mesh, where)
    raise ArgumentError(
        f"{what} is {where!r:.60} of type {type(where).__name__}",
        fix="use NamedSharding(mesh, PartitionSpec(...)), or a PartitionSpec within ft.use_mesh(mesh)",
    )


def check_rank(spec: PartitionSpec, ndim: int, what: str) -> None:
    """Refuse a spec that is longer than the rank of the array."""
    if len(spec) > ndim:
        entries = "1 entry" if len(spec) == 1 else f"{len(spec)} entries"
        raise ShapeError(
            f"{spec!r} has {entries} for {what.removesuffix(',')}, which has {ndim} dimension{'s' * (ndim != 1)}",
            fix=f"give at most {ndim}",
        )


def check_divides(where: Any, shape: Sequence[int], what: str) -> None:
    """Refuse a sharding that does not split an array into equal parts.

    Raises:
        ShapeError: where the spec is longer than the rank, or a dimension does not divide; names both.
    """
    check_rank(where.spec, len(shape), what)
    for d, (size, parts) in enumerate(zip(shape, shard_counts(where, len(shape)), strict=True)):
        if size % parts:
            entry = where.spec[d]
            axes = " x ".join(f"{name!r} ({where.mesh.shape[name]})" for name in where.spec.axes(len(shape))[d])
            raise ShapeError(
                f"dimension {d} of {what} has size {size}, which does not divide by {parts}, the size of {axes}",
                fix=f"pad it to {-(-size // parts) * parts}, or leave {entry!r} out of {where.spec!r}",
            )


def divides(where: Any, shape: Sequence[int]) -> bool:
    """Return True if a sharding splits an array into equal parts."""
    return all(size % parts == 0 for size, parts in zip(shape, shard_counts(where, len(shape)), strict=True))


def shard_counts(where: Any, ndim: int) -> tuple[int, ...]:
    """Number of parts of each dimension."""
    size = where.mesh.shape
    return tuple(
        1 if axes is UNCONSTRAINED else math.prod(size[name] for name in axes) for axes in where.spec.axes(ndim)
    )


# ------------------------------------------------------------------------------------------------------------- methods
@lru_cache(4096)
def _hlo_sharding(mesh: Any, spec: PartitionSpec, ndim: int) -> Any:
    axes = [() if a is UNCONSTRAINED else a for a in spec.axes(ndim)]
    used = [name for entry in axes for name in entry]
    if math.prod(mesh.shape[name] for name in used) == 1:
        return sharding.REPLICATED
    rest = [name for name in mesh.axis_names if name not in used]
    order = [mesh.axis_names.index(name) for name in used + rest]
    dims = [math.prod(mesh.shape[name] for name in entry) for entry in axes]
    kinds: list[Any] = []
    if math.prod(mesh.shape[name] for name in rest) > 1:
        dims.append(math.prod(mesh.shape[name] for name in rest))
        kinds.append(xc.OpSharding.Type.REPLICATED)
    return xc.HloSharding.iota_tile(
        dims=dims, reshape_dims=list(mesh.axis_sizes), transpose_perm=order, subgroup_types=kinds
    )


@lru_cache(4096)
def indices(where: Any, shape: tuple[int, ...]) -> list[Index]:
    """The part of an array that each device of the mesh holds, in the order of the mesh."""
    part = shard_shape(where, shape)
    axes = where.spec.axes(len(shape))
    size = where.mesh.shape
    results: list[Index] = []
    for place in np.ndindex(*where.mesh.axis_sizes):
        at = dict(zip(where.mesh.axis_names, place, strict=True))
        index: list[slice] = []
        for entry, n, whole in zip(axes, part, shape, strict=True):
            k = 0
            for name in () if entry is UNCONSTRAINED else entry:
                k = k * size[name] + at[name]
            index.append(slice(None) if n == whole else slice(k * n, (k + 1) * n))
        results.append(tuple(index))
    return results


@lru_cache(4096)
def local_places(where: Any, shape: tuple[int, ...]) -> tuple[tuple[Any, ...], tuple[Index, ...]]:
    """The devices of this process, in the order of the mesh, and the part of an array that each of them holds."""
    here = where.mesh.client.process_index()
    places = zip(where.mesh.devices.flat, indices(where, shape), strict=True)
    local = [(device, index) for device, index in places if device.process_index == here]
    return tuple(device for device, _ in local), tuple(index for _, index in local)


def shape_from(shape: Any) -> tuple[int, ...]:
    """Return a shape that a user gave, as a tuple.

    Raises:
        ShapeError: for anything but a sequence of sizes.
    """
    try:
        return tuple(operator.index(n) for n in ((shape,) if isinstance(shape, int) else shape))
    except TypeError:
        raise ShapeError(
            f"{shape!r:.60} of type {type(shape).__name__} is not a shape", fix="give a tuple of sizes"
        ) from None


def shard_shape(self: Any, global_shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of the part on one device.

    Raises:
        ShapeError: where a dimension does not divide.
    """
    shape = shape_from(global_shape)
    check_divides(self, shape, f"an array of shape {shape}")
    return tuple(n // k for n, k in zip(shape, shard_counts(self, len(shape)), strict=True))


@lru_cache(4096)
def explicit_part(mesh: AbstractMesh, spec: PartitionSpec, ndim: int) -> ExplicitAxes | None:
    """Return the part of a spec that is about Explicit axes; None where it names none."""
    explicit = frozenset(mesh.explicit_axes)
    if not explicit:
        return None
    each = (() if axes is UNCONSTRAINED else axes for axes in spec.axes(ndim))
    axes = (tuple(name for name in names if name in explicit) for names in each)
    return ExplicitAxes.of(mesh.abstract_mesh, axes)


def _indices_map(self: Any, global_shape: Sequence[int]) -> dict[Any, Index]:
    """Return the part of an array on each device, as a tuple of slices."""
    return dict(zip(self.mesh.devices.flat, indices(self, shape_from(global_shape)), strict=True))


def _local_indices_map(self: Any, global_shape: Sequence[int]) -> dict[Any, Index]:
    """Return the part of an array on each device of this process."""
    here = set(self.mesh.local_devices)
    return {device: index for device, index in _indices_map(self, global_shape).items() if device in here}


def is_equivalent_to(self: Any, other: Any, ndim: int) -> bool:
    """Return True if two shardings put the same parts of an array of this rank on the same devices."""
    if self is other or self == other:
        return True
    if device_list_of(self) != device_list_of(other) or self.memory_kind != other.memory_kind:
        return False
    return self._to_xla_hlo_sharding(ndim) == other._to_xla_hlo_sharding(ndim)


def device_list_of(where: Any) -> Any:
    """jaxlib's list of the devices of a sharding."""
    return where._internal_device_list


def _memory_kind_added(self: Any, kind: str) -> Any:
    """Return the sharding with another memory kind."""
    return _updated(self, memory_kind=kind)


def _updated(self: Any, spec: Any = None, *, mesh: Any = None, memory_kind: str | None = None) -> Any:
    """Return the sharding with another spec, mesh or kind of memory; None leaves each as it is."""
    mesh = self.mesh if mesh is None else mesh
    spec = self.spec if spec is None else spec if isinstance(spec, PartitionSpec) else PartitionSpec(*spec)
    check(mesh, spec)
    check_memory_kind(mesh, memory_kind)
    return named(mesh, spec, self._memory_kind if memory_kind is None else memory_kind)


def _check_compatible(self: Any, aval_shape: Sequence[int]) -> None:
    """Refuse the shape of an array that has fewer dimensions than the spec has entries."""
    shape = shape_from(aval_shape)
    check_rank(self.spec, len(shape), f"an array of shape {shape},")


def _replicated_axes(self: Any) -> frozenset[str]:
    """The axes of the mesh that split no dimension: devices along them hold the same."""
    return frozenset(self.mesh.axis_names) - frozenset(self.spec.mentioned())


def _is_fully_replicated(self: Any) -> bool:
    """True if every device holds the whole array."""
    return all(n == 1 for n in shard_counts(self, len(self.spec)))


def _repr(self: Any) -> str:
    kind = f", memory_kind={self._memory_kind!r}" if self._memory_kind not in (None, "device") else ""
    return f"NamedSharding({self.mesh!r}, {self.spec!r}{kind})"


def named(mesh: Any, spec: PartitionSpec, memory_kind: str | None = None) -> Any:
    """Return a NamedSharding; it is checked whether or not a device was used before."""
    client.default_device()  # C++ looks the check up when the first client is made
    return NamedSharding(mesh, spec, memory_kind=memory_kind)


# ----------------------------------------------------------------------------------- methods of shardings of every kind
def _devices(self: Any) -> Any:
    try:
        return self._internal_device_list
    except JaxRuntimeError:
        raise DeviceError(
            f"{self!r} has no devices: its mesh has none", fix="use a Mesh instead of an AbstractMesh"
        ) from None


def _device_set(self: Any) -> set[Any]:
    """The devices that hold a part of the array."""
    return set(_devices(self))


def _num_devices(self: Any) -> int:
    """The number of devices that hold a part of the array."""
    return len(_devices(self))


def _addressable_devices(self: Any) -> set[Any]:
    """Those of the devices that belong to this process."""
    return set(_devices(self).addressable_device_list)


def _has_addressable_devices(self: Any) -> bool:
    """True if some of the devices belong to this process."""
    return bool(len(_devices(self).addressable_device_list))


def _is_fully_addressable(self: Any) -> bool:
    """True if all devices belong to this process."""
    return bool(_devices(self).is_fully_addressable)


def _platform(self: Any) -> str:
    """The platform of the devices."""
    return next(iter(_devices(self))).platform


def _attach(kind: Any, attributes: dict[str, Any]) -> None:
    for name, value in attributes.items():
        setattr(kind, name, value)


_attach(
    Sharding,
    {
        "is_equivalent_to": is_equivalent_to,
        "device_set": property(_device_set),
        "num_devices": property(_num_devices),
        "addressable_devices": property(_addressable_devices),
        "has_addressable_devices": property(_has_addressable_devices),
        "is_fully_addressable": property(_is_fully_addressable),
        "platform": property(_platform),
    },
)
_attach(
    NamedSharding,
    {
        "_to_xla_hlo_sharding": lambda self, ndim: _hlo_sharding(self.mesh, self.spec, ndim),
        "shard_shape": shard_shape,
        "devices_indices_map": _indices_map,
        "addressable_devices_indices_map": _local_indices_map,
        "with_memory_kind": _memory_kind_added,
        "update": _updated,
        "check_compatible_aval": _check_compatible,
        "num_devices": property(lambda self: self.mesh.size),  # known of meshes without devices, too
        "replicated_axes": property(_replicated_axes),
        "_explicit_axes": lambda self, ndim: explicit_part(self.mesh, self.spec, ndim),
        "is_fully_replicated": property(_is_fully_replicated),
        "__repr__": _repr,
    },
)


# ------------------------------------------------------------------------------------------- shardings of one device
def _single_with_memory_kind(self: Any, kind: str) -> Any:
    """Return the sharding with another memory kind."""
    check_memory_kind(self._device, kind)
    return sharding.single_in(self._device, kind)


def _repr_of_single(self: Any) -> str:
    kind = "" if sharding.is_usual(self) else f", memory_kind={self._memory_kind!r}"
    return f"SingleDeviceSharding({self._device}{kind})"


def _whole_shape(self: Any, global_shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of the part on the device: that of the array."""
    return shape_from(global_shape)


def _one_index(self: Any, global_shape: Sequence[int]) -> dict[Any, Index]:
    """Return the whole array, for the one device."""
    return {self._device: (slice(None),) * len(shape_from(global_shape))}


def _own_index(self: Any, global_shape: Sequence[int]) -> dict[Any, Index]:
    """Return the whole array for the one device, if that belongs to this process."""
    return _one_index(self, global_shape) if self.is_fully_addressable else {}


_attach(
    SingleDeviceSharding,
    {
        "shard_shape": _whole_shape,
        "devices_indices_map": _one_index,
        "addressable_devices_indices_map": _own_index,
        "with_memory_kind": _single_with_memory_kind,
        "check_compatible_aval": lambda self, aval_shape: None,  # any shape
        "is_fully_replicated": property(lambda self: True),
        "_explicit_axes": lambda self, ndim: None,
        "__repr__": _repr_of_single,
    },
)
copyreg.pickle(NamedSharding, lambda s: (named, (s.mesh, s.spec, s._memory_kind)))  # type: ignore[arg-type]
copyreg.pickle(SingleDeviceSharding, lambda s: (sharding.single_in, (s._device, s._memory_kind)))  # type: ignore[arg-type]


# --------------------------------------------------------------------------------------------------- reading shardings
def spec_of(mesh: Mesh, hlo: Any, ndim: int) -> PartitionSpec | None:
    """Return the spec of XLA's sharding on a mesh; None where it has none.

    XLA may split an axis of the mesh, which a spec cannot express.
    """
    if hlo.is_replicated():
        return PartitionSpec()
    dims = hlo.tile_assignment_dimensions()
    if len(dims) < ndim or len(dims) > ndim + 1 or (hasattr(hlo, "is_manual") and hlo.is_manual()):
        return None
    order = np.array(hlo.tile_assignment_devices()).reshape(dims)
    entries: list[Any] = []
    for d in range(ndim):
        line = order[tuple(slice(None) if k == d else 0 for k in range(order.ndim))]
        places = np.array(np.unravel_index(line, mesh.axis_sizes)).T
        moves = [k for k in range(len(mesh.axis_sizes)) if (places[:, k] != places[0, k]).any()]
        # The axis that changes last varies slowest.
        moves.sort(key=lambda k: int(np.argmax(places[:, k] != places[0, k])), reverse=True)
        entries.append(tuple(mesh.axis_names[k] for k in moves))
    try:
        spec = PartitionSpec(*entries)
    except ArgumentError:
        return None
    spec = PartitionSpec(*spec.canonical())
    made = _hlo_sharding(mesh, spec, ndim)
    return spec if made == hlo or _same_tiles(made, hlo) else None


def _same_tiles(a: Any, b: Any) -> bool:
    if a.is_replicated() or b.is_replicated():
        return a.is_replicated() and b.is_replicated()
    same_dims = list(a.tile_assignment_dimensions()) == list(b.tile_assignment_dimensions())
    return same_dims and list(a.tile_assignment_devices()) == list(b.tile_assignment_devices())


def on_mesh(where: Any, mesh: Mesh, ndim: int) -> Any:
    """Return a sharding's equal on another mesh of the same devices in the same order; None where there is none."""
    if where.mesh is mesh:
        return where
    if where._internal_device_list != mesh._internal_device_list:
        return None
    spec = spec_of(mesh, where._to_xla_hlo_sharding(ndim), ndim)
    return None if spec is None else named(mesh, spec, where._memory_kind)


jax_import_stubs.on_spec(check)
memory.on_clear(lambda: [cached.cache_clear() for cached in (_hlo_sharding, explicit_part, indices, local_places)])
