"""Explicit axes in the types of arrays, and in the shardings of what has such a type."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from functorch_like.avals import ExplicitAxes, ShapedArray, ShapeDtypeStruct
from functorch_like.backends.xla import memory
from functorch_like.backends.xla.named_sharding import named
from functorch_like.backends.xla.partition_spec import PartitionSpec


def typed(aval: ShapedArray, where: Any) -> ShapedArray:
    """Return the type of an array that has this sharding."""
    return aval.split(where._explicit_axes(aval.ndim))


@lru_cache(4096)
def spec_of(explicit: ExplicitAxes | None, ndim: int) -> PartitionSpec:
    """Return the spec that a type stands for, with an entry for each dimension."""
    axes = ((),) * ndim if explicit is None else explicit.axes
    return PartitionSpec(*(names[0] if len(names) == 1 else names or None for names in axes))


def described(aval: ShapedArray) -> ShapeDtypeStruct:
    """Return an aval that Explicit axes split as a `ShapeDtypeStruct`, whose sharding is on an abstract mesh."""
    assert aval.explicit is not None
    where = named(aval.explicit.mesh, spec_of(aval.explicit, aval.ndim))
    return ShapeDtypeStruct(aval.shape, aval.dtype, aval.weak_type, where)


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


memory.on_clear(spec_of.cache_clear)
