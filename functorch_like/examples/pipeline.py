"""A pipeline: layers on different devices, through which small batches pass one behind the other.

Y. Huang et al., "GPipe", arXiv:1811.06965. The derivative of the pipeline is a pipeline in the other direction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax, tree
from functorch_like.sharding import Mesh
from functorch_like.sharding import PartitionSpec as P


def pipeline(layer: Callable[[Any, Any], Any], mesh: Mesh, axis: str = "stage") -> Callable[[Any, Any], Any]:
    """Return the function that applies layers one after the other, each on its device along an axis.

    Args:
        layer: `layer(params, x)`, which returns an array like `x`.
        mesh: the mesh.
        axis: the axis; its size is the number of layers.

    Returns:
        A function of parameters, whose first axis counts layers, and of `x`, whose first axis counts small batches.

    >>> mesh = ft.make_mesh((1,), ("stage",))
    >>> pipeline(lambda w, x: x @ w, mesh)(2 * fnp.eye(3)[None], fnp.ones((4, 2, 3)))[0, 0].tolist()
    [2.0, 2.0, 2.0]
    """
    stages = mesh.shape[axis]
    onward = [(i, i + 1) for i in range(stages - 1)]

    def run(params: Any, batches: Any) -> Any:
        own = tree.map(lambda p: p[0], params)
        stage, count = lax.axis_index(axis), batches.shape[0]
        empty = fnp.zeros(batches.shape[1:], batches.dtype)

        def step(arrived: Any, t: Any) -> tuple[Any, Any]:
            # The first stage takes a batch from outside, the others the result of the stage before.
            first = lax.dynamic_index_in_dim(batches, fnp.minimum(t, count - 1), 0, keepdims=False)
            out = layer(own, fnp.where(stage == 0, first, arrived))
            return lax.ppermute(out, axis, onward), out

        _, outs = lax.scan(step, empty, fnp.arange(count + stages - 1))
        # Batch number i leaves the last stage at step i + stages - 1.
        last = fnp.where(stage == stages - 1, outs[stages - 1 :], 0)
        return lax.psum(last, axis)

    return ft.shard_map(run, mesh=mesh, in_specs=(P(axis), P()), out_specs=P(), axis_names={axis})
