"""Arrays on several devices: made of parts, taken apart, copied to NumPy and to other devices."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from functorch_like.avals import ShapedArray
from functorch_like.backends.xla import arrays, client, counters, explicit_types, named_sharding, sharding
from functorch_like.backends.xla.jax_import_stubs import stubbed
from functorch_like.backends.xla.jaxlib_api import ArrayImpl, xc
from functorch_like.backends.xla.mesh import Mesh
from functorch_like.backends.xla.named_sharding import NamedSharding, SingleDeviceSharding
from functorch_like.errors import ArgumentError, DeviceError, DtypeError, ShapeError

_make = xc.batched_device_put


class Shard(NamedTuple):
    """The part of an array that one device has.

    Attributes:
        device: the device.
        index: the place of the part in the whole array, as a tuple of slices.
        replica_id: number of this copy among those of the same part.
        data: the part as an array on that device; None where it belongs to another process.
    """

    device: Any
    index: tuple[slice, ...]
    replica_id: int
    data: Any


# -------------------------------------------------------------------------------------------------------------- making
def check_concrete(where: Any) -> None:
    """Refuse a sharding on a mesh without devices.

    Raises:
        ArgumentError: for an AbstractMesh, or a spec that leaves dimensions to the compiler.
    """
    if type(where) is not NamedSharding:
        raise ArgumentError(
            f"{where!r:.60} of type {type(where).__name__} is not a sharding", fix="use NamedSharding(mesh, spec)"
        )
    if not isinstance(where.mesh, Mesh):
        raise ArgumentError(f"{where!r} has no devices", fix="use a Mesh: ft.make_mesh(...)")
    if named_sharding.UNCONSTRAINED in tuple(where.spec):
        raise ArgumentError(
            f"{where.spec!r} leaves a dimension to the compiler, and arrays need every dimension",
            fix="use None or an axis; UNCONSTRAINED is for lax.with_sharding_constraint",
        )


def place(x: np.ndarray[Any, Any], where: Any, weak_type: bool) -> Any:
    """Copy a NumPy array to the devices of a sharding."""
    if type(where) is SingleDeviceSharding:
        return arrays.device_put(x, where, weak_type=weak_type)
    check_concrete(where)
    named_sharding.check_divides(where, x.shape, f"{ShapedArray(x.shape, x.dtype)!r}")
    return put(x, where, weak_type=weak_type)


def put(x: np.ndarray[Any, Any], where: Any, *, weak_type: bool = False) -> Any:
    """Copy a NumPy array to the devices of a sharding, to each its part."""
    aval = explicit_types.typed(ShapedArray(x.shape, x.dtype, weak_type), where)
    check_concrete(where)
    # TRAP: under the semantics used here, nothing else may write to the memory, so each part is a copy. Under any other
    # semantics, C++ refuses views that share one data pointer.
    return _assemble(aval, where, lambda index: np.array(x[index], order="C"))


def from_callback(aval: ShapedArray, where: Any, part: Callable[[tuple[slice, ...]], Any]) -> Any:
    """Make an array of the parts that a function returns for their indices, for the devices of this process."""
    check_concrete(where)
    aval = explicit_types.typed(aval, where)
    shape = named_sharding.shard_shape(where, aval.shape)
    made: dict[Any, np.ndarray[Any, Any]] = {}

    def cut(index: tuple[slice, ...]) -> np.ndarray[Any, Any]:
        key = tuple((s.start, s.stop) for s in index)
        if key not in made:
            made[key] = np.asarray(part(index))
        check_part(made[key], aval.update(shape=shape), index)
        return np.array(made[key], order="C")

    return _assemble(aval, where, cut)


def check_part(part: np.ndarray[Any, Any], expected: ShapedArray, index: tuple[slice, ...]) -> None:
    """Raise ShapeError for a part of another shape or dtype than its index selects."""
    if part.shape != expected.shape or part.dtype != expected.dtype:
        shape = list(expected.shape)
        raise ShapeError(
            f"the part {_shown(index)} is {part.dtype}{list(part.shape)}, expected {expected.dtype}{shape}",
            fix="return the part of the global array that the index selects",
        )


def _assemble(aval: ShapedArray, where: Any, cut: Callable[[tuple[slice, ...]], np.ndarray[Any, Any]]) -> Any:
    client.check_not_forked()
    devices, indices = named_sharding.local_places(where, aval.shape)
    counters.host_to_device += 1
    return _make(aval, where, [cut(index) for index in indices], list(devices), True)


def from_single_device_arrays(aval: ShapedArray, where: Any, parts: Sequence[Any]) -> Any:
    """Make an array of arrays that are on the devices of a sharding already; nothing is copied."""
    single = type(where) is SingleDeviceSharding
    if not single:
        check_concrete(where)
    shape, aval = where.shard_shape(aval.shape), explicit_types.typed(aval, where)
    by_device: dict[Any, Any] = {}
    for x in parts:
        if type(x) is not ArrayImpl or type(x._sharding) is not SingleDeviceSharding:
            raise ArgumentError(
                f"a part is {x!r:.60} of type {type(x).__name__}", fix="give arrays that are on one device each"
            )
        if x.aval.shape != shape or x.aval.dtype != aval.dtype:
            raise ShapeError(
                f"a part is {x.aval!r}, expected {aval.update(shape=shape)!r} of {aval!r}",
                fix="parts have the shape that sharding.shard_shape(shape) returns",
            )
        arrays.check_alive(x)
        by_device[arrays.device_of(x)] = x
    targets = [where._device] if single else where.mesh.local_devices
    if len(parts) != len(targets) or set(by_device) != set(targets):
        devices = f"the device of {where!r}" if single else f"the {len(targets)} devices of {where.mesh!r}"
        raise ArgumentError(
            f"parts are on {', '.join(sorted(map(str, by_device)))} ({len(parts)} in all), for {devices}",
            fix="give one array on each of its devices",
        )
    if single:
        return ArrayImpl(aval, where, list(parts), committed=True, _skip_checks=True)
    with stubbed:
        return _make(aval, where, [by_device[device] for device in targets], targets, True)


def _shown(index: tuple[slice, ...]) -> str:
    text = ", ".join(":" if s == slice(None) else f"{s.start}:{s.stop}" for s in index)
    return f"[{text}]"


# --------------------------------------------------------------------------------------------------------- taking apart
def local_parts(x: Any) -> list[Any]:
    """Return the parts of an array in this process, as arrays on one device each, in the order of the mesh."""
    arrays.check_alive(x)
    if type(x._sharding) is SingleDeviceSharding:
        return [x]
    with stubbed:
        parts = list(x._arrays)
    if parts[0] is not x:
        return parts
    (device,) = x._sharding.mesh.local_devices
    place = sharding.single_in(device, x._sharding.memory_kind)
    return [ArrayImpl(x.aval.split(None), place, parts, committed=True, _skip_checks=True)]


def global_shards(x: Any) -> list[Shard]:
    """All parts of an array; those of other processes without data."""
    where, shape = x._sharding, x.aval.shape
    if type(where) is SingleDeviceSharding:
        arrays.check_alive(x)
        return [Shard(where._device, (slice(None),) * len(shape), 0, x)]
    data = dict(zip(where.mesh.local_devices, local_parts(x), strict=True))
    seen: dict[Any, int] = {}
    shards: list[Shard] = []
    for device, index in zip(where.mesh.devices.flat, named_sharding.indices(where, shape), strict=True):
        key = tuple((s.start, s.stop) for s in index)
        copy = seen[key] = seen.get(key, -1) + 1
        shards.append(Shard(device, index, copy, data.get(device)))
    return shards


def values_are_here(x: Any) -> bool:
    """Return True if this process has every part of an array on several devices, or all of it on one."""
    where = x._sharding
    return where.is_fully_addressable or (where.is_fully_replicated and where.has_addressable_devices)


def gather(x: Any) -> np.ndarray[Any, Any]:
    """The values of an array on several devices, which must have been computed; read-only.

    Raises:
        DeviceError: where parts of it belong to other processes, and no process has all of it.
    """
    where = x._sharding
    if not values_are_here(x):
        raise DeviceError(
            f"{x.aval!r} has parts in other processes",
            fix="read x.addressable_shards, or replicate it first: ft.device_put(x, NamedSharding(mesh, P()))",
        )
    if where.is_fully_replicated:
        return arrays.to_numpy(local_parts(x)[0])
    out = np.empty(x.aval.shape, x.aval.dtype)
    for shard in global_shards(x):
        if shard.replica_id == 0 and out.size:  # XLA does not split arrays without elements
            out[shard.index] = arrays.to_numpy(shard.data)
    out.flags.writeable = False
    return out


# -------------------------------------------------------------------------------------------------------------- moving
def move(x: Any, place: Any, weak_type: bool) -> Any:
    """Move an array to a device or sharding, and commit it there."""
    arrays.check_alive(x)
    aval = ShapedArray(x.aval.shape, x.aval.dtype, x.aval.weak_type or weak_type)
    where = place if isinstance(place, named_sharding.Sharding) else sharding.single(place)
    if type(where) is not SingleDeviceSharding:
        check_concrete(where)
        named_sharding.check_divides(where, aval.shape, f"{aval!r}")
        aval = explicit_types.typed(aval, where)
    same = type(where) is type(x._sharding) and named_sharding.is_equivalent_to(where, x._sharding, aval.ndim)
    if same and x._committed:
        if type(where) is NamedSharding and where.mesh.axis_types != x._sharding.mesh.axis_types:
            return ArrayImpl(aval, where, local_parts(x), committed=True, _skip_checks=True)
        if aval is x.aval:
            return x
    if type(where) is NamedSharding and type(x._sharding) is NamedSharding:
        if where.memory_kind != x._sharding.memory_kind:
            return _changed_kind(x, where)
        if where.mesh._internal_device_list == x._sharding.mesh._internal_device_list:
            from functorch_like.backends.xla import resharding  # compiles a program

            return resharding.reshard(x, where)
    if type(where) is type(x._sharding) is SingleDeviceSharding and where._device == x._sharding._device:
        return _copied(x, aval, where)
    counters.device_to_device += 1
    values = arrays.to_numpy(x)
    if type(where) is SingleDeviceSharding:
        made = arrays.device_put(values, where._device, weak_type=aval.weak_type)
        return made if sharding.is_usual(where) else _copied(made, aval, where)
    return put(values, where, weak_type=aval.weak_type)


def _copied(x: Any, aval: ShapedArray, where: Any) -> Any:
    """An array on one device, in that device's memory of another kind."""
    made = _put_where(x, where)
    return ArrayImpl(aval, where, [made], committed=True, _skip_checks=True)


