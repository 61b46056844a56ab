"""Checks inside of `shard_map`: each device checks its own shards, and the failure of the first device counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import core
from functorch_like.backends.xla.partition_spec import PartitionSpec
from functorch_like.checkify.rules import RULES
from functorch_like.checkify.run import checked
from functorch_like.checkify.state import State, first_true
from functorch_like.core import Primitive, aval_of
from functorch_like.ir.jaxpr import Jaxpr, evaluate
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.higher_order.shard_map.shard_map import axes_in_scope, shard_map
from functorch_like.primitives.updates.dynamic_slice import dynamic_slice


def _shard_map(
    state: State, source: Any, prim: Primitive, operands: Sequence[Any], params: dict[str, Any]
) -> list[Any]:
    jaxpr: Jaxpr = params["jaxpr"]
    mesh, axes = params["mesh"], params["axes"]
    count = len(jaxpr.outputs)
    with axes_in_scope(mesh, axes):
        part = checked(jaxpr, state.checks)
    if part.same:
        return list(prim(*operands, **params))

    def fun(*args: Any) -> list[Any]:
        outs = evaluate(part.jaxpr, args)
        return [*outs[:count], *(structural.reshape(x, shape=(1, *aval_of(x).shape)) for x in outs[count:])]

    def make() -> Jaxpr:
        with axes_in_scope(mesh, axes):
            avals = [*map(aval_of, part.consts), *jaxpr.in_avals]
            name, origin = jaxpr.name, f"checks of {jaxpr.name}"
            made, consts = stage(fun, avals, name=name, origin=origin, parent=core.EVALUATE, chain="")
        assert not consts  # `fun` closes over no arrays
        return made

    failure_count = len(part.places.avals())
    outs = prim(
        *part.consts,
        *operands,
        jaxpr=jaxpr.memo(("checkify shard_map", state.checks, axes), make),
        mesh=mesh,
        axes=axes,
        in_specs=(*(PartitionSpec() for _ in part.consts), *params["in_specs"]),
        out_specs=(*params["out_specs"], *(PartitionSpec(axes) for _ in range(failure_count))),
        check=params["check"],
    )
    failures = outs[count:]
    if failure_count:
        codes = failures[0]
        _, device = first_true(elementwise.ne(codes, structural.full_like(codes, 0)))
        state.absorb(part.places, [_row(x, device) for x in failures])
    return list(outs[:count])


def _row(stack: Any, index: Any) -> Any:
    """Return one element along the first axis; the last one for an index past the end."""
    shape = aval_of(stack).shape
    zero = np.zeros((), np.int32)
    row = dynamic_slice(stack, index, *(zero for _ in shape[1:]), slice_sizes=(1, *shape[1:]))
    return structural.reshape(row, shape=shape[1:])


RULES[shard_map] = _shard_map
