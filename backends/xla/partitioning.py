"""Partition of a program over the devices of a mesh, as text for Shardy, XLA's partitioner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from functorch_like.backends.xla.mesh import AbstractMesh, Mesh
from functorch_like.backends.xla.partition_spec import UNCONSTRAINED, PartitionSpec


class Partitioning(NamedTuple):
    """The mesh that a program runs on, and the shardings of its arguments and results.

    Attributes:
        mesh: the devices.
        ins: a NamedSharding for each argument; None leaves it to the compiler.
        outs: likewise for the results; None leaves all of them to the compiler.
    """

    mesh: Mesh
    ins: tuple[Any, ...]
    outs: tuple[Any, ...] | None = None

    @property
    def platform(self) -> str:
        return self.mesh.platform

    def __str__(self) -> str:
        return str(self.mesh)

    def text(self) -> tuple[Any, ...]:
        """Part of the key that the program's text depends on; the devices themselves are not in it."""
        specs = lambda all_: (
            None if all_ is None else tuple(s and (_shape(s.mesh), s.spec, s.memory_kind) for s in all_)
        )
        return _shape(self.mesh), specs(self.ins), specs(self.outs)


def _shape(mesh: AbstractMesh) -> Any:
    return mesh.shape_tuple


def mesh_attribute(mesh: AbstractMesh) -> str:
    """The definition of a mesh."""
    axes = ", ".join(f'"{name}"={size}' for name, size in mesh.shape.items())
    return f"#sdy.mesh<[{axes}]>"


def dimensions(spec: PartitionSpec, ndim: int, open_rest: bool = False) -> str:
    """The part of a sharding that is about dimensions: `[{"x"}, {?}]`.

    `open_rest` lets the compiler split every dimension further by the axes that the spec does not mention.
    """
    rest = ["?"] if open_rest else []
    entries = [["?"] if axes is UNCONSTRAINED else [*_quoted(axes), *rest] for axes in spec.axes(ndim)]
    return f"[{', '.join('{' + ', '.join(entry) + '}' for entry in entries)}]"


def _quoted(names: Sequence[str]) -> list[str]:
    return [f'"{name}"' for name in names]


def axes_list(names: Sequence[str]) -> str:
    """Axes as an attribute: `#sdy<manual_axes{"x", "y"}>`."""
    return f"#sdy<manual_axes{{{', '.join(_quoted(names))}}}>"
