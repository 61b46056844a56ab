"""Meshes: devices in a grid whose axes have names, and grids without devices."""

from __future__ import annotations

import enum
import math
import operator
import os
import threading
import weakref
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from functorch_like.backends.xla import client
from functorch_like.backends.xla.configuration import current_mesh, programs_on_mesh
from functorch_like.backends.xla.jaxlib_api import xc
from functorch_like.errors import ArgumentError, DeviceError, UnsupportedError


class AxisType(enum.Enum):
    """Part that an axis of a mesh takes in splitting arrays.

    `Auto`: as specs and constraints say, and otherwise as XLA chooses. `Explicit`: as the types of values say, which
    follow from those of the operands. `Manual`: inside of `shard_map`, where each device sees its part.
    """

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


def _types(axis_types: Any, names: tuple[str, ...]) -> tuple[AxisType, ...]:
    """Return the type of each axis; None stands for Auto.

    Raises:
        ArgumentError: for anything but an AxisType for each axis.
        UnsupportedError: for Manual.
    """
    if axis_types is None:
        return (AxisType.Auto,) * len(names)
    each = (axis_types,) * len(names) if isinstance(axis_types, AxisType) else tuple(axis_types)
    if len(each) != len(names) or not all(isinstance(t, AxisType) for t in each):
        raise ArgumentError(
            f"axis_types is {axis_types!r:.80} for the axes {names}", fix="give one AxisType for each axis, or None"
        )
    if AxisType.Manual in each:
        raise UnsupportedError("an axis of a mesh cannot be Manual by itself", fix="use ft.shard_map(..., axis_names=)")
    return each


