"""XLA's calls of Python while it partitions a program: operations whose parts Python writes."""

from __future__ import annotations

import uuid
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from functorch_like.backends.xla import mlir, named_sharding
from functorch_like.backends.xla.jaxlib_api import xc
from functorch_like.backends.xla.mesh import Mesh
from functorch_like.backends.xla.partition_spec import PartitionSpec

TARGET = "CustomSPMDPartitioning"
_registered: list[bool] = []


class Parts(NamedTuple):
    """The program of one device, and how values are split for it.

    Attributes:
        module: the program on parts, as MLIR.
        ins: a NamedSharding for each operand.
        outs: likewise for each result.
    """

    module: Any
    ins: Sequence[Any]
    outs: Sequence[Any]


class Partitioner:
    """A function that writes the program on parts; it has a name of its own in each process.

    Args:
        partition: `(mesh, shapes of the operands, their shardings, shardings of the results) -> Parts`.
        out_ranks: the ranks of the results.
    """

    def __init__(self, partition: Callable[..., Parts], out_ranks: Sequence[int]) -> None:
        self._partition, self._out_ranks = partition, out_ranks
        self._meshes: dict[str, Mesh] = {}

    def on(self, mesh: Mesh) -> str:
        """Return the name under which XLA calls this function for a program on a mesh."""
        name = next((name for name, known in self._meshes.items() if known is mesh), None)
        if name is None:
            _register()
            name = uuid.uuid4().hex  # programs are kept on disk by their text: no two processes may share a name
            self._meshes[name] = mesh
            _partitioners[name] = self
        return name

    def answer(self, name: str, shapes: Sequence[Any], ins: Sequence[Any], result: Any, out: Any) -> tuple[Any, ...]:
        """Return the program on parts as bytes, and the shardings of operands and of the result."""
        mesh = self._meshes[name]
        several = result.is_tuple()
        outs = out.tuple_elements() if several else [out]
        of = lambda hlo, ndim: named_sharding.named(mesh, named_sharding.spec_of(mesh, hlo, ndim) or PartitionSpec())
        parts = self._partition(
            mesh,
            [tuple(shape.dimensions()) for shape in shapes],
            [of(hlo, len(shape.dimensions())) for hlo, shape in zip(ins, shapes, strict=True)],
            [of(hlo, ndim) for hlo, ndim in zip(outs, self._out_ranks, strict=True)],
        )
        ranks = [len(shape.dimensions()) for shape in shapes]
        given = [s._to_xla_hlo_sharding(n) for s, n in zip(parts.ins, ranks, strict=True)]
        made = [s._to_xla_hlo_sharding(n) for s, n in zip(parts.outs, self._out_ranks, strict=True)]
        whole = xc.HloSharding.tuple_sharding(result, made) if several else made[0]
        return mlir.anonymous_bytecode(parts.module), given, whole


#: By name, as long as a program refers to them.
_partitioners: weakref.WeakValueDictionary[str, Partitioner] = weakref.WeakValueDictionary()


def _answer(shapes: Any, ins: Any, result: Any, out: Any, name: bytes) -> tuple[Any, ...]:
    return _partitioners[name.decode()].answer(name.decode(), shapes, ins, result, out)


def _register() -> None:
    """Register the function with XLA, once. Shardings propagate by the rule that an operation has."""
    if not _registered:
        _registered.append(True)
        keep = lambda sharding, shape, name: sharding
        nothing = lambda shapes, shardings, shape, name: xc.HloSharding.replicate()
        xc.register_custom_call_partitioner(TARGET, keep, _answer, nothing, True)
