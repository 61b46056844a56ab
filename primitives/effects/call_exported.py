"""call_exported: a program that was exported, as part of another one."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

from functorch_like.avals import ShapedArray
from functorch_like.backends.xla.mesh import AbstractMesh
from functorch_like.backends.xla.named_sharding import NamedSharding
from functorch_like.backends.xla.partition_spec import PartitionSpec
from functorch_like.core import NotDefined, Primitive
from functorch_like.errors import DeviceError, UnsupportedError


class Split(NamedTuple):
    """Mesh of a program for several devices, and specs of its arguments and results.

    Attributes:
        axes: pairs of name and size: the mesh.
        ins: a spec for each argument; None leaves it to the compiler.
        outs: likewise for the results.
    """

    axes: tuple[tuple[str, int], ...]
    ins: tuple[PartitionSpec | None, ...]
    outs: tuple[PartitionSpec | None, ...]

    @property
    def mesh(self) -> AbstractMesh:
        return AbstractMesh(tuple(size for _, size in self.axes), tuple(name for name, _ in self.axes))


def shardings_on(mesh: AbstractMesh, specs: Sequence[PartitionSpec | None]) -> tuple[NamedSharding | None, ...]:
    """Return the sharding of each spec on a mesh; None for what is left to the compiler."""
    return tuple(None if spec is None else NamedSharding(mesh, spec) for spec in specs)


@dataclasses.dataclass(frozen=True)
class Artifact:
    """A program in portable bytes, for each platform that it was lowered for.

    Attributes:
        name: of the function.
        programs: pairs of platform and bytes.
        in_avals, out_avals: of its arguments and results.
        split: how it is split over several devices; None for a program for one.
    """

    name: str
    programs: tuple[tuple[str, bytes], ...]
    in_avals: tuple[ShapedArray, ...]
    out_avals: tuple[ShapedArray, ...]
    split: Split | None = None

    def on(self, platform: str) -> bytes:
        """The program for a platform.

        Raises:
            UnsupportedError: where it was lowered for others alone.
        """
        program = dict(self.programs).get(platform)
        if program is None:
            names = tuple(name for name, _ in self.programs)
            raise UnsupportedError(
                f"{self.name} was exported for {', '.join(names)}, and is run on {platform}",
                fix=f"export it with platforms={(*names, platform)}",
            )
        return program


def _lower(e: Any, *operands: Any, artifact: Artifact) -> list[Any]:
    from functorch_like.backends.xla import portable  # brings MLIR with it

    split = artifact.split
    if split is not None:
        _check_devices(e, artifact.name, split)
        operands = tuple(_constrained(e, operands, split.mesh, split.ins, e.ins))
    program = portable.embed(e, artifact.on(e.platform), artifact.name, artifact.in_avals, artifact.out_avals)
    outs = e.call(program, operands, e.outs)
    return outs if split is None else _constrained(e, outs, split.mesh, split.outs, e.outs)


def _check_devices(e: Any, name: str, split: Split) -> None:
    if e.manual is not None:
        raise UnsupportedError(
            f"{name} was exported for whole arrays on {split.mesh!r}, and is called in a function of their parts",
            fix="call it outside of shard_map",
        )
    count = 1 if e.partitioning is None else e.partitioning.mesh.size
    if e.partitioning is None or count != split.mesh.size:
        raise DeviceError(
            f"{name} was exported for {split.mesh!r}, and the program runs on {count} device{'s' * (count > 1)}",
            fix="put the arguments on a mesh of as many devices: ft.device_put(x, exported.in_shardings(mesh)[0])",
        )


def _constrained(
    e: Any, xs: Sequence[Any], mesh: AbstractMesh, specs: Sequence[PartitionSpec | None], avals: Sequence[ShapedArray]
) -> list[Any]:
    rows = zip(xs, specs, avals, strict=True)
    return [x if spec is None else e.constrain(x, mesh, spec, aval) for x, spec, aval in rows]


_NO_DERIVATIVE = NotDefined(
    "a program that was exported has no derivatives any more; store it with serialize(vjp_order=1), export the "
    "derivative as a function of its own, or give the call a rule with custom_vjp or custom_jvp"
)

call_exported = Primitive(
    "call_exported",
    shape=lambda *xs, artifact: artifact.out_avals,
    ref=NotDefined("the meaning is in StableHLO; tests/transformations/test_export.py runs it"),
    lower=_lower,
    jvp=_NO_DERIVATIVE,
    transpose=_NO_DERIVATIVE,
    batch=NotDefined(
        "a program that was exported takes what it was exported for; map over it with lax.map, or export vmap(f)"
    ),
    samples=list,
    multiple_results=True,
)
