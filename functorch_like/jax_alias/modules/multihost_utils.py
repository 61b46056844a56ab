"""`jax.experimental.multihost_utils`: arrays of one process as parts of arrays of all, and preemption."""

from __future__ import annotations

from typing import Any

import functorch_like as ft
from functorch_like.core import Tracer, aval_of
from functorch_like.errors import ArgumentError
from functorch_like.sharding import Mesh, NamedSharding, PartitionSpec


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """Join arrays of each process to arrays over the devices of all.

    Args:
        local_inputs: pytree of arrays: the parts for the devices of this process, as one array over them.
        global_mesh: mesh of the devices of all processes; those of each process are a block of it.
        pspecs: PartitionSpecs of the results, a pytree that may be a prefix of `local_inputs`.

    Returns:
        The joined arrays. Traced values, and arrays that are spread over several processes, stay as they are.

    Raises:
        ArgumentError: for a spec that is None.
        ShapeError: where a size does not divide by the number of parts.

    Example:
        >>> import numpy as np
        >>> mesh = ft.make_mesh((1,), ("data",))
        >>> host_local_array_to_global_array(np.arange(4), mesh, PartitionSpec("data")).tolist()
        [0, 1, 2, 3]
    """
    parts = _parts(global_mesh)

    def joined(x: Any, spec: Any) -> Any:
        if isinstance(x, Tracer) or not getattr(x, "is_fully_addressable", True):
            return x
        where = NamedSharding(global_mesh, spec)
        if not global_mesh.is_multi_process:
            return ft.device_put(x, where)
        shape = [n * parts(axes) for n, axes in zip(aval_of(x).shape, spec.axes(aval_of(x).ndim), strict=True)]
        return ft.make_array_from_process_local_data(where, x, shape)

    return _each(joined, local_inputs, pspecs)


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """Return the parts of arrays that are on the devices of this process, as arrays over these devices alone.

    Args:
        global_inputs: pytree of arrays over the devices of all processes.
        global_mesh: their mesh; the devices of each process are a block of it.
        pspecs: PartitionSpecs of the arrays, a pytree that may be a prefix of `global_inputs`.

    Returns:
        Arrays over `global_mesh.local_mesh`. Traced values, and arrays of this process alone, stay as they are.

    Raises:
        ArgumentError: for a spec that is None.

    Example:
        >>> import numpy as np
        >>> mesh = ft.make_mesh((1,), ("data",))
        >>> global_array_to_host_local_array(ft.numpy.arange(4), mesh, PartitionSpec("data")).tolist()
        [0, 1, 2, 3]
    """
    parts = _parts(global_mesh)

    def own(x: Any, spec: Any) -> Any:
        if isinstance(x, Tracer) or getattr(x, "is_fully_addressable", True):
            return x
        placed = ft.device_put(x, NamedSharding(global_mesh, spec))
        shape = [n // parts(axes) for n, axes in zip(x.shape, spec.axes(x.ndim), strict=True)]
        local = NamedSharding(global_mesh.local_mesh, spec)
        return ft.make_array_from_single_device_arrays(shape, local, [s.data for s in placed.addressable_shards])

    return _each(own, global_inputs, pspecs)


def _parts(mesh: Mesh) -> Any:
    """Return a function of mesh axes: how many blocks, one for each of some processes, lie along them."""
    whole, local = dict(mesh.shape), dict(mesh.local_mesh.shape)

    def parts(axes: tuple[str, ...]) -> int:
        count = 1
        for axis in axes:
            count *= whole[axis] // local[axis]
        return count

    return parts


def _each(fun: Any, inputs: Any, pspecs: Any) -> Any:
    is_spec = lambda spec: spec is None or isinstance(spec, PartitionSpec)
    leaves, structure = ft.tree.flatten(inputs)
    specs = ft.tree.leaves(ft.tree.broadcast(pspecs, inputs, is_leaf=is_spec), is_leaf=is_spec)
    if None in specs:
        raise ArgumentError("a spec is None", fix="give PartitionSpec() for an array that is the same everywhere")
    return structure.unflatten([fun(x, spec) for x, spec in zip(leaves, specs, strict=True)])


def reached_preemption_sync_point(step_id: int) -> bool:
    """Return False: preemption is not tracked."""
    return False