class AbstractMesh:
    """Names and sizes of the axes of a mesh, without devices: enough to trace a function.

    Args:
        axis_sizes: the size of each axis.
        axis_names: their names.
        axis_types: the type of each axis, or one for all; None for `AxisType.Auto`.

    Raises:
        ArgumentError: where these do not fit each other.
        UnsupportedError: for Manual axes.

    >>> from functorch_like.sharding import AbstractMesh
    >>> AbstractMesh((4, 2), ("data", "model")).size
    8
    """

    __slots__ = ("__weakref__", "axis_names", "axis_sizes", "axis_types", "explicit_axes", "shape", "size")
    axis_names: tuple[str, ...]
    axis_sizes: tuple[int, ...]
    axis_types: tuple[AxisType, ...]
    #: The names of the axes of type `AxisType.Explicit`.
    explicit_axes: tuple[str, ...]
    shape: Mapping[str, int]
    size: int

    def __init__(self, axis_sizes: Sequence[int], axis_names: Sequence[str], axis_types: Any = None) -> None:
        names = _names(axis_names)
        self._describe(tuple(int(n) for n in axis_sizes), names, _types(axis_types, names))

    def _describe(self, sizes: tuple[int, ...], axis_names: tuple[str, ...], types: tuple[AxisType, ...]) -> None:
        if len(sizes) != len(axis_names):
            raise ArgumentError(
                f"a mesh of shape {sizes} has {len(sizes)} axes and {len(axis_names)} names: {axis_names}",
                fix="give one name for each axis",
            )
        self.axis_names, self.axis_sizes, self.axis_types = axis_names, sizes, types
        self.explicit_axes = self._of_type(AxisType.Explicit)
        self.shape = MappingProxyType(dict(zip(axis_names, sizes, strict=True)))
        self.size = math.prod(sizes)

    @property
    def _internal_device_list(self) -> Any:
        """None; C++ reads this attribute of every mesh, before it calls Python to check the spec."""
        client.default_device()  # from then on C++ has the function to call
        return None

    def _of_type(self, kind: AxisType) -> tuple[str, ...]:
        return tuple(name for name, t in zip(self.axis_names, self.axis_types, strict=True) if t is kind)

    @property
    def auto_axes(self) -> tuple[str, ...]:
        """The names of the axes of type `AxisType.Auto`."""
        return self._of_type(AxisType.Auto)

    @property
    def manual_axes(self) -> tuple[str, ...]:
        """The names of the axes of type `AxisType.Manual`: none."""
        return ()

    @property
    def are_all_axes_auto(self) -> bool:
        """True for a mesh that has axes, all of them Auto."""
        return not self.empty and not self.explicit_axes

    @property
    def are_all_axes_explicit(self) -> bool:
        """True for a mesh that has axes, all of them Explicit."""
        return not self.empty and len(self.explicit_axes) == len(self.axis_names)

    @property
    def are_all_axes_manual(self) -> bool:
        """False."""
        return False

    @property
    def are_all_axes_explicit_or_manual(self) -> bool:
        """Like `are_all_axes_explicit`."""
        return self.are_all_axes_explicit

    @property
    def empty(self) -> bool:
        """True for a mesh without axes."""
        return not self.axis_names

    @property
    def shape_tuple(self) -> tuple[tuple[str, int], ...]:
        """The name and the size of each axis."""
        return tuple(self.shape.items())

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The mesh without its devices."""
        return self

    def update(
        self,
        axis_sizes: Sequence[int] | None = None,
        axis_names: Sequence[str] | None = None,
        axis_types: AxisType | Sequence[AxisType] | None = None,
    ) -> AbstractMesh:
        """Return a mesh with other sizes, names or types.

        Args:
            axis_sizes: the size of each axis; as they are if None.
            axis_names: their names; as they are if None.
            axis_types: the type of each axis, or one for all; as they are if None.

        Raises:
            ArgumentError: where these do not fit each other.

        >>> from functorch_like.sharding import AbstractMesh
        >>> AbstractMesh((4, 2), ("data", "model")).update((8, 1))
        AbstractMesh('data': 8, 'model': 1)
        """
        sizes = self.axis_sizes if axis_sizes is None else axis_sizes
        names = self.axis_names if axis_names is None else _names(axis_names)
        return AbstractMesh(sizes, names, self._updated_types(names, axis_types))

    def _updated_types(self, names: tuple[str, ...], axis_types: Any) -> Any:
        return self.axis_types if axis_types is None and len(names) == len(self.axis_names) else axis_types

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is AbstractMesh
            and self.axis_sizes == other.axis_sizes
            and self.axis_names == other.axis_names
            and self.axis_types == other.axis_types
        )

    def __hash__(self) -> int:
        return hash((self.axis_sizes, self.axis_names, self.explicit_axes))

    def __repr__(self) -> str:
        return f"AbstractMesh({_shown(self)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return AbstractMesh, (self.axis_sizes, self.axis_names, self.axis_types)


class Mesh(AbstractMesh):
    """Devices in a grid, whose axes have names that partition specs refer to.

    Meshes of equal devices, shape, names and types are one object. As a context manager, a mesh is the one that
    `lax.with_sharding_constraint` and `shard_map` use for specs that name none; see `ft.use_mesh`.

    Args:
        devices: a NumPy array or nested sequence of devices, as `ft.devices()` lists them.
        axis_names: a name for each dimension of it.
        axis_types: the type of each axis, or one for all; None for `AxisType.Auto`.

    Raises:
        UnsupportedError: for Manual axes.
        ArgumentError: for names that do not fit the dimensions, or a name given twice.
        DeviceError: for a device given twice, or devices of different platforms.

    >>> import functorch_like as ft
    >>> mesh = ft.sharding.Mesh(ft.devices()[:1], ("data",))
    >>> mesh.axis_names, mesh.size
    (('data',), 1)
    """

    __slots__ = ("_abstract", "_entered", "_list", "devices")
    devices: np.ndarray[Any, Any]
    _interned: ClassVar[weakref.WeakValueDictionary[Any, Mesh]] = weakref.WeakValueDictionary()

    def __new__(cls, devices: Any, axis_names: Sequence[str] | str, axis_types: Any = None) -> Mesh:
        grid = _grid(devices)
        names = _names(axis_names)
        types = _types(axis_types, names)
        key = (tuple(grid.flat), grid.shape, names, types)
        mesh = cls._interned.get(key)
        if mesh is None:
            made = object.__new__(cls)
            made._describe(grid.shape, names, types)
            made._abstract = AbstractMesh(grid.shape, names, types)
            _check_devices(key[0])
            grid.flags.writeable = False
            made.devices, made._entered = grid, threading.local()
            made._list = xc.DeviceList(key[0])
            mesh = cls._interned.setdefault(key, made)
        return mesh

    def __init__(self, devices: Any, axis_names: Sequence[str] | str, axis_types: Any = None) -> None:
        pass  # `__new__` may return a mesh that is in use

    @property
    def _internal_device_list(self) -> Any:
        return self._list

    @property
    def client(self) -> Any:
        """jaxlib's client of the devices."""
        return self.devices.flat[0].client

    @property
    def platform(self) -> str:
        """The platform of the devices."""
        return self.devices.flat[0].platform

    @property
    def device_ids(self) -> np.ndarray[Any, Any]:
        """The number of each device."""
        return np.array([device.id for device in self.devices.flat], int).reshape(self.devices.shape)

    @property
    def local_devices(self) -> list[Any]:
        """The devices that belong to this process."""
        return [device for device in self.devices.flat if device.process_index == device.client.process_index()]

    @property
    def local_mesh(self) -> Mesh:
        """The part of the mesh whose devices belong to this process, with the same axes.

        Raises:
            DeviceError: where the process has no devices of the mesh, or they form no block of it.

        >>> import functorch_like as ft
        >>> mesh = ft.make_mesh((1,), ("data",))
        >>> mesh.local_mesh is mesh
        True
        """
        grid = self.devices
        local = np.array([device.process_index == device.client.process_index() for device in grid.flat], bool)
        places = np.argwhere(local.reshape(grid.shape))
        if not len(places):
            raise DeviceError(f"no device of {self!r} belongs to this process", fix="use mesh.devices")
        block = tuple(slice(a, b + 1) for a, b in zip(places.min(0), places.max(0), strict=True))
        if grid[block].size != len(places):
            raise DeviceError(
                f"the {len(places)} devices of this process form no block of {self!r}",
                fix="put the devices of each process next to each other, in the order of ft.devices()",
            )
        return Mesh(grid[block], self.axis_names, self.axis_types)

    @property
    def is_multi_process(self) -> bool:
        """True if some devices belong to other processes."""
        return len(self.local_devices) != self.size

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """Names, sizes and types of the axes, without the devices."""
        return self._abstract

    def update(  # pyright: ignore[reportIncompatibleMethodOverride]  # as in JAX, of what each of them is made
        self,
        devices: np.ndarray[Any, Any] | Sequence[object] | None = None,
        axis_names: Sequence[str] | str | None = None,
        axis_types: AxisType | Sequence[AxisType] | None = None,
    ) -> Mesh:
        """Return a mesh with other devices, names or types.

        Args:
            devices: a NumPy array or nested sequence of devices; the same ones if None.
            axis_names: a name for each dimension of it; as they are if None.
            axis_types: the type of each axis, or one for all; as they are if None.

        Raises:
            ArgumentError: for names that do not fit the dimensions.

        >>> import functorch_like as ft
        >>> ft.make_mesh((1,), ("data",)).update(axis_names="batch")
        Mesh('batch': 1)
        """
        grid = self.devices if devices is None else devices
        names = self.axis_names if axis_names is None else _names(axis_names)
        return Mesh(grid, names, self._updated_types(names, axis_types))

    def __enter__(self) -> Mesh:
        tokens = self._entered.__dict__.setdefault("tokens", [])
        tokens.append(current_mesh.swap_local(self))
        return self

    def __exit__(self, *exception: object) -> None:
        current_mesh.restore(self._entered.tokens.pop())

    @property
    def is_entered(self) -> bool:
        """True if this thread is in a block `with mesh:`."""
        return bool(getattr(self._entered, "tokens", None))

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"Mesh({_shown(self)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Mesh, (self.devices, self.axis_names, self.axis_types)


