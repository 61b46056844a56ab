"""Moving arrays between shardings on the same devices, by compiled programs that exchange their parts."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from functorch_like.avals import ShapedArray
from functorch_like.backends.xla import counters, emit, executable, explicit_types, memory, window
from functorch_like.backends.xla.named_sharding import on_mesh
from functorch_like.backends.xla.partitioning import Partitioning


def reshard(x: Any, where: Any) -> Any:
    """Return an array split by `where`, which is on the devices of the array, in the same order."""
    counters.device_to_device += 1
    inner, windowed = _mover(x.aval.strong().split(None), x._sharding, where)
    results = window.dispatch(inner, [x]) if windowed else inner.execute_sharded([x])
    return results.consume_with_handlers([executable.handler(explicit_types.typed(x.aval, where), where, True)])[0]


@lru_cache(256)
def _mover(aval: ShapedArray, source: Any, target: Any) -> tuple[Any, bool]:
    """The compiled identity between two shardings, and whether its dispatches are counted."""
    mesh = target.mesh
    partitioning = Partitioning(mesh, (on_mesh(source, mesh, aval.ndim) or source,), (target,))
    make = lambda: emit.build(
        "reshard",
        [aval],
        lambda e, x: [x],
        platform=mesh.platform,
        partitioning=partitioning,
        out_avals=[aval],
    )
    inner = executable.loaded(make, mesh, None, None, "reshard", None, ())
    return inner, window.is_needed(inner, mesh)


memory.on_clear(_mover.cache_clear)
