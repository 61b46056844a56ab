"""Public classes of shardings, which check arguments before they construct jaxlib's.

jaxlib's classes raise errors of C++ for wrong arguments. So the public names are stand-ins: a call checks its
arguments, and `isinstance` accepts instances of jaxlib's classes. Errors of meshes and partition specs, which are
classes of a lower floor, get the user's line here.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from functorch_like.backends import xla
from functorch_like.backends.xla import mesh, named_sharding, partition_spec, sharding
from functorch_like.calling import api_boundary
from functorch_like.errors import ArgumentError, FtError


def _complete_errors(cls: type, method: str) -> None:
    """Make the errors of a constructor name the user's line, without frames of the package."""
    construct = getattr(cls, method)

    @functools.wraps(construct)
    def completed(*args: Any, **kwargs: Any) -> Any:
        try:
            return construct(*args, **kwargs)
        except FtError as e:
            api_boundary.finalize_error(e)
            raise

    setattr(cls, method, staticmethod(completed) if method == "__new__" else completed)


_complete_errors(mesh.Mesh, "__new__")
_complete_errors(mesh.AbstractMesh, "__init__")
_complete_errors(partition_spec.PartitionSpec, "__new__")

if TYPE_CHECKING:
    from functorch_like.arrays.array_type import NamedSharding as NamedSharding
    from functorch_like.arrays.array_type import Sharding as Sharding
    from functorch_like.arrays.array_type import SingleDeviceSharding as SingleDeviceSharding
else:

    class _StandIn(type):
        """Class of a stand-in: `_real` is the class, `_make` its checked constructor."""

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            try:
                return cls._make(*args, **kwargs)
            except Exception as e:
                e.__traceback__ = api_boundary.filter_traceback(e.__traceback__)
                raise

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, cls._real)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(getattr(subclass, "_real", subclass), cls._real)

        def __getattr__(cls, name: str) -> Any:
            return getattr(cls._real, name)

    @api_boundary.public
    def _named(mesh: Any = None, spec: Any = None, memory_kind: str | None = None) -> Any:
        named_sharding.check(mesh, spec)
        named_sharding.check_memory_kind(mesh, memory_kind)
        return named_sharding.named(mesh, spec, memory_kind)

    @api_boundary.public
    def _single_device(device: Any = None, memory_kind: str | None = None) -> Any:
        if not isinstance(device, xla.Device):
            raise ArgumentError(
                f"SingleDeviceSharding takes a device, got {device!r:.60} of type {type(device).__name__}",
                fix="SingleDeviceSharding(ft.devices()[0])",
            )
        named_sharding.check_memory_kind(device, memory_kind)
        return sharding.single_in(device, memory_kind)

    @api_boundary.public
    def _abstract() -> Any:
        raise ArgumentError("Sharding is the base of shardings", fix="use NamedSharding(mesh, spec)")

    class Sharding(metaclass=_StandIn):
        """Base of NamedSharding and SingleDeviceSharding."""

        _real, _make = named_sharding.Sharding, staticmethod(_abstract)

    class NamedSharding(metaclass=_StandIn):
        """Devices of a mesh, and which part of an array each of them holds.

        Args:
            mesh: a Mesh, or an AbstractMesh for shardings that are only named.
            spec: a PartitionSpec.
            memory_kind: "device", "pinned_host" or "unpinned_host"; that of the device if None.

        Raises:
            ArgumentError: for an axis that the mesh lacks, or a kind of memory that its devices lack.

        >>> import functorch_like as ft
        >>> from functorch_like.sharding import NamedSharding, PartitionSpec as P
        >>> NamedSharding(ft.make_mesh((1,), ("data",)), P("data"))
        NamedSharding(Mesh('data': 1), P('data'))
        """

        _real, _make = named_sharding.NamedSharding, staticmethod(_named)

    class SingleDeviceSharding(metaclass=_StandIn):
        """All of an array on one device.

        Args:
            device: of `ft.devices()`.
            memory_kind: "device", "pinned_host" or "unpinned_host"; that of the device if None. Results computed from
                arrays in other memory are in the default memory of the device.

        Raises:
            ArgumentError: for anything but a device, or a kind of memory that it lacks.

        >>> import functorch_like as ft
        >>> ft.device_put(1.0, ft.sharding.SingleDeviceSharding(ft.devices()[0])).devices() == {ft.devices()[0]}
        True
        """

        _real, _make = named_sharding.SingleDeviceSharding, staticmethod(_single_device)
