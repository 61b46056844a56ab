"""Explicit axes in the types of arrays, and in the shardings of what has such a type."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from functorch_like.avals import ExplicitAxes, ShapedArray
from functorch_like.backends.xla import memory
from functorch_like.backends.xla.mesh import AbstractMesh
from functorch_like.backends.xla.named_sharding import NamedSharding, named
from functorch_like.backends.xla.partition_spec import UNCONSTRAINED, PartitionSpec


def typed(aval: ShapedArray, where: Any) -> ShapedArray:
    """Return the type of an array that has this sharding."""
    if type(where) is not NamedSharding or not where.mesh.explicit_axes:
        return aval.split(None)
    return aval.split(explicit_part(where.mesh, where.spec, aval.ndim))


@lru_cache(4096)
def explicit_part(mesh: AbstractMesh, spec: PartitionSpec, ndim: int) -> ExplicitAxes | None:
    """Return the part of a spec that is about Explicit axes; None where it names none."""
    explicit = frozenset(mesh.explicit_axes)
    each = (() if axes is UNCONSTRAINED else axes for axes in spec.axes(ndim))
    axes = tuple(tuple(name for name in names if name in explicit) for names in each)
    return ExplicitAxes(mesh.abstract_mesh, axes) if any(axes) else None


@lru_cache(4096)
def spec_of(explicit: ExplicitAxes | None, ndim: int) -> PartitionSpec:
    """Return the spec that a type stands for, with an entry for each dimension."""
    axes = ((),) * ndim if explicit is None else explicit.axes
    return PartitionSpec(*(names[0] if len(names) == 1 else names or None for names in axes))


def required(where: Any, aval: ShapedArray, mesh: Any) -> Any:
    """Return the sharding of a result on a mesh: that of its type, where no other was chosen.

    Args:
        where: the sharding that was chosen; None if it is left to the compiler.
        aval: the type of the result.
        mesh: a mesh with devices.

    Returns:
        None where the type leaves it to the compiler: of a result that no Explicit axes split, on a mesh that has Auto
        axes, too.
    """
    if where is not None or (aval.explicit is None and not mesh.are_all_axes_explicit):
        return where
    return named(mesh, spec_of(aval.explicit, aval.ndim))


memory.on_clear(lambda: [cached.cache_clear() for cached in (explicit_part, spec_of)])
