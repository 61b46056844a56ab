"""Plans of programs over meshes of absent devices: memory, collectives, and an estimate of the time of one run.

The model of time is simple. Computing takes the longer of `flops / rate` and `bytes / memory bandwidth`, where bytes
are those that kernels read and write. A collective over n devices with b bytes on each takes, on a ring with links of
bandwidth w and latency l:

    all-reduce                        2 (n - 1) / n * b / w + 2 (n - 1) * l
    all-gather, reduce-scatter        (n - 1) / n * b / w + (n - 1) * l     (b is the larger of operand and result)
    all-to-all                        (n - 1) / n * b / w + (n - 1) * l
    collective-permute                b / w + l

A collective over several axes of the mesh has the bandwidth of the slowest. The estimate is a range: with all
collectives overlapped with computing, and with none.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from functorch_like import tree
from functorch_like.avals import ShapeDtypeStruct
from functorch_like.backends.xla import compile_only, gpu_targets, named_sharding, program_costs
from functorch_like.backends.xla.mesh import AbstractMesh, Mesh
from functorch_like.backends.xla.named_sharding import NamedSharding
from functorch_like.calling import api_boundary
from functorch_like.compiler.placement import split_of
from functorch_like.core import ArrayImpl
from functorch_like.errors import ArgumentError, bytes_text, nearest
from functorch_like.markup import elements, terminal
from functorch_like.markup.display import Display
from functorch_like.sharding import use_mesh
from functorch_like.source_info import name_of
from functorch_like.transforms.jit import jit

_PER_HOST = 8


@dataclasses.dataclass(frozen=True)
class Rates:
    """Rates of one device, in operations and bytes a second; the user's figures.

    Attributes:
        flops: operations of products.
        memory: bytes read and written.
        links: bytes sent to other devices: one figure, or one for each axis of the mesh.
        latency: seconds of one step of a collective.
    """

    flops: float
    memory: float
    links: float | Mapping[str, float]
    latency: float = 0.0

    def link(self, axes: Sequence[str]) -> float:
        """The bandwidth along axes."""
        if isinstance(self.links, Mapping):
            known = [self.links[name] for name in axes if name in self.links]
            return min(known or list(self.links.values()))
        return self.links


def rates_from(rates: Any) -> Rates | None:
    """Return the user's rates, which may be a dict."""
    if rates is None or isinstance(rates, Rates):
        return rates
    try:
        made = Rates(**rates)
        positive = [
            made.flops,
            made.memory,
            *(made.links.values() if isinstance(made.links, Mapping) else [made.links]),
        ]
        if not all(number > 0 for number in positive) or made.latency < 0:
            raise ValueError
    except (TypeError, ValueError):
        raise ArgumentError(
            f"rates={rates!r:.100} are not rates of a device",
            fix='give {"flops": ..., "memory": ..., "links": ...}: positive numbers per second, links also by axis',
        ) from None
    return made


@dataclasses.dataclass(frozen=True)
class Exchange:
    """Collectives of one kind over the same axes, in one run on one device.

    Attributes:
        kind: such as "all-reduce".
        axes: of the mesh; () where the text of the program does not give them.
        devices: in a group.
        count: number of them.
        bytes: total size of all of them.
    """

    kind: str
    axes: tuple[str, ...]
    devices: int
    count: int
    bytes: int

    def seconds(self, rates: Rates) -> float:
        """The time of all of them, by the model of this module."""
        steps = 1 if self.kind == "collective-permute" else self.devices - 1
        share = 1.0 if self.kind == "collective-permute" else (self.devices - 1) / max(self.devices, 1)
        twice = 2 if self.kind == "all-reduce" else 1
        return twice * (share * self.bytes / rates.link(self.axes) + self.count * steps * rates.latency)


