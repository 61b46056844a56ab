"""Shardings of `jit`: broadcast over the leaves of arguments and results, and checked against them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functorch_like import tree
from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.backends.xla import mesh as meshes
from functorch_like.backends.xla import named_sharding, sharding
from functorch_like.backends.xla.configuration import current_mesh
from functorch_like.backends.xla.mesh import Mesh
from functorch_like.backends.xla.named_sharding import NamedSharding, SingleDeviceSharding
from functorch_like.backends.xla.partition_spec import PartitionSpec
from functorch_like.calling.call_signature import FlatCall, argument_path
from functorch_like.compiler.placement import device_for, split_of
from functorch_like.core import ArrayImpl
from functorch_like.errors import ArgumentError, DeviceError, FtError
from functorch_like.sharding.constraints import constrain


class JitShardings:
    """Shardings given as `in_shardings` and `out_shardings`.

    Args:
        name: of the function.
        ins: one sharding for all arguments, or a tuple with a prefix pytree for each positional argument that is not
            static; None leaves a leaf as it is.
        outs: a prefix pytree of the results; None leaves a leaf to the compiler.
    """

    def __init__(self, name: str, ins: Any, outs: Any) -> None:
        self.name, self.outs = name, outs
        self.ins = tuple(ins) if isinstance(ins, list) else ins
        self._spread: dict[Any, Any] = {}

    def _resolved(self, each: Sequence[Any], what: str) -> tuple[Any, ...]:
        result = tuple(None if s is None else named_sharding.from_user(s, f"{what} of jit({self.name})") for s in each)
        for s in result:
            if s is not None and type(s) not in (NamedSharding, SingleDeviceSharding):
                raise ArgumentError(f"{what} of jit({self.name}) has {s!r}", fix="use NamedSharding(mesh, spec)")
        return result

    def arguments(self, call: FlatCall) -> tuple[Any, ...]:
        """A sharding, or None, for each leaf of the arguments."""
        key = ("in", call.tree, call.statics, tuple(call.avals), current_mesh.value)
        result = self._spread.get(key)
        if result is None:
            result = self._spread[key] = self._resolved(self._over_arguments(call), "in_shardings")
            self._check(result, call.avals, lambda i: f"argument {argument_path(call.tree, i)}, {call.avals[i]!r},")
        return result

    def type_arguments(self, call: FlatCall) -> None:
        """Give the avals of arguments the Explicit axes that their shardings name."""
        avals = zip(call.avals, self.arguments(call), strict=True)
        call.avals = [a if s is None else a.split(s._explicit_axes(a.ndim)) for a, s in avals]

    def _over_arguments(self, call: FlatCall) -> list[Any]:
        args, kwargs = call.tree.unflatten(range(len(call.leaves)))
        if type(self.ins) is not tuple:
            return [self.ins] * len(call.leaves)
        if xla.flatten(kwargs)[0]:
            named = ", ".join(kwargs)
            raise ArgumentError(
                f"jit({self.name}) has in_shardings for positional arguments, but got {named} by name",
                fix="pass them by position, or give one sharding for all arguments",
            )
        static = {i for i, _ in call.statics[0]}
        dynamic = tuple(a for i, a in enumerate(args) if i not in static)
        if len(self.ins) != len(dynamic):
            raise ArgumentError(
                f"in_shardings of jit({self.name}) has {len(self.ins)} {'entry' if len(self.ins) == 1 else 'entries'} "
                f"for {len(dynamic)} argument{'s' * (len(dynamic) != 1)}",
                fix="give one entry for each positional argument that is not static, or one sharding for all",
            )
        return tree.broadcast_prefix(self.ins, dynamic, f"in_shardings of jit({self.name})")

    def results(self, traced: Any) -> tuple[Any, ...] | None:
        """A sharding, or None, for each leaf of the results; None where none was given."""
        if self.outs is None:
            return None
        key = ("out", traced.out_tree, tuple(traced.jaxpr.out_avals), current_mesh.value)
        result = self._spread.get(key)
        if result is None:
            avals = traced.jaxpr.out_avals
            whole = traced.out_tree.unflatten(range(len(avals)))
            what = f"out_shardings of jit({self.name})"
            result = self._resolved(tree.broadcast_prefix(self.outs, whole, what), "out_shardings")
            paths = tree.leaf_paths(traced.out_tree)
            self._check(result, avals, lambda i: f"result{paths[i]}, {avals[i]!r},")
            self._spread[key] = result
        return result

    def _check(self, each: Sequence[Any], avals: Sequence[ShapedArray], name: Any) -> None:
        for i, (where, aval) in enumerate(zip(each, avals, strict=True)):
            if type(where) is NamedSharding:
                try:
                    named_sharding.check_divides(where, aval.shape, name(i))
                except FtError as e:
                    e.operation = f"jit({self.name})"
                    raise

    def name_a_place(self, traced: Any, call: FlatCall) -> bool:
        """Return True if any sharding is given, which commits the results to their devices."""
        return any(s is not None for s in (*self.arguments(call), *(self.results(traced) or ())))

    def place(self, traced: Any, call: FlatCall) -> Any:
        """Placement of a call: a `Partitioning`, or a device where all shardings are None."""
        ins, outs = self.arguments(call), self.results(traced)
        every = [s for s in (*ins, *(outs or ())) if s is not None]
        if not every:
            return device_for(call.leaves)
        if any(type(s) is SingleDeviceSharding for s in every):
            device = self._place_on_device(every, ins, call)
            if outs is None or all(s is None or sharding.is_usual(s) for s in outs):
                return device
            # For results in other memory, compile for a mesh of that one device.
            mesh = meshes.make_mesh((1,), ("device",), devices=[device])
            moved = lambda s: None if s is None else named_sharding.named(mesh, PartitionSpec(), s.memory_kind)
            return split_of(call.leaves, mesh, (), tuple(map(moved, outs)))
        mesh = every[0].mesh
        self._check_meshes(mesh, every)
        for i, (leaf, where) in enumerate(zip(call.leaves, ins, strict=True)):
            if where is not None and type(leaf) is ArrayImpl and leaf._committed and leaf._sharding != where:
                self._check_placed(leaf, where, i, call)
        return split_of(call.leaves, mesh, ins, outs)

    def _place_on_device(self, every: Sequence[Any], ins: Sequence[Any], call: FlatCall) -> Any:
        """Return the one device that all shardings name; `ins` are those of the arguments."""
        place = every[0]
        if any(type(s) is not SingleDeviceSharding or s._device != place._device for s in every):
            other = next(s for s in every if type(s) is not type(place) or s != place)
            raise DeviceError(
                f"shardings of jit({self.name}) are on different devices: {place!r} and {other!r}",
                fix="a program runs on one device, or on the devices of one mesh",
            )
        for i, (leaf, where) in enumerate(zip(call.leaves, ins, strict=True)):
            if type(leaf) is ArrayImpl and leaf._committed:
                here = sharding.single_in(place._device, leaf._sharding.memory_kind) if where is None else where
                self._check_placed(leaf, here, i, call)
        return place._device

    def _check_meshes(self, mesh: Any, each: Sequence[Any]) -> None:
        if not isinstance(mesh, Mesh):
            raise ArgumentError(
                f"shardings of jit({self.name}) are on {mesh!r}, which has no devices",
                fix="use ft.make_mesh(...); ft.explain(f, mesh=...) plans for devices that are not there",
            )
        for s in each:
            if s is not None and s.mesh is not mesh and s.mesh._internal_device_list != mesh._internal_device_list:
                raise DeviceError(
                    f"shardings of jit({self.name}) are on different devices: {mesh!r} and {s.mesh!r}",
                    fix="use one mesh, or meshes of the same devices in the same order",
                )

    def _check_placed(self, leaf: Any, where: Any, position: int, call: FlatCall) -> None:
        if not named_sharding.is_equivalent_to(leaf._sharding, where, leaf.aval.ndim):
            raise ArgumentError(
                f"argument {argument_path(call.tree, position)} of jit({self.name}) is {leaf.aval!r} on "
                f"{leaf._sharding!r}, and in_shardings say {where!r}",
                fix="move it before: ft.device_put(x, sharding); or leave it out of in_shardings",
            )

    def constrain_arguments(self, call: FlatCall, operands: Sequence[Any]) -> list[Any]:
        """The operands of a call inside of another traced function, where shardings are constraints."""
        ins = self.arguments(call)
        return [x if s is None else constrain(x, s) for x, s in zip(operands, ins, strict=True)]

    def constrain_results(self, traced: Any, outs: Sequence[Any]) -> list[Any]:
        """The results of a call inside of another traced function, with their constraints."""
        each = self.results(traced)
        return (
            list(outs)
            if each is None
            else [o if s is None else constrain(o, s) for o, s in zip(outs, each, strict=True)]
        )
