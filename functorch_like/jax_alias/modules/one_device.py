"""`jax.sharding` on one device: meshes and shardings as descriptions, all of which place an array whole."""

from __future__ import annotations

import enum
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import functorch_like as ft
from functorch_like.errors import ArgumentError, DeviceError

#: Array axes that a sharding leaves to the compiler.
UNCONSTRAINED = type("Unconstrained", (), {"__repr__": lambda self: "UNCONSTRAINED"})()


class AxisType(enum.Enum):
    """How an axis of a mesh is used; on one device they are all alike."""

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()


class PartitionSpec(tuple[Any, ...]):
    """The mesh axes over which each axis of an array is split."""

    UNCONSTRAINED = UNCONSTRAINED
    __slots__ = ()

    def __new__(cls, *partitions: Any, unreduced: Any = frozenset(), reduced: Any = frozenset()) -> PartitionSpec:
        """Make a spec of one entry for each axis: a name, a tuple of names or None."""
        return super().__new__(cls, partitions)

    def __repr__(self) -> str:
        return f"PartitionSpec({', '.join(map(repr, self))})"

    def __reduce__(self) -> Any:
        return PartitionSpec, tuple(self)


P = PartitionSpec


class AbstractMesh:
    """The names and sizes of a mesh's axes."""

    def __init__(self, axis_sizes: Sequence[Any] = (), axis_names: Sequence[Any] | None = None, **kinds: Any) -> None:
        if axis_names is None:
            pairs = [tuple(pair) for pair in axis_sizes]
            axis_sizes, axis_names = [size for _, size in pairs], [name for name, _ in pairs]
        self.axis_sizes, self.axis_names = tuple(axis_sizes), tuple(axis_names)
        self.axis_types = (AxisType.Auto,) * len(self.axis_names)

    @property
    def shape(self) -> OrderedDict[Any, int]:
        """The size of each axis by name."""
        return OrderedDict(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def shape_tuple(self) -> tuple[tuple[Any, int], ...]:
        """Pairs of name and size."""
        return tuple(self.shape.items())

    @property
    def size(self) -> int:
        """The number of devices."""
        return int(np.prod(self.axis_sizes)) if self.axis_names else 0

    @property
    def empty(self) -> bool:
        """True if the mesh has no axes."""
        return not self.axis_names

    are_all_axes_auto = True
    are_all_axes_explicit = are_all_axes_manual = _any_axis_explicit = _any_axis_manual = False
    _are_all_axes_auto = True
    explicit_axes = manual_axes = ()

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The mesh without its devices."""
        return AbstractMesh(self.axis_sizes, self.axis_names)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.shape_tuple == other.shape_tuple  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), self.shape_tuple))

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name!r}: {size}" for name, size in self.shape.items())
        return f"{type(self).__name__}({sizes})"


class Mesh(AbstractMesh):
    """Devices in an array whose axes have names.

    Raises:
        ArgumentError: where the number of names is not the number of axes.
    """

    def __init__(self, devices: Any, axis_names: Any = (), axis_types: Any = None) -> None:
        self.devices = np.asarray(devices, dtype=object)
        names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if len(names) != self.devices.ndim:
            raise ArgumentError(
                f"a mesh of {self.devices.ndim} axes was given {len(names)} names", fix="give one name for each axis"
            )
        super().__init__(self.devices.shape, names)

    @property
    def device_ids(self) -> np.ndarray[Any, Any]:
        """The ids of the devices."""
        return np.vectorize(lambda d: d.id, otypes=[int])(self.devices)

    @property
    def local_devices(self) -> list[Any]:
        """The devices of this process."""
        return list(self.devices.flat)

    @property
    def local_mesh(self) -> Mesh:
        """The mesh of this process's devices."""
        return self

    is_multi_process = False

    def __enter__(self) -> Mesh:
        _MESHES.append(self)
        return self

    def __exit__(self, *exception: object) -> None:
        _MESHES.pop()


_MESHES: list[Any] = []
_NO_MESH = AbstractMesh()
_EMPTY_MESH = Mesh(np.empty((), object), ())


def get_abstract_mesh() -> AbstractMesh:
    """Return the mesh in force, without its devices; an empty one where there is none."""
    return _MESHES[-1].abstract_mesh if _MESHES else _NO_MESH


def get_mesh() -> Mesh:
    """Return the mesh in force; an empty one where there is none."""
    return _MESHES[-1] if _MESHES else _EMPTY_MESH


class set_mesh:
    """Put a mesh in force: for good, or in a `with` block."""

    def __init__(self, mesh: Any) -> None:
        _MESHES.append(mesh)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        _MESHES.pop()


@contextmanager
def use_abstract_mesh(mesh: Any) -> Iterator[None]:
    """Put a mesh in force within the block."""
    with set_mesh(mesh):
        yield


def make_mesh(
    axis_shapes: Sequence[int], axis_names: Sequence[Any], axis_types: Any = None, *, devices: Any = None
) -> Mesh:
    """Return a mesh of the devices there are.

    Raises:
        DeviceError: where the mesh needs more devices than one.
    """
    found = list(ft.devices() if devices is None else devices)
    count = int(np.prod(axis_shapes))
    if count > len(found):
        raise DeviceError(
            f"a mesh of shape {tuple(axis_shapes)} needs {count} devices, and there are {len(found)}",
            fix="give sizes whose product is the number of devices",
        )
    return Mesh(np.array(found[:count], dtype=object).reshape(tuple(axis_shapes)), axis_names)


class Sharding:
    """Base of shardings: where an array lives."""

    memory_kind = None
    is_fully_replicated = is_fully_addressable = True
    num_devices = 1

    @property
    def device_set(self) -> set[Any]:
        """The devices that hold the array."""
        return set(ft.devices()[:1])

    @property
    def addressable_devices(self) -> set[Any]:
        """The devices of this process that hold the array."""
        return self.device_set

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of what each device holds."""
        return tuple(global_shape)

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Any, tuple[slice, ...]]:
        """Return what each device holds."""
        return {device: (slice(None),) * len(global_shape) for device in self.device_set}

    addressable_devices_indices_map = devices_indices_map

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        """Return True if both place arrays alike."""
        return isinstance(other, Sharding) and self.device_set == other.device_set

    def with_memory_kind(self, kind: str) -> Sharding:
        """Return the same sharding: there is one kind of memory."""
        return self


class NamedSharding(Sharding):
    """A mesh, and the spec of how an array is split over it."""

    def __init__(self, mesh: Any, spec: Any = None, *, memory_kind: str | None = None, **details: Any) -> None:
        self.mesh, self.spec = mesh, PartitionSpec() if spec is None else spec

    @property
    def device_set(self) -> set[Any]:
        """The devices of the mesh."""
        return set(self.mesh.devices.flat)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedSharding) and (self.mesh, self.spec) == (other.mesh, other.spec)

    def __hash__(self) -> int:
        return hash((self.mesh, self.spec))

    def __repr__(self) -> str:
        return f"NamedSharding(mesh={self.mesh!r}, spec={self.spec!r})"


class SingleDeviceSharding(Sharding):
    """All of an array on one device."""

    def __init__(self, device: Any, *, memory_kind: str | None = None) -> None:
        self._device = device

    @property
    def device_set(self) -> set[Any]:
        """The device."""
        return {self._device}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SingleDeviceSharding) and self._device == other._device

    def __hash__(self) -> int:
        return hash(self._device)

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self._device!r})"


make_single_device_sharding = SingleDeviceSharding


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """Return `x`: on one device every sharding is met."""
    return x


def reshard(x: Any, out_shardings: Any = None) -> Any:
    """Return `x`: on one device every sharding is met."""
    return x


def device_of(sharding: Any) -> Any:
    """Return the device of a sharding; of anything else, itself."""
    return next(iter(sharding.device_set)) if isinstance(sharding, Sharding) else sharding
