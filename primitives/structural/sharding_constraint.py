"""sharding_constraint: its operand, split over a mesh by a spec; retyped: its operand, with other Explicit axes."""

from __future__ import annotations

from typing import Any

from functorch_like.avals import ExplicitAxes, ShapedArray
from functorch_like.core import BatchAxis, SampleInput, aval_of
from functorch_like.errors import ArgumentError
from functorch_like.primitives.base.shapes import linear


def _shape(x: ShapedArray, *, mesh: Any, spec: Any) -> ShapedArray:
    from functorch_like.backends.xla import named_sharding  # few programs have meshes

    named_sharding.check_rank(spec, x.ndim, repr(x))
    return x.split(_explicit(x, mesh, spec)) if mesh.explicit_axes else x


def _explicit(x: ShapedArray, mesh: Any, spec: Any) -> ExplicitAxes | None:
    """Return the Explicit axes of the result; where the spec says nothing of a dimension, those of the operand."""
    from functorch_like.backends.xla import named_sharding

    made = named_sharding.explicit_part(mesh, spec, x.ndim)
    if x.explicit is None or type(spec).UNCONSTRAINED not in tuple(spec):
        return made
    axes = ((),) * x.ndim if made is None else made.axes
    free = [k < len(spec) and spec[k] is type(spec).UNCONSTRAINED for k in range(x.ndim)]
    return ExplicitAxes.of(
        mesh.abstract_mesh, [b if f else a for a, b, f in zip(axes, x.explicit.axes, free, strict=True)]
    )


def split_as(x: Any, explicit: ExplicitAxes | None) -> Any:
    """Return a value, split by Explicit axes of a mesh as a type says."""
    known = aval_of(x).explicit
    if known == explicit:
        return x
    from functorch_like.backends.xla import explicit_types

    whole = explicit or known
    assert whole is not None
    return sharding_constraint(x, mesh=whole.mesh, spec=explicit_types.spec_of(explicit, aval_of(x).ndim))


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


def _retyped_shape(x: ShapedArray, *, explicit: ExplicitAxes | None) -> ShapedArray:
    return x.split(explicit)


def _retyped_batch(axis: BatchAxis, x: Any, dim: int, *, explicit: ExplicitAxes | None) -> tuple[Any, int]:
    whole = aval_of(x)
    inner = whole.without_dimension(dim).split(explicit)
    return retyped(x, explicit=inner.with_dimension(dim, axis.size, axis.explicit).explicit), dim


#: The operand itself. Inside of `auto_axes` types name fewer Explicit axes than outside, of `explicit_axes` more.
retyped = linear(
    "retyped",
    shape=_retyped_shape,
    ref=lambda x, *, explicit: x,
    lower=lambda e, x, *, explicit: x,
    transpose=lambda ct, x, *, explicit: retyped(ct, explicit=x.explicit),
    batch=_retyped_batch,
    samples=lambda: [SampleInput((ShapedArray((4, 3), dtype),), {"explicit": None}) for dtype in ("float32", "int32")],
)
