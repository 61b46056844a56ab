"""Devices, and moving pytrees of arrays to and from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes, tree
from functorch_like.backends import xla
from functorch_like.backends.xla import client, processes
from functorch_like.backends.xla.memory_space import MemorySpace
from functorch_like.calling import api_boundary
from functorch_like.calling.type_variables import T
from functorch_like.core import ArrayImpl, Tracer, aval_of, native
from functorch_like.ir import dtype_origins, trace_constants
from functorch_like.primitives.structural import copy

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import Block, PyTree


#: Type of a device, as `devices` lists them; for annotations and `isinstance`.
Device = client.Device


@api_boundary.public
def devices(backend: str | None = None) -> list[Device]:
    """The devices of a platform.

    Args:
        backend: "cpu" or "gpu"; the default platform if None.

    Returns:
        A list of devices, in the order of their ids.

    Raises:
        DeviceError: where there is no such platform; the error lists the platforms that exist.

    >>> import functorch_like as ft
    >>> ft.devices("cpu")[0].platform
    'cpu'
    """
    return xla.devices(backend)


@api_boundary.public
def device_count(backend: str | None = None) -> int:
    """Return the number of devices of a platform.

    Args:
        backend: "cpu" or "gpu"; the default platform if None.

    Returns:
        An int.

    Raises:
        DeviceError: where there is no such platform.

    >>> import functorch_like as ft
    >>> ft.device_count() == len(ft.devices())
    True
    """
    return len(xla.devices(backend))


@api_boundary.public
def local_devices(backend: str | None = None) -> list[Device]:
    """The devices of a platform that belong to this process: all of them, where there is one process.

    Args:
        backend: "cpu" or "gpu"; the default platform if None.

    Returns:
        A list of devices.

    Raises:
        DeviceError: where there is no such platform.

    >>> import functorch_like as ft
    >>> ft.local_devices() == [d for d in ft.devices() if d.process_index == ft.process_index()]
    True
    """
    return xla.local_devices(backend)


@api_boundary.public
def local_device_count(backend: str | None = None) -> int:
    """Return the number of devices of a platform that belong to this process.

    Args:
        backend: "cpu" or "gpu"; the default platform if None.

    Returns:
        An int.

    Raises:
        DeviceError: where there is no such platform.

    >>> import functorch_like as ft
    >>> ft.local_device_count() == len(ft.local_devices())
    True
    """
    return len(xla.local_devices(backend))


@api_boundary.public
def process_index(backend: str | None = None) -> int:
    """The number of this process among those that compute together; 0 where it is alone.

    Args:
        backend: "cpu" or "gpu"; the default platform if None.

    Returns:
        An int.

    Raises:
        DeviceError: where there is no such platform.

    >>> import functorch_like as ft
    >>> 0 <= ft.process_index() < ft.process_count()
    True
    """
    return xla.devices(backend)[0].client.process_index()


@api_boundary.public
def process_count(backend: str | None = None) -> int:
    """Return the number of processes that compute together; 1 if this one is alone.

    Args:
        backend: "cpu" or "gpu"; the default platform if None.

    Returns:
        An int.

    Raises:
        DeviceError: where there is no such platform.

    >>> import functorch_like as ft
    >>> ft.process_count()
    1
    """
    return 1 + max(device.process_index for device in xla.devices(backend))


@api_boundary.public
def live_arrays(platform: str | None = None) -> list[Array]:
    """All arrays that have memory on the devices of a platform.

    Args:
        platform: "cpu" or "gpu"; the default one if None.

    Returns:
        A list of arrays.

    Raises:
        DeviceError: where there is no such platform.

    >>> import functorch_like as ft
    >>> x = ft.numpy.ones(3)
    >>> any(x is y for y in ft.live_arrays())
    True
    """
    places = xla.devices(platform)
    alive = [x for x in client.live_arrays() if type(x) is ArrayImpl and not xla.is_deleted(x)]
    return [x for x in alive if not xla.devices_of(x).isdisjoint(places)]


@api_boundary.public
def set_default_device(device: Device | str | None) -> None:
    """Set the device, in every thread, of arrays and computations for which none is named.

    Args:
        device: as `devices()` lists it, or "cpu", "gpu", "cpu:1"; None for the first there is.

    Raises:
        DeviceError: for a device that is not there.

    >>> import functorch_like as ft
    >>> ft.set_default_device("cpu"); ft.numpy.ones(2).device.platform
    'cpu'
    >>> ft.set_default_device(None)
    """
    client.chosen.set_global(_found(device))


def default_device(device: Device | str | None) -> Block:
    """Make arrays and run computations on a device, in this thread: a context manager, or a decorator.

    Arrays that were put on a device by `device_put(x, device)` stay there, and so do computations with them. Jitted
    functions are compiled once for each device.

    Args:
        device: as `devices()` lists it, or "cpu", "gpu", "cpu:1"; None for the first there is.

    Returns:
        A context manager, and a decorator.

    Raises:
        DeviceError: for a device that is not there.

    >>> import functorch_like as ft
    >>> with ft.default_device("cpu"):
    ...     ft.numpy.ones(2).device.platform
    'cpu'
    """
    return client.chosen.held(_found(device))


def _found(device: Any) -> Any:
    return None if device is None else xla.find_device(device)


def default_backend() -> str:
    """The platform that computations run on by default: "gpu" where there is one, else "cpu". (Not `default_device`'s.)

    Returns:
        "cpu" or "gpu".

    >>> import functorch_like as ft
    >>> ft.default_backend() in ("cpu", "gpu")
    True
    """
    return xla.default_backend()


@api_boundary.public
def device_put(
    x: T, device: PyTree = None, *, src: PyTree = None, donate: PyTree = False, may_alias: bool | None = None
) -> T:
    """Copy a pytree of arrays to a device, or to the devices of a sharding.

    Args:
        x: arrays, NumPy arrays and numbers. NumPy memory may be changed afterwards: it has been copied.
        device: a device, or its name ("cpu", "gpu", "cpu:0"). An array put on a named device stays there, and
            computations with it run there; with None the array is on the default device but free to be moved.
            Or a sharding, which splits it over several devices; a PartitionSpec, within `use_mesh`; or a prefix pytree
            of these. A `sharding.MemorySpace` leaves an array on its devices, in another kind of memory. Inside of a
            jitted function shardings are constraints, and devices have no effect; on GPUs XLA keeps a value in the
            memory whose kind a sharding names, and brings it back where one names "device".
        src: ignored: where an array is from is known.
        donate: ignored: the arrays that are copied stay.
        may_alias: ignored: an array that already is where it should be is returned as it is.

    Returns:
        The pytree with `Array` leaves.

    Raises:
        DeviceError: where there is no such device; the error lists the platforms that exist.
        ShapeError: where a sharding does not divide a dimension.
        DistributedError: where a sharding is over several processes, and these give different values.

    >>> import functorch_like as ft, numpy as np
    >>> ft.device_put({"w": np.ones(2)}, "cpu")["w"].dtype
    dtype('float64')
    """
    leaves, structure = xla.flatten(x)
    if device is None or isinstance(device, (str, Device)):
        places = [None if device is None else xla.find_device(device)] * len(leaves)
    else:
        places = _places(device, x)
        if processes.membership() is not None:
            _check_same(leaves, places)
    return structure.unflatten([_put(leaf, place) for leaf, place in zip(leaves, places, strict=True)])


def _check_same(leaves: Sequence[Any], places: Sequence[Any]) -> None:
    """Raise where values differ between processes: each puts its own part of one array on its devices.

    All processes of a mesh meet here, at each call.
    """
    from functorch_like.backends.xla.digest import digest
    from functorch_like.backends.xla.mesh import Mesh

    spread: dict[Mesh, tuple[list[str], Any]] = {}
    for leaf, place in zip(leaves, places, strict=True):
        mesh = getattr(place, "mesh", None)
        if not isinstance(mesh, Mesh) or not processes.spanned(mesh) or isinstance(leaf, Tracer):
            continue
        if type(leaf) is ArrayImpl and not leaf.sharding.is_fully_addressable:
            continue  # it is one array already
        aval = aval_of(leaf)
        shown, hashed = spread.setdefault(mesh, ([], digest()))
        shown.append(repr(aval))
        hashed.update(repr(aval).encode())
        hashed.update(np.asarray(leaf, aval.dtype).tobytes())
    for mesh, (shown, hashed) in spread.items():
        processes.compare(
            "the values of device_put",
            f"{', '.join(shown[:3])}{', ...' if len(shown) > 3 else ''} with hash {hashed.hexdigest()[:16]}",
            mesh,
            "give every process the same values, e.g. by multihost_utils.broadcast_one_to_all; or each process its own "
            "part: ft.make_array_from_process_local_data(sharding, part)",
            once=False,
        )


def _places(places: Any, x: Any) -> list[Any]:
    """Return a device or sharding for each leaf, from a prefix pytree of them."""
    from functorch_like.backends.xla import named_sharding

    def one(place: Any) -> Any:
        if place is None or isinstance(place, (str, Device)):
            return None if place is None else xla.find_device(place)
        if isinstance(place, MemorySpace):
            return place
        return named_sharding.from_user(place, "the place of device_put")

    return [one(place) for place in tree.broadcast_prefix(places, x, "places of device_put")]


def _put(leaf: Any, device: Any) -> Any:
    if isinstance(leaf, np.ndarray) and (not leaf.dtype.isnative or dtypes.is_narrowed(leaf)):
        leaf = native(leaf)
    aval = aval_of(leaf)
    if type(device) is MemorySpace:
        from functorch_like.sharding import constraints  # few programs have other memory

        return constraints.to_space(leaf, device)
    if isinstance(leaf, Tracer):
        if device is not None and not isinstance(device, Device):
            from functorch_like.sharding import constraints  # few programs have meshes

            return constraints.constrain(constraints.to_memory(leaf, device), device)
        return copy(leaf)  # XLA decides on placement inside a traced program
    if isinstance(leaf, (np.ndarray, np.generic)):
        return dtype_origins.made(trace_constants.array_of(np.asarray(leaf, aval.dtype), device))
    if type(leaf) is ArrayImpl:
        return xla.device_put(leaf, device, weak_type=aval.weak_type)
    return trace_constants.array_of(np.asarray(leaf, aval.dtype), device, weak_type=aval.weak_type)


@api_boundary.public
def device_get(x: PyTree) -> PyTree:
    """Copy a pytree of arrays to the host.

    Args:
        x: arrays; leaves that are not arrays pass through.

    Returns:
        The pytree with NumPy arrays, which are read-only views where the device is the host.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> ft.device_get([fnp.arange(3)])
    [array([0, 1, 2], dtype=int32)]
    """
    leaves, tree = xla.flatten(x)
    return tree.unflatten([np.asarray(leaf) if isinstance(leaf, (ArrayImpl, Tracer)) else leaf for leaf in leaves])


@api_boundary.public
def block_until_ready(x: T) -> T:
    """Wait until every array of a pytree is computed, and return the pytree.

    Args:
        x: a pytree; leaves that are not arrays pass through.

    Returns:
        x.

    Raises:
        CompileError: where the computation of an array failed.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> ft.block_until_ready(fnp.ones(2)).tolist()
    [1.0, 1.0]
    """
    for leaf in xla.flatten(x)[0]:
        if type(leaf) is ArrayImpl:
            xla.block_until_ready(leaf)
    return x
