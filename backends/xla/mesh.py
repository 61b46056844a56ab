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
from functorch_like.backends.xla.configuration import current_mesh
from functorch_like.backends.xla.jaxlib_api import xc
from functorch_like.errors import ArgumentError, DeviceError, UnsupportedError


class AxisType(enum.Enum):
    """Use of an axis of a mesh: `Auto` axes split arrays as XLA and specs choose."""

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()


def _check_types(axis_types: Any, names: tuple[str, ...]) -> None:
    """Refuse types of axes other than Auto.

    Raises:
        ArgumentError: for anything but an AxisType for each axis.
        UnsupportedError: for Explicit and Manual.
    """
    if axis_types is None:
        return
    each = (axis_types,) * len(names) if isinstance(axis_types, AxisType) else tuple(axis_types)
    if len(each) != len(names) or not all(isinstance(t, AxisType) for t in each):
        raise ArgumentError(
            f"axis_types is {axis_types!r:.80} for the axes {names}", fix="give one AxisType for each axis, or None"
        )
    other = next((t for t in each if t is not AxisType.Auto), None)
    if other is AxisType.Manual:
        raise UnsupportedError("an axis of a mesh cannot be Manual by itself", fix="use ft.shard_map(..., axis_names=)")
    if other is not None:
        raise UnsupportedError(
            "axes of a mesh are Auto here: types of values do not say how they are split, as they do for Explicit axes",
            fix="use AxisType.Auto, with in_shardings, out_shardings and lax.with_sharding_constraint",
        )


class AbstractMesh:
    """Names and sizes of the axes of a mesh, without devices: enough to trace a function.

    Args:
        axis_sizes: the size of each axis.
        axis_names: their names.
        axis_types: `AxisType.Auto` for each axis, or None.

    Raises:
        ArgumentError: where these do not fit each other.
        UnsupportedError: for axes of other types.

    >>> from functorch_like.sharding import AbstractMesh
    >>> AbstractMesh((4, 2), ("data", "model")).size
    8
    """

    __slots__ = ("__weakref__", "axis_names", "axis_sizes", "shape", "size")
    axis_names: tuple[str, ...]
    axis_sizes: tuple[int, ...]
    shape: Mapping[str, int]
    size: int

    def __init__(self, axis_sizes: Sequence[int], axis_names: Sequence[str], axis_types: Any = None) -> None:
        self._describe(tuple(int(n) for n in axis_sizes), _names(axis_names))
        _check_types(axis_types, self.axis_names)

    def _describe(self, sizes: tuple[int, ...], axis_names: tuple[str, ...]) -> None:
        if len(sizes) != len(axis_names):
            raise ArgumentError(
                f"a mesh of shape {sizes} has {len(sizes)} axes and {len(axis_names)} names: {axis_names}",
                fix="give one name for each axis",
            )
        self.axis_names, self.axis_sizes = axis_names, sizes
        self.shape = MappingProxyType(dict(zip(axis_names, sizes, strict=True)))
        self.size = math.prod(sizes)

    @property
    def _internal_device_list(self) -> Any:
        """None; C++ reads this attribute of every mesh, before it calls Python to check the spec."""
        client.default_device()  # from then on C++ has the function to call
        return None

    @property
    def axis_types(self) -> tuple[AxisType, ...]:
        """`AxisType.Auto` for each axis."""
        return (AxisType.Auto,) * len(self.axis_names)

    @property
    def auto_axes(self) -> tuple[str, ...]:
        """The names of the axes of type `AxisType.Auto`: all of them."""
        return self.axis_names

    @property
    def explicit_axes(self) -> tuple[str, ...]:
        """The names of the axes of type `AxisType.Explicit`: none."""
        return ()

    @property
    def manual_axes(self) -> tuple[str, ...]:
        """The names of the axes of type `AxisType.Manual`: none."""
        return ()

    @property
    def are_all_axes_auto(self) -> bool:
        """True for a mesh that has axes."""
        return not self.empty

    @property
    def are_all_axes_explicit(self) -> bool:
        """False."""
        return False

    @property
    def are_all_axes_manual(self) -> bool:
        """False."""
        return False

    @property
    def are_all_axes_explicit_or_manual(self) -> bool:
        """False."""
        return False

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
        """Return a mesh with other sizes or names.

        Args:
            axis_sizes: the size of each axis; as they are if None.
            axis_names: their names; as they are if None.
            axis_types: `AxisType.Auto` for each axis, or None.

        Raises:
            ArgumentError: where these do not fit each other.

        >>> from functorch_like.sharding import AbstractMesh
        >>> AbstractMesh((4, 2), ("data", "model")).update((8, 1))
        AbstractMesh('data': 8, 'model': 1)
        """
        sizes = self.axis_sizes if axis_sizes is None else axis_sizes
        return AbstractMesh(sizes, self.axis_names if axis_names is None else axis_names, axis_types)

    def __eq__(self, other: object) -> bool:
        return type(other) is AbstractMesh and self.shape_tuple == other.shape_tuple

    def __hash__(self) -> int:
        return hash(self.shape_tuple)

    def __repr__(self) -> str:
        return f"AbstractMesh({_shown(self)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return AbstractMesh, (self.axis_sizes, self.axis_names)


