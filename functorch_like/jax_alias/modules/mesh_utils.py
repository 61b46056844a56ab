"""`jax.experimental.mesh_utils`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functorch_like.jax_alias.modules.sharding import Mesh as Mesh
from functorch_like.jax_alias.modules.sharding import make_mesh


def create_device_mesh(mesh_shape: Sequence[int], devices: Any = None, **options: Any) -> Any:
    """Return the devices in an array of a shape."""
    return make_mesh(mesh_shape, tuple(map(str, range(len(mesh_shape)))), devices=devices).devices


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int], dcn_mesh_shape: Sequence[int], devices: Any = None, **options: Any
) -> Any:
    """Return the devices in an array whose sizes are products of two shapes."""
    return create_device_mesh([a * b for a, b in zip(mesh_shape, dcn_mesh_shape, strict=True)], devices)
