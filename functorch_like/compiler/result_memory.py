"""Results of programs for GPUs, in the memory where their reader expects them.

A program may keep a value in the memory of the host (`memory_placement`). XLA refuses to return it, unless the result
is declared to be there, as `out_shardings` does. Any other result is brought back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functorch_like.ir.jaxpr import Atom, Equation, Jaxpr, Var
from functorch_like.primitives.effects.memory_placement import memory_placement


def brought_back(e: Any, jaxpr: Jaxpr, results: Sequence[Any], partitioning: Any) -> list[Any]:
    """Return the results of a program, in the memory of the device where no sharding names another one.

    Args:
        e: the emitter.
        jaxpr: the program.
        results: its results, as they were emitted.
        partitioning: shardings of arguments and results; None for one device.
    """
    shardings = [None] * len(results) if partitioning is None or partitioning.outs is None else partitioning.outs
    outs: list[Any] = []
    for x, aval, elsewhere, where in zip(results, jaxpr.out_avals, _elsewhere(jaxpr), shardings, strict=True):
        if elsewhere and (where is None or where.memory_kind in (None, "device")):
            e.ins = e.outs = [aval]
            x = memory_placement.lower(e, x, kind="device")
        outs.append(x)
    return outs


def _elsewhere(jaxpr: Jaxpr) -> list[bool]:
    """Return a mask of the outputs of a jaxpr that are in other memory than the device's."""
    makers: dict[Var, tuple[Equation, int]] = {v: (e, k) for e in jaxpr.equations for k, v in enumerate(e.outputs)}

    def is_elsewhere(a: Atom) -> bool:
        if type(a) is not Var or a not in makers:
            return False
        e, k = makers[a]
        if e.prim is memory_placement:
            return e.params["kind"] != "device"
        return e.prim.kind == "call" and _elsewhere(e.params["jaxpr"])[k]

    return [is_elsewhere(a) for a in jaxpr.outputs]
