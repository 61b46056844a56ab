"""The default mesh, which PartitionSpecs refer to where none is given."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from functorch_like.backends.xla import mesh as meshes
from functorch_like.backends.xla.configuration import current_mesh
from functorch_like.backends.xla.mesh import AxisType, Mesh
from functorch_like.calling import api_boundary
from functorch_like.errors import ArgumentError


def _checked(mesh: Any, function: str) -> Any:
    if mesh is not None and not isinstance(mesh, Mesh):
        raise ArgumentError(
            f"{function} takes a Mesh, got {mesh!r:.60} of type {type(mesh).__name__}", fix="use ft.make_mesh(...)"
        )
    return mesh


class _Chosen:
    """Result of `set_mesh`: as a context manager it restores the mesh from before."""

    def __init__(self, before: Any) -> None:
        self._before = before

    def __enter__(self) -> Mesh | None:
        return current_mesh.value

    def __exit__(self, *exception: object) -> None:
        current_mesh.set_global(self._before)


@api_boundary.public
def set_mesh(mesh: Mesh | None) -> AbstractContextManager[Mesh | None]:
    """Set the default mesh of PartitionSpecs, in every thread.

    Args:
        mesh: the mesh; None for none.

    Returns:
        A context manager, whose end restores the previous mesh. Without a `with` block the mesh stays set.

    Raises:
        ArgumentError: for anything else.

    >>> import functorch_like as ft
    >>> with ft.set_mesh(ft.make_mesh((1,), ("data",))) as mesh:
    ...     mesh.axis_names
    ('data',)
    """
    before = current_mesh.global_value
    current_mesh.set_global(_checked(mesh, "set_mesh"))
    return _Chosen(before)


def use_mesh(mesh: Mesh | None) -> AbstractContextManager[Mesh | None]:
    """Set the default mesh of PartitionSpecs, within a block and in this thread.

    Args:
        mesh: the mesh; None for none.

    Returns:
        A context manager that yields the mesh.

    Raises:
        ArgumentError: for anything else.

    >>> import functorch_like as ft
    >>> from functorch_like.sharding import PartitionSpec as P
    >>> with ft.use_mesh(ft.make_mesh((1,), ("data",))):
    ...     ft.device_put(ft.numpy.ones(2), P("data")).sharding.spec
    P('data')
    """
    return current_mesh.held(_checked(mesh, "use_mesh"))


def get_mesh() -> Mesh | None:
    """Return the default mesh of PartitionSpecs, or None.

    >>> import functorch_like as ft
    >>> with ft.use_mesh(ft.make_mesh((1,), ("data",))):
    ...     ft.sharding.get_mesh().size
    1
    """
    return current_mesh.value


@api_boundary.public
def make_mesh(
    axis_shapes: Sequence[int],
    axis_names: Sequence[str] | str,
    axis_types: AxisType | Sequence[AxisType] | None = None,
    *,
    devices: Sequence[Any] | None = None,
) -> Mesh:
    """Make a mesh of the first devices.

    Args:
        axis_shapes: the size of each axis; one of them may be -1, for as many as there are devices.
        axis_names: their names.
        axis_types: the type of each axis, or one for all; None for `AxisType.Auto`.
        devices: in this order; `ft.devices()` if None.

    Returns:
        A mesh of `prod(axis_shapes)` devices, in row-major order.

    Raises:
        DeviceError: where there are fewer devices.
        ArgumentError: for sizes that are not positive integers, or names that do not fit.
        UnsupportedError: for Manual axes.

    >>> import functorch_like as ft
    >>> ft.make_mesh((1, 1), ("data", "model")).shape["model"]
    1
    """
    return meshes.make_mesh(axis_shapes, axis_names, axis_types, devices=devices)
