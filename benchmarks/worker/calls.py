"""Cost of one call of a compiled program on small arrays: dispatch alone."""

from collections.abc import Callable
from types import SimpleNamespace

from clock import repeated, settle

Sampler = Callable[[], float]


def block(result: object) -> None:
    """Wait for an array, or for any leaf of a dictionary or list of arrays."""
    while isinstance(result, (dict, list)):
        result = next(iter(result.values() if isinstance(result, dict) else result))
    result.block_until_ready()


def arrays(api: SimpleNamespace) -> tuple:
    """Two small arrays."""
    return api.fnp.arange(8.0), api.fnp.ones(8)


def jit_call(api: SimpleNamespace) -> Sampler:
    """A jitted function of two arrays."""
    x, y = arrays(api)
    f = api.ft.jit(lambda x, y: x * y + x)
    settle(f, x, y)
    return repeated(lambda: f(x, y), block)


def jit_call_tree(api: SimpleNamespace, leaves: int = 40) -> Sampler:
    """A jitted function of one dictionary of arrays, returned changed."""
    tree = {f"layer{i}": api.fnp.arange(8.0) for i in range(leaves)}
    f = api.ft.jit(lambda tree: {name: leaf + 1 for name, leaf in tree.items()})
    settle(f, tree)
    return repeated(lambda: f(tree), block)


def jit_call_list(api: SimpleNamespace, leaves: int) -> Sampler:
    """A jitted function of one list of arrays, returned changed."""
    arrays = [api.fnp.arange(8.0) for _ in range(leaves)]
    f = api.ft.jit(lambda arrays: [leaf + 1 for leaf in arrays])
    settle(f, arrays)
    return repeated(lambda: f(arrays), block)


def eager_add(api: SimpleNamespace) -> Sampler:
    """A sum by the operator."""
    x, y = arrays(api)
    return repeated(lambda: x + y, block)


def eager_lax_add(api: SimpleNamespace) -> Sampler:
    """A sum by `lax.add`, the function behind the operator."""
    x, y = arrays(api)
    return repeated(lambda: api.lax.add(x, y), block)


def eager_index(api: SimpleNamespace) -> Sampler:
    """One element of a vector."""
    v = api.fnp.arange(8.0)
    return repeated(lambda: v[0], block)


def eager_reshape(api: SimpleNamespace) -> Sampler:
    """A new shape for the same elements."""
    v = api.fnp.arange(8.0)
    return repeated(lambda: v.reshape(2, 4), block)


def eager_mean(api: SimpleNamespace) -> Sampler:
    """The mean of a vector."""
    v = api.fnp.arange(8.0)
    return repeated(lambda: api.fnp.mean(v), block)


def eager_sum(api: SimpleNamespace) -> Sampler:
    """The sum of a vector."""
    v = api.fnp.arange(8.0)
    return repeated(lambda: api.fnp.sum(v), block)


def eager_where(api: SimpleNamespace) -> Sampler:
    """A choice between two vectors."""
    x, y = arrays(api)
    which = x > 3
    return repeated(lambda: api.fnp.where(which, x, y), block)


def eager_compare(api: SimpleNamespace) -> Sampler:
    """A comparison by its operator."""
    x, y = arrays(api)
    return repeated(lambda: x < y, block)


def eager_broadcast(api: SimpleNamespace) -> Sampler:
    """The sum of a matrix and a vector."""
    x, y = api.fnp.ones((4, 8)), api.fnp.arange(8.0)
    return repeated(lambda: x + y, block)


CASES = {
    case.__name__: case
    for case in (
        jit_call, jit_call_tree, eager_add, eager_lax_add, eager_index, eager_reshape,
        eager_mean, eager_sum, eager_where, eager_compare, eager_broadcast,
    )
} | {
    "jit_call_tree_90": lambda api: jit_call_tree(api, 90),
    "jit_call_list_40": lambda api: jit_call_list(api, 40),
    "jit_call_list_90": lambda api: jit_call_list(api, 90),
}  # fmt: skip