def _shown(mesh: AbstractMesh) -> str:
    axes = ", ".join(f"{name!r}: {size}" for name, size in mesh.shape.items())
    return f"{axes}, axis_types={mesh.axis_types!r}" if mesh.explicit_axes else axes


def _names(axis_names: Any) -> tuple[str, ...]:
    names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
    for name in names:
        if not isinstance(name, str):
            raise ArgumentError(f"a mesh axis is named {name!r} of type {type(name).__name__}", fix="use strings")
    if len(set(names)) != len(names):
        raise ArgumentError(f"two axes of a mesh have one name: {names}", fix="give each axis a name of its own")
    return names


def _grid(devices: Any) -> np.ndarray[Any, Any]:
    if isinstance(devices, np.ndarray):
        return np.array(devices, object)
    if isinstance(devices, xc.Device):
        devices = [devices]
    listed = list(devices)
    shape: tuple[int, ...] = (len(listed),)
    while listed and isinstance(listed[0], (list, tuple)):
        shape = (*shape, len(listed[0]))
        listed = [device for row in listed for device in row]
    grid = np.empty(len(listed), object)
    grid[:] = listed
    if grid.size != math.prod(shape):
        raise ArgumentError(f"{grid.size} devices form no grid of shape {shape}", fix="give rows of one length")
    return grid.reshape(shape)


