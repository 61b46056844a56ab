"""Cost of one call on several devices: small arrays split over a mesh of all of them, each call waited for.

The wait matters: on jaxlib before 0.12 JAX deadlocks with 33 unfinished programs that have collectives.
"""

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
from clock import repeated, settle

Sampler = Callable[[], float]
ROWS = 64


def placed(api: SimpleNamespace, *spec: str) -> Callable:
    """Return a function that splits an array over all devices by a spec."""
    sharding = api.ft.sharding
    mesh = sharding.Mesh(np.array(api.ft.devices()), ("data",))
    where = sharding.NamedSharding(mesh, sharding.PartitionSpec(*spec))
    return lambda x: api.ft.device_put(x, where)


def waited(function: Callable, *arguments: object) -> Sampler:
    """Return a sampler of calls of a jitted function, each waited for."""

    def call() -> None:
        result = function(*arguments)
        leaf = next(iter(result.values())) if isinstance(result, dict) else result
        leaf.block_until_ready()

    settle(function, *arguments)
    return repeated(call)


def sharded_call(api: SimpleNamespace) -> Sampler:
    """An elementwise function of two arrays: no device waits for another."""
    put = placed(api, "data")
    return waited(
        api.ft.jit(lambda x, y: x * y + x), put(np.arange(ROWS, dtype=np.float32)), put(np.ones(ROWS, np.float32))
    )


def sharded_call_tree(api: SimpleNamespace) -> Sampler:
    """An elementwise function of a dictionary of forty arrays."""
    put = placed(api, "data")
    tree = {f"layer{i}": put(np.arange(ROWS, dtype=np.float32)) for i in range(40)}
    return waited(api.ft.jit(lambda tree: {name: leaf + 1 for name, leaf in tree.items()}), tree)


def sharded_sum(api: SimpleNamespace) -> Sampler:
    """A sum over a split axis: the partitioner inserts an all-reduce."""
    x = placed(api, "data")(np.arange(ROWS, dtype=np.float32))
    return waited(api.ft.jit(lambda x: (x * x).sum()), x)


def sharded_psum(api: SimpleNamespace) -> Sampler:
    """A sum over devices, written in a shard_map."""
    spec = api.ft.sharding.PartitionSpec
    x = placed(api, "data")(np.arange(ROWS, dtype=np.float32))
    total = api.ft.shard_map(
        lambda part: api.lax.psum(part, "data"), mesh=x.sharding.mesh, in_specs=spec("data"), out_specs=spec()
    )
    return waited(api.ft.jit(total), x)


def sharded_step(api: SimpleNamespace) -> Sampler:
    """A step of gradient descent: the batch is split, the weights are whole on each device."""
    weights = placed(api)(np.ones((8, 4), np.float32))
    batch = placed(api, "data")(np.ones((ROWS, 8), np.float32))
    loss = lambda weights, batch: api.fnp.mean((batch @ weights) ** 2)
    step = api.ft.jit(lambda weights, batch: weights - 0.1 * api.ft.grad(loss)(weights, batch))
    return waited(step, weights, batch)


def sharded_numpy(api: SimpleNamespace) -> Sampler:
    """An elementwise function of a split array and a NumPy array, which each call splits."""
    x = np.arange(ROWS, dtype=np.float32)
    return waited(api.ft.jit(lambda x, y: x * y + x), placed(api, "data")(x), x)


def sharded_put(api: SimpleNamespace) -> Sampler:
    """`device_put` of a NumPy array, split."""
    put, x = placed(api, "data"), np.arange(ROWS, dtype=np.float32)
    return waited(lambda: put(x))


CASES = {
    case.__name__: case
    for case in (sharded_call, sharded_call_tree, sharded_sum, sharded_psum, sharded_step, sharded_numpy, sharded_put)
}