class Plan(Display):
    """Costs of a program on each device of a mesh; prints as text.

    Attributes:
        name: of the function.
        mesh: names and sizes of its axes.
        target: "cpu", or the name of a GPU.
        memory: bytes on each device: argument, output, temp, alias, and total.
        flops: operations of products, on each device.
        traffic: bytes that kernels read and write, on each device.
        exchanges: the collectives, those with most bytes first.
        rates: rates for the estimate of time, or None.
        text: the optimised HLO.
    """

    def __init__(self, name: str, mesh: AbstractMesh, target: str, program: Any, rates: Rates | None) -> None:
        self.name, self.mesh, self.target, self.rates, self.text = name, mesh, target, rates, program.text
        costs = program_costs.costs(program.text)
        memory = dict(program.memory)
        memory["total"] = memory["argument"] + memory["output"] + memory["temp"] - memory["alias"]
        self.memory, self.flops, self.traffic = memory, costs.flops, costs.bytes
        self.exchanges = _exchanges(costs.collectives, mesh)

    @property
    def computing(self) -> float:
        """Seconds of computing.

        Raises:
            ArgumentError: where no rates were given.
        """
        rates = self._rates()
        return max(self.flops / rates.flops, self.traffic / rates.memory)

    @property
    def communicating(self) -> float:
        """Seconds of all collectives, one after the other."""
        return sum(each.seconds(self._rates()) for each in self.exchanges)

    @property
    def seconds(self) -> tuple[float, float]:
        """Bounds for one run: with all collectives overlapped with computing, and with none."""
        return max(self.computing, self.communicating), self.computing + self.communicating

    def _rates(self) -> Rates:
        if self.rates is None:
            raise ArgumentError("the time of a plan needs rates", fix="explain(f, mesh=mesh, rates={...})")
        return self.rates

    def layout(self, paint: terminal.Paint = terminal.plain) -> str:
        """Return memory, work and collectives of each device, as text."""
        size = bytes_text
        m = self.memory
        of = f" of {size(gpu_targets.memory_size(self.target))}" if self.target in gpu_targets.NAMES else ""
        lines = [
            f"{self.name} on {self.mesh!r}: {self.mesh.size} devices ({self.target})",
            f"  memory on each: {size(m['total'])}{of}: arguments {size(m['argument'])}, results {size(m['output'])}, "
            f"temporaries {size(m['temp'])}, results in place of arguments {size(m['alias'])}",
            f"  work on each: {_engineering(self.flops)} operations of products, {size(self.traffic)} read and written",
            "  collectives on each:" + ("" if self.exchanges else " none"),
        ]
        for each in self.exchanges:
            over = ", ".join(map(repr, each.axes)) or "?"
            times = "once" if each.count == 1 else f"{each.count} times"
            lines.append(f"    {each.kind} over {over} ({each.devices} devices) {times}: {size(each.bytes)}")
        if self.rates is not None:
            low, high = self.seconds
            lines.append(
                f"  time of one run: {_time(low)} to {_time(high)}: {_time(self.computing)} computing, "
                f"{_time(self.communicating)} communicating"
            )
        wrap = lambda line: terminal.wrapped(line.strip(), " " * (len(line) - len(line.lstrip())), " " * 6)
        head, *rest = [part for line in lines for part in wrap(line)]
        return "\n".join([paint(head, "head"), *rest])

    def markup(self) -> elements.Markup:
        """Return the memory as bars, and a table of the collectives."""
        names = {"argument": "arguments", "output": "results", "temp": "temporaries", "alias": "results in place"}
        total = self.memory["total"] or 1
        memory = [
            (names.get(name, name), bytes_text(size), elements.bar(size / total)) for name, size in self.memory.items()
        ]
        head = f"{self.name} on {self.mesh!r}: {self.mesh.size} devices ({self.target})"
        work = f"{_engineering(self.flops)} operations of products, {bytes_text(self.traffic)} read and written"
        rows = [
            (each.kind, ", ".join(map(repr, each.axes)) or "?", each.devices, each.count, bytes_text(each.bytes))
            for each in self.exchanges
        ]
        exchanges = elements.table(("collective", "over", "devices", "times", "bytes"), rows, numbers=[2, 3, 4])
        time = ("time of one run", f"{_time(self.seconds[0])} to {_time(self.seconds[1])}") if self.rates else ("", "")
        return elements.join(
            [
                elements.element("div", head, cls="head"),
                elements.table(("memory on each device", "", ""), memory, numbers=[1]),
                elements.facts([("work on each device", work), time]),
                exchanges if rows else elements.element("div", "no collectives"),
            ]
        )


