"""sharding_constraint: its operand, split over a mesh by a spec."""

from __future__ import annotations

from typing import Any

from functorch_like.avals import ShapedArray
from functorch_like.core import BatchAxis, SampleInput
from functorch_like.errors import ArgumentError
from functorch_like.primitives.base.shapes import linear


def _shape(x: ShapedArray, *, mesh: Any, spec: Any) -> ShapedArray:
    from functorch_like.backends.xla import named_sharding  # few programs have meshes

    named_sharding.check_rank(spec, x.ndim, repr(x))
    return x


def _lower(e: Any, x: Any, *, mesh: Any, spec: Any) -> Any:
    if e.partitioning is None:
        return x
    for name in e.manual.axes if e.manual is not None else ():
        if name in spec.mentioned():
            raise ArgumentError(
                f"a constraint by {spec!r} inside of a shard_map that is written by the parts along {name!r}",
                fix=f"leave {name!r} out: what is seen there is one part already",
            )
    return e.constrain(x, mesh, spec, e.outs[0])


def _batch(axis: BatchAxis, x: Any, dim: int, *, mesh: Any, spec: Any) -> tuple[Any, int]:
    from functorch_like.backends.xla import named_sharding

    if axis.spmd_name is not None:
        names = (axis.spmd_name,) if isinstance(axis.spmd_name, str) else axis.spmd_name
        named_sharding.check_axes(mesh, names, "spmd_axis_name of vmap")
    entries = list(spec) + [None] * (dim - len(spec))
    entries.insert(dim, type(spec).UNCONSTRAINED if axis.spmd_name is None else axis.spmd_name)
    return sharding_constraint(x, mesh=mesh, spec=type(spec)(*entries)), dim


def _samples() -> list[SampleInput]:
    from functorch_like.backends.xla.mesh import AbstractMesh
    from functorch_like.backends.xla.partition_spec import PartitionSpec

    params = {"mesh": AbstractMesh((2,), ("i",)), "spec": PartitionSpec("i")}
    return [SampleInput((ShapedArray((4, 3), dtype),), params) for dtype in ("float32", "int32")]


sharding_constraint = linear(
    "sharding_constraint",
    shape=_shape,
    ref=lambda x, *, mesh, spec: x,
    lower=_lower,
    transpose=lambda ct, x, *, mesh, spec: sharding_constraint(ct, mesh=mesh, spec=spec),
    batch=_batch,
    samples=_samples,
)
