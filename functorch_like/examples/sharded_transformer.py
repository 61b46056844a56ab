"""The transformer of `transformer.py` over a mesh: the same functions, split by shardings of their arguments.

M. Shoeybi et al., "Megatron-LM", arXiv:1909.08053, for the split by features; S. Rajbhandari et al., "ZeRO",
arXiv:1910.02054, for the split of parameters over the axis of the data.
"""

from __future__ import annotations

from typing import Any

import functorch_like as ft
from functorch_like import tree
from functorch_like.examples import transformer
from functorch_like.examples.transformer import Params, Sizes
from functorch_like.sharding import Mesh, NamedSharding
from functorch_like.sharding import PartitionSpec as P

#: Splits of parameters by their features. Of two layers in a row the first is split by its results, and the second by
#: its arguments, so that the values between them stay on their devices.
TENSOR_PARALLEL = {
    "words": P("model"),
    "places": P(),
    "blocks": {
        "qkv": P(None, None, "model"),
        "out": P(None, "model"),
        "up": P(None, None, "model"),
        "down": P(None, "model"),
    },
}


def shardings(params: Params, mesh: Mesh, *, fsdp: bool = False) -> Any:
    """Return a sharding for each parameter on a mesh with the axes "data" and "model".

    Args:
        params: the parameters.
        mesh: the mesh.
        fsdp: split each one over the axis "data" too, along a dimension that "model" leaves whole.

    >>> mesh = ft.make_mesh((1, 1), ("data", "model"))
    >>> params = transformer.init(ft.random.key(0), Sizes(words=8, length=4, width=8, heads=2, layers=1))
    >>> shardings(params, mesh, fsdp=True)["blocks"]["up"].spec
    P(None, 'data', 'model')
    """

    def one(x: Any, spec: P) -> NamedSharding:
        entries = list(spec) + [None] * (x.ndim - len(spec))
        free = [d for d, n in enumerate(x.shape) if entries[d] is None and n % mesh.shape["data"] == 0]
        if fsdp and free:
            entries[max(free, key=lambda d: x.shape[d])] = "data"
        return NamedSharding(mesh, P(*entries))

    return tree.map(one, params, TENSOR_PARALLEL)


def train_step(
    params: Params, sizes: Sizes, mesh: Mesh, *, fsdp: bool = False, rate: float = 0.1
) -> tuple[Any, Params]:
    """Return the compiled step over a mesh, and the parameters where it takes them.

    The batch is split over the axis "data". The step is that of one device; XLA finds out what to exchange.

    >>> sizes = Sizes(words=8, length=4, width=8, heads=2, layers=1)
    >>> mesh = ft.make_mesh((1, 1), ("data", "model"))
    >>> step, params = train_step(transformer.init(ft.random.key(0), sizes), sizes, mesh)
    >>> params, first = step(params, ft.numpy.arange(10).reshape(2, 5) % 8)
    >>> params, second = step(params, ft.numpy.arange(10).reshape(2, 5) % 8)
    >>> float(second) < float(first)
    True
    """
    places = shardings(params, mesh, fsdp=fsdp)
    step = ft.parallel.data_parallel(transformer.train_step(sizes, rate), mesh=mesh, state=places)
    return step, ft.device_put(params, places)