def _check_devices(devices: tuple[Any, ...]) -> None:
    if not devices:
        raise ArgumentError("a mesh has no devices", fix="give at least one: ft.devices()")
    for device in devices:
        if not isinstance(device, xc.Device):
            raise ArgumentError(
                f"{device!r:.60} of type {type(device).__name__} is not a device", fix="use ft.devices()"
            )
    if len(set(devices)) != len(devices):
        twice = next(device for device in devices if devices.count(device) > 1)
        raise DeviceError(f"{twice} is in a mesh twice", fix="place each device once")
    if len({device.client for device in devices}) > 1:
        raise DeviceError("a mesh has devices of different platforms", fix="use the devices of one: ft.devices('cpu')")


def make_mesh(
    axis_shapes: Sequence[int],
    axis_names: Sequence[str] | str,
    axis_types: Any = None,
    *,
    devices: Sequence[Any] | None = None,
) -> Mesh:
    """Return a mesh of the first devices there are: see `ft.make_mesh`."""
    there = list(client.devices() if devices is None else devices)
    try:
        sizes = [operator.index(n) for n in ((axis_shapes,) if isinstance(axis_shapes, int) else axis_shapes)]
    except TypeError:
        raise ArgumentError(
            f"axis_shapes of a mesh is {axis_shapes!r:.60} of type {type(axis_shapes).__name__}",
            fix="give the size of each axis: make_mesh((4, 2), ('data', 'model'))",
        ) from None
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = max(len(there) // math.prod(n for n in sizes if n != -1), 1)
    if any(n < 1 for n in sizes):
        raise ArgumentError(f"a mesh of shape {tuple(sizes)}", fix="use positive sizes, and -1 at most once")
    count = math.prod(sizes)
    if count > len(there):
        raise DeviceError(
            f"a mesh of shape {tuple(sizes)} takes {count} devices, and there are {len(there)}",
            fix=_more(there, count) if devices is None else "give more devices, or a smaller shape",
        )
    grid = np.empty(count, object)
    grid[:] = there[:count]
    return Mesh(grid.reshape(sizes), axis_names, axis_types)


def _more(there: Sequence[Any], count: int) -> str:
    if there[0].platform != "cpu":
        return "use a smaller mesh"
    present = os.environ.get("FT_CPU_DEVICES")
    note = f" (it is {present})" if present else ""
    return f"use a smaller mesh, or set the environment variable FT_CPU_DEVICES={count} before Python starts{note}"


def mesh_set() -> Mesh | None:
    """Return the mesh of `set_mesh`, or None. That of a block `with mesh:` is not one."""
    mesh = current_mesh.value
    return current_mesh.global_value if mesh is not None and mesh.is_entered else mesh


def default_mesh() -> Mesh | None:
    """Return the mesh that programs run on if no operand is bound to devices; None for the default device."""
    return mesh_set() if programs_on_mesh.value else None