def _put_where(x: Any, where: Any) -> Any:
    counters.device_to_device += 1
    with stubbed:
        return xc.batched_copy_array_to_devices_with_sharding(
            [x], [where._internal_device_list], [where], [xc.ArrayCopySemantics.ALWAYS_COPY]
        )[0]


def _changed_kind(x: Any, where: Any) -> Any:
    """An array in memory of another kind. TRAP: C++ moves parts as they are, and ignores the spec."""
    if not named_sharding.is_equivalent_to(x._sharding, where.with_memory_kind(x._sharding.memory_kind), x.aval.ndim):
        x = move(x, where.with_memory_kind(x._sharding.memory_kind), False)
    return _put_where(x, where)


def bring(x: Any, where: Any) -> Any:
    """Return an argument of a compiled function on the devices on which the program takes it.

    Raises:
        DeviceError: for an array that is bound to another place.
    """
    if type(x) is ArrayImpl:
        if named_sharding.is_equivalent_to(x._sharding, where, x.aval.ndim):
            return x
        if x._committed and where.num_devices == 1 and arrays.devices_of(x) == where.device_set:
            return move(x, where, False)  # in other memory of the device
        if x._committed:
            raise DeviceError(
                f"an argument {x.aval!r} is bound to {x._sharding!r}, and the program takes it on {where!r}",
                fix="move it with ft.device_put(x, sharding)",
            )
        return move(x, where, False)
    host = np.asarray(x)
    if not host.dtype.isnative:
        raise DtypeError(
            f"a NumPy array of shape {host.shape} and dtype {host.dtype.str!r} has its bytes in the other order",
            fix='convert it with x.astype(x.dtype.newbyteorder("=")), or by fnp.asarray(x)',
        )
    return put(host, where)


#: Properties of arrays about their sharding, by name.
PROPERTIES: dict[str, Callable[[Any], Any]] = {
    "sharding": lambda x: x._sharding,
    "addressable_shards": lambda x: [shard for shard in global_shards(x) if shard.data is not None],
    "global_shards": global_shards,
    "is_fully_replicated": lambda x: x._sharding.is_fully_replicated,
    "committed": lambda x: x._committed,
    "is_fully_addressable": lambda x: x._sharding.is_fully_addressable,
}
arrays.on_several_devices(sys.modules[__name__])  # type: ignore[arg-type]