def _exchanges(found: Sequence[program_costs.Collective], mesh: AbstractMesh) -> list[Exchange]:
    sums: dict[tuple[str, tuple[str, ...], int], tuple[int, int]] = {}
    for each in found:
        axes = program_costs.axes_of(each.group, mesh.axis_names, mesh.axis_sizes)
        devices = len(each.group) or mesh.size
        if each.kind == "collective-permute" and axes:
            devices = math.prod(mesh.shape[name] for name in axes)
        count, total = sums.get((each.kind, axes, devices), (0, 0))
        sums[each.kind, axes, devices] = count + each.count, total + each.count * each.bytes
    made = [Exchange(kind, axes, devices, *sizes) for (kind, axes, devices), sizes in sums.items()]
    return sorted(made, key=lambda each: -each.bytes)


def _engineering(number: float) -> str:
    for power, letter in ((15, "P"), (12, "T"), (9, "G"), (6, "M"), (3, "k")):
        if number >= 10**power:
            return f"{number / 10**power:.3g} {letter}"
    return f"{number:.3g}"


def _time(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def plan(
    fun: Callable[..., Any], mesh: AbstractMesh, *, target: str = "cpu", rates: Rates | None = None
) -> Callable[..., Plan]:
    """Return a function of `fun`'s arguments that compiles it for a mesh and returns a `Plan`; nothing runs.

    Args:
        fun: a function, jitted or not.
        mesh: names and sizes of axes; the devices need not be there.
        target: "cpu", for as many CPU devices; or a GPU: "h200", "h100", "a100", with the CUDA plugin installed.
        rates: of each device, for an estimate of time.

    Raises:
        ArgumentError: for something that is not a mesh, or another target.
    """
    if not isinstance(mesh, AbstractMesh):
        raise ArgumentError(
            f"mesh={mesh!r:.60} of type {type(mesh).__name__} is not a mesh",
            fix='AbstractMesh((8, 4), ("data", "model"))',
        )
    if target != "cpu" and target not in gpu_targets.NAMES:
        known = ("cpu", *gpu_targets.NAMES)
        raise ArgumentError(
            f"target={target!r} is unknown{nearest(target, known)}", fix=f"use one of {', '.join(known)}"
        )
    name = name_of(fun)

    @api_boundary.public
    def planned(*args: Any, **kwargs: Any) -> Plan:
        devices = _devices(target, mesh.size)
        there = Mesh(_grid(devices, mesh.axis_sizes), mesh.axis_names, mesh.axis_types)
        args, kwargs = tree.map(lambda leaf: _on(leaf, mesh, there), (args, kwargs))
        jitted: Any = fun if hasattr(fun, "trace") else jit(fun)
        with use_mesh(there):
            traced = jitted.trace(*args, **kwargs)
            if getattr(traced.place, "mesh", None) is None:
                leaves = tree.leaves((args, kwargs))
                traced = traced.placed(
                    split_of(traced.in_avals if len(leaves) != len(traced.in_avals) else leaves, there)
                )
            module = traced.lower().compiler_ir()
        program = compile_only.compile(module, devices, name=name)
        return Plan(name, mesh.abstract_mesh, target, program, rates)

    return planned


def _devices(target: str, count: int) -> list[Any]:
    if target == "cpu":
        return compile_only.cpu_devices(count)
    hosts = -(-count // _PER_HOST)
    return compile_only.devices(target, hosts, min(count, _PER_HOST))[:count]


def _grid(devices: Sequence[Any], sizes: Sequence[int]) -> np.ndarray[Any, Any]:
    grid = np.empty(len(devices), object)
    grid[:] = devices
    return grid.reshape(sizes)


def _on(leaf: Any, mesh: AbstractMesh, there: Mesh) -> Any:
    """An argument as a shape, with its sharding on the mesh that is compiled for."""
    if not isinstance(leaf, (ShapeDtypeStruct, ArrayImpl, np.ndarray)):
        return leaf
    where = leaf._sharding if type(leaf) is ArrayImpl else getattr(leaf, "sharding", None)
    if type(where) is not NamedSharding:
        return ShapeDtypeStruct(leaf.shape, leaf.dtype)
    if where.mesh.shape_tuple != mesh.shape_tuple:
        raise ArgumentError(
            f"an argument of shape {tuple(leaf.shape)} is on {where.mesh!r}, and the plan is for {mesh!r}",
            fix="use one mesh for the plan and the shardings",
        )
    return ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=named_sharding.named(there, where.spec))
