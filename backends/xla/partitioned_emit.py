"""Operations of programs that run on a mesh: constraints, and computations on the parts of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxlib.mlir import ir

from functorch_like.avals import ShapedArray
from functorch_like.backends.xla import mlir
from functorch_like.backends.xla.mesh import AbstractMesh
from functorch_like.backends.xla.partition_spec import UNCONSTRAINED, PartitionSpec
from functorch_like.backends.xla.partitioning import Partitioning, axes_list, dimensions, mesh_attribute


class Manual(NamedTuple):
    """The computation on parts that is being emitted: its mesh, and the axes along which it is written for parts."""

    mesh: AbstractMesh
    axes: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        """True if it is written for parts along all axes, so that XLA splits nothing."""
        return len(self.axes) == len(self.mesh.axis_names)


class Partitioned:
    """The part of the emitter that is about meshes.

    Attributes:
        partitioning: partitioning of the module; None for a program on one device.
        manual: the computation on parts around the current operation; None outside of all.
    """

    __slots__ = ()
    partitioning: Partitioning | None
    manual: Manual | None
    _meshes: dict[Any, str]
    _channels: int
    _groups: int
    _module: Any
    place: Any
    _ip: Any
    _fill: Callable[..., Any]
    _unique: Callable[[str], str]
    op: Callable[..., Any]
    forbid_template: Callable[[], None]

    def mesh_symbol(self, mesh: AbstractMesh) -> str:
        """The name of a mesh in this module, which is defined there at its first use."""
        return self.mesh_of(mlir.parsed(mesh_attribute(mesh)))

    def mesh_of(self, attribute: Any, name: str = "mesh") -> str:
        """The name of the mesh that an attribute describes, which is defined there at its first use."""
        symbol = self._meshes.get(attribute)
        if symbol is None:
            symbol = self._meshes[attribute] = self._unique(name)
            attrs = {"sym_name": mlir.string(symbol), "mesh": attribute}
            at = ir.InsertionPoint.at_block_begin(self._module.body)
            ir.Operation.create("sdy.mesh", [], [], attrs, None, 0, mlir.unknown, at)
        return symbol

    def sharding(self, mesh: AbstractMesh, spec: PartitionSpec, ndim: int, open_rest: bool = False) -> Any:
        """Return the attribute for the sharding of an array."""
        return mlir.parsed(f"#sdy.sharding<@{self.mesh_symbol(mesh)}, {dimensions(spec, ndim, open_rest)}>")

    def border(self, each: Sequence[Any] | None, avals: Sequence[ShapedArray]) -> list[dict[str, Any]] | None:
        """The attributes of arguments or results with these shardings; None for what is left to the compiler."""
        if each is None:
            return None
        result: list[dict[str, Any]] = []
        for where, aval in zip(each, avals, strict=True):
            attrs: dict[str, Any] = {}
            if where is not None:
                attrs["sdy.sharding"] = self.sharding(where.mesh, where.spec, aval.ndim)
                if where.memory_kind not in (None, "device"):
                    attrs["mhlo.memory_kind"] = mlir.string(where.memory_kind)
            result.append(attrs)
        return result

    def replicated(self, x: Any) -> Any:
        """`x`, with a copy on each device."""
        assert self.partitioning is not None
        return self._constraint(x, self.partitioning.mesh, PartitionSpec())

    def _constraint(self, x: Any, mesh: AbstractMesh, spec: PartitionSpec) -> Any:
        attrs = {"sharding": self.sharding(mesh, spec, ir.RankedTensorType(x.type).rank)}
        return ir.Operation.create(
            "sdy.sharding_constraint", [x.type], [x], attrs, None, 0, self.place, self._ip
        ).result

    def unsplit(self, x: Any, dims: Sequence[int]) -> Any:
        """Return `x`, not split along some dimensions, for a fold of them.

        TRAP: over split dimensions XLA combines partial sums, products and extremes; it does not compile other folds.
        """
        mesh = self.manual.mesh if self.manual is not None else self.partitioning and self.partitioning.mesh
        if mesh is None or not dims or (self.manual is not None and self.manual.is_whole):
            return x
        ndim = ir.RankedTensorType(x.type).rank
        spec = PartitionSpec(*(None if d in dims else UNCONSTRAINED for d in range(ndim)))
        return self._constraint(x, mesh, spec)

    def on_first_device(self, count: int) -> Any:
        """The shardings of an operation with `count` results that runs on the first device alone."""
        symbol = self.mesh_of(mlir.parsed("#sdy.mesh<[], device_ids=[0]>"), "first_device")
        return mlir.parsed(f"#sdy.sharding_per_value<[{', '.join([f'<@{symbol}, []>'] * count)}]>")

    def constrain(self, x: Any, mesh: AbstractMesh, spec: PartitionSpec, aval: ShapedArray) -> Any:
        """`x`, split by the spec."""
        return self.op("sdy.sharding_constraint", [x], [aval], {"sharding": self.sharding(mesh, spec, aval.ndim)})

    def group(self, xs: Sequence[Any]) -> None:
        """Have the compiler split arrays of one shape alike."""
        self.forbid_template()
        self._groups += 1
        attrs = {"group_id": mlir.integer(self._groups - 1, 64)}
        for x in xs:
            ir.Operation.create("sdy.sharding_group", [], [x], attrs, None, 0, self.place, self._ip)

    def channel(self) -> Any:
        """The handle of a new collective."""
        self.forbid_template()
        self._channels += 1
        return mlir.parsed(f"#stablehlo.channel_handle<handle = {self._channels}, type = 1>")

    def partition_id(self) -> Any:
        """The position of the device in the mesh, u32[], inside of a computation on parts."""
        assert self.manual is not None
        number = ShapedArray((), np.uint32)
        mesh, axes = self.manual
        rest = [name for name in mesh.axis_names if name not in axes]
        here = lambda e: [e.op("stablehlo.partition_id", [], [number])]
        if not rest:
            return here(self)[0]
        # TRAP: while the compiler splits by the other axes, the number of the partition has no meaning. So read it in a
        # computation on parts along those axes, too.
        return self.by_parts(mesh, rest, [], [], [PartitionSpec()], [], [number], here)[0]

    def _shardings(self, mesh: AbstractMesh, specs: Sequence[PartitionSpec], avals: Sequence[Any], rest: bool) -> Any:
        symbol = self.mesh_symbol(mesh)
        each = [f"<@{symbol}, {dimensions(s, a.ndim, rest)}>" for s, a in zip(specs, avals, strict=True)]
        return mlir.parsed(f"#sdy.sharding_per_value<[{', '.join(each)}]>")

    def by_parts(
        self,
        mesh: AbstractMesh,
        axes: Sequence[str],
        operands: Sequence[Any],
        in_specs: Sequence[PartitionSpec],
        out_specs: Sequence[PartitionSpec],
        local_ins: Sequence[ShapedArray],
        outs: Sequence[ShapedArray],
        body: Callable[..., Sequence[Any]],
    ) -> list[Any]:
        """Emit a computation on the parts of arrays.

        Args:
            mesh: the mesh.
            axes: the axes along which it is written for parts; the compiler splits it further by the others.
            operands: whole arrays.
            in_specs: their partition by `axes`.
            out_specs: the partition of the results by `axes`.
            local_ins: avals of the parts.
            outs: avals of the whole results.
            body: emits the computation on parts.
        """
        around = self.manual
        # An inner computation is on parts along the axes of the outer ones as well.
        inner = Manual(mesh, (*(around.axes if around else ()), *axes))
        if self.on_one_device(mesh):
            return self._here(inner, body, operands)
        rest = len(axes) + (len(around.axes) if around else 0) < len(mesh.axis_names)
        attrs = {
            "in_shardings": self._shardings(mesh, in_specs, local_ins, rest),
            "out_shardings": self._shardings(mesh, out_specs, outs, rest),
            "manual_axes": mlir.parsed(axes_list([name for name in mesh.axis_names if name in axes])),
        }
        results = [mlir.types[aval] for aval in outs]
        made = ir.Operation.create(
            "sdy.manual_computation", results, list(operands), attrs, None, 1, self.place, self._ip
        )
        self.manual = inner
        try:
            self._fill(made.regions[0], local_ins, body, "sdy.return")
        finally:
            self.manual = around
        return list(made.results)

    def on_one_device(self, mesh: AbstractMesh) -> bool:
        """Return True if a computation on the parts of arrays is one on all of them."""
        return mesh.size == 1 and self.partitioning is not None and self.partitioning.mesh.size == 1

    def _here(self, manual: Manual, body: Callable[..., Sequence[Any]], operands: Sequence[Any]) -> list[Any]:
        """Emit a computation on parts that are whole arrays among the operations around it.

        TRAP: XLA leaves out the pass that takes manual computations of one device apart, and does not compile those
        that have effects.
        """
        around, self.manual = self.manual, manual
        try:
            return list(body(self, *operands))
        finally:
            self.manual = around
