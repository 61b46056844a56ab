"""Training steps over a mesh: batches split over its devices, states whole on each or split as well."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from functorch_like import tree
from functorch_like.backends.xla.mesh import AbstractMesh, Mesh, make_mesh
from functorch_like.backends.xla.named_sharding import NamedSharding, check_axes
from functorch_like.backends.xla.partition_spec import PartitionSpec
from functorch_like.calling import api_boundary
from functorch_like.calling.traced_function import check_callable
from functorch_like.core import aval_of
from functorch_like.transforms.jit import jit

if TYPE_CHECKING:
    from functorch_like.typing import PyTree


@api_boundary.public
def data_parallel(
    step: Callable[..., Any],
    *,
    mesh: Mesh | None = None,
    axis: str = "data",
    state: PyTree = None,
    donate: bool = True,
) -> Any:
    """Compile a training step whose batch is split over the devices of a mesh.

    The gradient of a mean over the batch is that of the whole batch: the compiler adds up the parts of the devices.

    Args:
        step: `step(state, batch)`, which returns `(state, anything)`; written as for one device.
        mesh: the mesh; one of all devices along `axis` if None.
        axis: the axis that splits the first dimension of each array of the batch.
        state: shardings of the state, as a prefix pytree, e.g. of `fsdp_shardings`; a copy on each device if None.
        donate: let the new state take the memory of the old one, which cannot be used again.

    Returns:
        The compiled step. It splits states and batches of NumPy arrays itself.

    Raises:
        ArgumentError: for an axis that the mesh lacks.
        ShapeError: at the call, for a batch that does not divide.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> loss = lambda w, batch: fnp.mean((batch @ w) ** 2)
    >>> step = ft.parallel.data_parallel(lambda w, batch: (w - 0.1 * ft.grad(loss)(w, batch), loss(w, batch)))
    >>> w, value = step(fnp.ones(2), fnp.ones((8, 2)))
    >>> w.tolist(), float(value)
    ([0.6000000238418579, 0.6000000238418579], 4.0)
    """
    check_callable(step, "data_parallel", "data_parallel(step)")
    mesh = make_mesh((-1,), (axis,)) if mesh is None else mesh
    check_axes(mesh, (axis,), "data_parallel")
    state_shardings = NamedSharding(mesh, PartitionSpec()) if state is None else state
    return jit(
        step,
        in_shardings=(state_shardings, NamedSharding(mesh, PartitionSpec(axis))),
        out_shardings=(state_shardings, None),
        donate_argnums=0 if donate else None,
    )


@api_boundary.public
def fsdp_shardings(state: PyTree, mesh: AbstractMesh, axis: str = "data", *, smallest: int = 1024) -> PyTree:
    """Return shardings that split each array of a state over an axis of a mesh, along its largest dimension.

    With these a device keeps one part of parameters and optimizer state; the compiler gathers what a layer needs.

    Args:
        state: pytree of arrays, or of anything with a shape and dtype.
        mesh: the mesh.
        axis: the axis that splits them.
        smallest: arrays of fewer elements stay whole, and so do those with no dimension that divides.

    Returns:
        A pytree of NamedShardings.

    Raises:
        ArgumentError: for an axis that the mesh lacks.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> mesh = ft.make_mesh((1,), ("data",))
    >>> ft.parallel.fsdp_shardings({"w": fnp.ones((8, 1024)), "b": fnp.ones(8)}, mesh)["w"].spec
    P(None, 'data')
    """
    check_axes(mesh, (axis,), "fsdp_shardings")
    count = mesh.shape[axis]

    def one(x: Any) -> Any:
        shape = tuple(x.shape) if hasattr(x, "shape") else aval_of(x).shape
        sizes = [(n, d) for d, n in enumerate(shape) if n and n % count == 0]
        if math.prod(shape) < smallest or not sizes:
            return NamedSharding(mesh, PartitionSpec())
        _, d = max(sizes, key=lambda size: (size[0], -size[1]))
        return NamedSharding(mesh, PartitionSpec(*(None,) * d, axis))

    return tree.map(one, state)