class Mesh(AbstractMesh):
    """Devices in a grid, whose axes have names that partition specs refer to.

    Meshes of equal devices, shape and names are one object. As a context manager, a mesh is the one that
    `lax.with_sharding_constraint` and `shard_map` use for specs that name none; see `ft.use_mesh`.

    Args:
        devices: a NumPy array or nested sequence of devices, as `ft.devices()` lists them.
        axis_names: a name for each dimension of it.
        axis_types: `AxisType.Auto` for each axis, or None.

    Raises:
        UnsupportedError: for axes of other types.
        ArgumentError: for names that do not fit the dimensions, or a name given twice.
        DeviceError: for a device given twice, or devices of different platforms.

    >>> import functorch_like as ft
    >>> mesh = ft.sharding.Mesh(ft.devices()[:1], ("data",))
    >>> mesh.axis_names, mesh.size
    (('data',), 1)
    """

    __slots__ = ("_entered", "_list", "devices")
    devices: np.ndarray[Any, Any]
    _interned: ClassVar[weakref.WeakValueDictionary[Any, Mesh]] = weakref.WeakValueDictionary()

    def __new__(cls, devices: Any, axis_names: Sequence[str] | str, axis_types: Any = None) -> Mesh:
        grid = _grid(devices)
        names = _names(axis_names)
        _check_types(axis_types, names)
        key = (tuple(grid.flat), grid.shape, names)
        mesh = cls._interned.get(key)
        if mesh is None:
            made = object.__new__(cls)
            made._describe(grid.shape, names)
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
        return Mesh(grid[block], self.axis_names)

    @property
    def is_multi_process(self) -> bool:
        """True if some devices belong to other processes."""
        return len(self.local_devices) != self.size

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """Names and sizes of the axes, without the devices."""
        return AbstractMesh(self.axis_sizes, self.axis_names)

    def update(  # pyright: ignore[reportIncompatibleMethodOverride]  # as in JAX, of what each of them is made
        self,
        devices: np.ndarray[Any, Any] | Sequence[object] | None = None,
        axis_names: Sequence[str] | str | None = None,
        axis_types: AxisType | Sequence[AxisType] | None = None,
    ) -> Mesh:
        """Return a mesh with other devices or names.

        Args:
            devices: a NumPy array or nested sequence of devices; the same ones if None.
            axis_names: a name for each dimension of it; as they are if None.
            axis_types: `AxisType.Auto` for each axis, or None.

        Raises:
            ArgumentError: for names that do not fit the dimensions.

        >>> import functorch_like as ft
        >>> ft.make_mesh((1,), ("data",)).update(axis_names="batch")
        Mesh('batch': 1)
        """
        grid = self.devices if devices is None else devices
        return Mesh(grid, self.axis_names if axis_names is None else axis_names, axis_types)

    def __enter__(self) -> Mesh:
        tokens = self._entered.__dict__.setdefault("tokens", [])
        tokens.append(current_mesh.swap_local(self))
        return self

    def __exit__(self, *exception: object) -> None:
        current_mesh.restore(self._entered.tokens.pop())

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"Mesh({_shown(self)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Mesh, (self.devices, self.axis_names)


def _shown(mesh: AbstractMesh) -> str:
    return ", ".join(f"{name!r}: {size}" for name, size in mesh.shape.items())


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
