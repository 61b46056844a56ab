"""`get_attached_topology`: the devices of a platform as a description, of which meshes are made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like.arrays import devices
from functorch_like.calling import api_boundary
from functorch_like.errors import ArgumentError, UnsupportedError
from functorch_like.sharding import Mesh


class TopologyDescription:
    """Devices of one platform.

    Attributes:
        devices: the list of them.
    """

    def __init__(self, devices: Sequence[Any]) -> None:
        self.devices = list(devices)

    def __repr__(self) -> str:
        return f"TopologyDescription({self.devices})"


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """Return the devices that are attached.

    Args:
        platform: "cpu" or "gpu"; the default one if None.

    Raises:
        DeviceError: where there is no such platform.

    >>> import functorch_like as ft
    >>> from functorch_like.experimental.topologies import get_attached_topology
    >>> get_attached_topology().devices == ft.devices()
    True
    """
    return TopologyDescription(devices.devices(platform))


def get_topology_desc(topology_name: str = "", platform: str | None = None, **kwargs: object) -> TopologyDescription:
    """Refuse: devices that are not attached have no description here.

    Args:
        topology_name: name of a topology.
        platform: name of its platform.
        **kwargs: options of the platform.

    Raises:
        UnsupportedError: always. Programs for GPUs that are not there are compiled by `functorch_like.testing.aot`.

    >>> from functorch_like.experimental.topologies import get_topology_desc
    >>> get_topology_desc("v4:2x2x1", "tpu")
    Traceback (most recent call last):
        ...
    functorch_like.errors.UnsupportedError: there is no description of the topology 'v4:2x2x1' of the platform 'tpu'...
    """
    raise UnsupportedError(
        f"there is no description of the topology {topology_name!r} of the platform {platform!r}",
        fix="use get_attached_topology, or compile for GPUs that are not there: python -m functorch_like.testing.aot",
    )


@api_boundary.public
def make_mesh(
    topo: TopologyDescription,
    mesh_shape: Sequence[int],
    axis_names: Sequence[str],
    *,
    contiguous_submeshes: bool = False,
) -> Mesh:
    """Make a mesh of all devices of a topology, in their order.

    Args:
        topo: a result of `get_attached_topology`.
        mesh_shape: the size of each axis.
        axis_names: their names.
        contiguous_submeshes: no effect; devices keep their order.

    Returns:
        A mesh of all the devices.

    Raises:
        ArgumentError: for sizes whose product is not the number of devices.

    >>> from functorch_like.experimental.topologies import get_attached_topology, make_mesh
    >>> topology = get_attached_topology()
    >>> make_mesh(topology, (len(topology.devices),), ("data",)).axis_names
    ('data',)
    """
    count = len(topo.devices)
    if int(np.prod(mesh_shape)) != count:
        raise ArgumentError(
            f"a mesh of shape {tuple(mesh_shape)} does not have the {count} devices of the topology",
            fix=f"give sizes whose product is {count}",
        )
    grid = np.empty(count, object)
    grid[:] = topo.devices
    return Mesh(grid.reshape(tuple(mesh_shape)), tuple(axis_names))
