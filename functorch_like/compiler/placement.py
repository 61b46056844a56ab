"""Placement of a program: one device, or a mesh with a sharding for each argument and result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from functorch_like.avals import ShapedArray, ShapeDtypeStruct
from functorch_like.backends import xla
from functorch_like.backends.xla.configuration import current_mesh
from functorch_like.backends.xla.mesh import default_mesh
from functorch_like.core import ArrayImpl, aval_of
from functorch_like.errors import DeviceError
from functorch_like.ir.jaxpr import Jaxpr, inner_jaxprs

OneDevice = xla.OneDevice


def device_for(args: Sequence[Any]) -> Any:
    """Return the device of the first committed operand, else the default one.

    If that operand is on several devices, or a mesh is the default, return a `Partitioning` of all operands.
    """
    for a in args:
        where = _bound_to(a)
        if where is not None:
            return where._device if type(where) is OneDevice else split_of(args, where.mesh)
    mesh = default_mesh()
    return xla.default_device() if mesh is None else split_of(args, mesh)


def split_of(args: Sequence[Any], mesh: Any, ins: Sequence[Any] = (), outs: Any = None) -> Any:
    """Return a `Partitioning` on a mesh. Committed operands keep their shardings; XLA chooses those of others.

    Args:
        args: the operands.
        mesh: the mesh.
        ins: a sharding for each operand, or None; () if there are none.
        outs: shardings of the results.

    Raises:
        DeviceError: for an operand that is committed to other devices.
    """
    from functorch_like.backends.xla.partitioning import Partitioning

    chosen = list(ins) or [None] * len(args)
    split = [_sharding_of(a, mesh) if s is None else s for a, s in zip(args, chosen, strict=True)]
    return Partitioning(mesh, tuple(split), outs)


def _sharding_of(a: Any, mesh: Any) -> Any:
    where = _bound_to(a)
    if where is not None and type(where) is not OneDevice and where.mesh is mesh:
        return where  # the usual case, first: calls through Python run this each time
    from functorch_like.backends.xla import named_sharding
    from functorch_like.backends.xla.partition_spec import PartitionSpec

    aval = a if isinstance(a, ShapedArray) else a.aval if isinstance(a, ShapeDtypeStruct) else aval_of(a)
    if where is None:
        return None if aval.ndim else named_sharding.named(mesh, PartitionSpec())
    if type(where) is not OneDevice:
        result = named_sharding.on_mesh(where, mesh, aval.ndim)
    else:  # a mesh of one device is equivalent to the device
        result = named_sharding.named(mesh, PartitionSpec()) if list(mesh.devices.flat) == [where._device] else None
    if result is None:
        raise DeviceError(
            f"one operand is on {mesh!r}, and another, {aval!r}, is bound to {where!r}, which has "
            f"{_difference(mesh._internal_device_list, where._internal_device_list)}",
            fix="move one of them: ft.device_put(x, sharding)",
        )
    return result


def _difference(first: Sequence[Any], second: Sequence[Any]) -> str:
    """Return a text for an error about the difference of two lists of devices."""
    if set(first) == set(second):
        return "the same devices in another order"
    return f"other devices: {_shown(second)} instead of {_shown(first)}"


def _shown(devices: Sequence[Any]) -> str:
    names = [str(device) for device in devices]
    return ", ".join(names if len(names) <= 4 else [*names[:2], "...", names[-1]])


def _bound_to(a: Any) -> Any:
    """Return the sharding of a committed operand; None if the operand may be moved."""
    if type(a) is ArrayImpl:
        return a._sharding if a._committed else None
    return _concrete(a.sharding) if type(a) is ShapeDtypeStruct and a.sharding is not None else None


def _concrete(where: Any) -> Any:
    """Return a sharding on an abstract mesh as one on the mesh in force, if that has its axes; else None."""
    mesh = getattr(where, "mesh", None)
    if mesh is None or hasattr(mesh, "devices"):
        return where
    current = current_mesh.value
    fits = current is not None and current.abstract_mesh == mesh
    return where.update(mesh=current) if fits else None


def settle(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any], place: Any) -> Any:
    """Return the `Partitioning` of a program with its constants; None if it runs on one device.

    A program whose arguments are on one device runs on a mesh if its constants are on one, or its equations name one.

    Args:
        jaxpr: its first inputs are `consts`, the others the arguments.
        consts: arrays.
        args: the arguments.
        place: a device, or the `Partitioning` of the arguments.

    Raises:
        DeviceError: for arrays committed to other devices.
    """
    named = meshes_in(jaxpr)
    if type(place) is not xla.Device:
        before = split_of(consts, place.mesh)
        result = before._replace(ins=before.ins + place.ins, outs=place.outs)
    else:
        meshes = (c._sharding.mesh for c in consts if type(c) is ArrayImpl and type(c._sharding) is not OneDevice)
        mesh = next(meshes, None) or next(iter(named), None)
        if mesh is None:
            return None
        result = split_of([*consts, *args], mesh)
    for mesh in named:
        if mesh._internal_device_list != result.mesh._internal_device_list:
            raise DeviceError(
                f"the function runs on {result.mesh!r}, and inside of it {mesh!r} is named, which has "
                f"{_difference(result.mesh._internal_device_list, mesh._internal_device_list)}",
                fix="use one mesh, or meshes of the same devices in the same order",
            )
    return _as_types_say(result, jaxpr.out_avals) if result.mesh.explicit_axes else result


def _as_types_say(split: Any, out_avals: Sequence[ShapedArray]) -> Any:
    """Return the `Partitioning` with the shardings of results that their types give."""
    from functorch_like.backends.xla.explicit_types import required

    chosen = split.outs or (None,) * len(out_avals)
    outs = tuple(required(where, aval, split.mesh) for where, aval in zip(chosen, out_avals, strict=True))
    return split._replace(outs=outs)


def meshes_in(jaxpr: Jaxpr) -> list[Any]:
    """Return the meshes with devices that equations name, each once."""
    return jaxpr.memo("meshes", lambda: list(dict.fromkeys(_named(jaxpr))))


def _named(jaxpr: Jaxpr) -> Iterator[Any]:
    for e in jaxpr.equations:
        params = e.params
        if not params or (e.signature is not None and e.signature.plain):
            continue
        if "mesh" in params and hasattr(params["mesh"], "devices"):
            yield params["mesh"]
        for inner in inner_jaxprs(params):
            yield from meshes_in(inner)


def physical_dtype(x: Any) -> np.dtype[Any] | None:
    """Return the dtype in which C++ passes a Python number (64 bits wide); None if it is the aval's."""
    kind = type(x)
    if kind is ArrayImpl or kind is np.ndarray or isinstance(x, np.generic) or kind is ShapeDtypeStruct:
        return None
    return np.asarray(x).dtype
