"""Application of a sharding to a value: a transfer outside of programs, a constraint inside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import tree
from functorch_like.backends import xla
from functorch_like.backends.xla import named_sharding, sharding
from functorch_like.backends.xla.memory_space import MemorySpace
from functorch_like.calling import api_boundary
from functorch_like.core import ArrayImpl, Tracer, aval_of
from functorch_like.primitives.effects.memory_placement import memory_placement
from functorch_like.primitives.structural.sharding_constraint import sharding_constraint

if TYPE_CHECKING:
    from functorch_like.calling.type_variables import T
    from functorch_like.typing import PyTree


def to_memory(x: Any, where: Any) -> Any:
    """Place a value of a program in the kind of memory that a sharding names; return `x` if it names none."""
    kind = where._memory_kind
    return x if kind is None else memory_placement(x, kind=kind)


def to_space(x: Any, space: MemorySpace) -> Any:
    """Return a value in a memory space; outside of programs on the devices that have it.

    Raises:
        ArgumentError: for a kind of memory that the devices lack.
    """
    kind = space.kind
    if isinstance(x, Tracer):
        return x if kind is None else memory_placement(x, kind=kind)
    where = x.sharding if type(x) is ArrayImpl else sharding.single(xla.default_device())
    weak = aval_of(x).weak_type
    return xla.device_put(x, where if kind is None else where.with_memory_kind(kind), weak_type=weak)


def constrain(x: Any, where: Any) -> Any:
    """Return `x`, split by a sharding.

    Raises:
        ShapeError: where the spec has more entries than `x` has dimensions, or, outside of programs, does not divide.
    """
    if type(where) is not named_sharding.NamedSharding:
        return x if isinstance(x, Tracer) else xla.device_put(x, where)
    named_sharding.check_rank(where.spec, aval_of(x).ndim, repr(aval_of(x)))
    if isinstance(x, Tracer) or named_sharding.UNCONSTRAINED in tuple(where.spec):
        return sharding_constraint(x, mesh=where.mesh, spec=where.spec)
    return xla.device_put(x, where)


@api_boundary.public
def reshard(x: T, shardings: PyTree) -> T:
    """Split values in another way; the devices exchange what they need.

    Where axes of the mesh are Explicit, the types of the results say so.

    Args:
        x: array, or pytree of arrays, inside or outside of jit.
        shardings: a NamedSharding, or a PartitionSpec within `ft.use_mesh`, or a prefix pytree of these for the leaves
            of x.

    Returns:
        The same values, split by the shardings.

    Raises:
        ArgumentError: for an axis that the mesh lacks, or a spec where no mesh was chosen.
        ShapeError: where a spec has more entries than a leaf has dimensions.

    >>> import functorch_like as ft
    >>> from functorch_like.sharding import AxisType, PartitionSpec as P, reshard
    >>> with ft.use_mesh(ft.make_mesh((1,), ("data",), AxisType.Explicit)):
    ...     ft.typeof(reshard(ft.numpy.ones(2), P("data")))
    f32[2@data]
    """
    each = tree.broadcast_prefix(shardings, x, "shardings of reshard")
    leaves, structure = tree.flatten(x)
    return structure.unflatten(
        [resharded(leaf, where, "the sharding of reshard") for leaf, where in zip(leaves, each, strict=True)]
    )


def resharded(x: Any, where: Any, what: str) -> Any:
    """Return an array or number, split by a user's sharding, which `what` names in errors."""
    placed = named_sharding.from_user(where, what)
    return constrain(x if isinstance(x, (ArrayImpl, Tracer)) else np.asarray(x, aval_of(x).dtype), placed)
