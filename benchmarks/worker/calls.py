"""Cost of one call when everything is compiled and the arrays are small: dispatch alone."""

from collections.abc import Callable
from types import SimpleNamespace

from clock import repeated, settle

Sampler = Callable[[], float]


def block(result: object) -> None:
    """Wait for an array, or for any leaf of a dictionary of arrays."""
    leaf = next(iter(result.values())) if isinstance(result, dict) else result
    leaf.block_until_ready()


def arrays(api: SimpleNamespace) -> tuple:
    """Two small arrays."""
    return api.fnp.arange(8.0), api.fnp.ones(8)


def jit_call(api: SimpleNamespace) -> Sampler:
    """A jitted function of two arrays."""
    x, y = arrays(api)
    f = api.ft.jit(lambda x, y: x * y + x)
    settle(f, x, y)
    return repeated(lambda: f(x, y), block)


def jit_call_tree(api: SimpleNamespace) -> Sampler:
    """A jitted function of one dictionary of forty arrays, returned changed."""
    tree = {f"layer{i}": api.fnp.arange(8.0) for i in range(40)}
    f = api.ft.jit(lambda tree: {name: leaf + 1 for name, leaf in tree.items()})
    settle(f, tree)
    return repeated(lambda: f(tree), block)


def eager_add(api: SimpleNamespace) -> Sampler:
    """The operator."""
    x, y = arrays(api)
    return repeated(lambda: x + y, block)


def eager_lax_add(api: SimpleNamespace) -> Sampler:
    """The function behind the operator."""
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


CASES = {
    case.__name__: case for case in (jit_call, jit_call_tree, eager_add, eager_lax_add, eager_index, eager_reshape)
}
