"""Nested containers, flattened in C++. The registry is the package's: all users of jaxlib share the default one."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from functorch_like.backends.xla import nesting
from functorch_like.backends.xla.jaxlib_api import _jax
from functorch_like.errors import TreeError

PyTreeDef = _jax.pytree.PyTreeDef

# TRAP: C++ finds every other object neither equal nor unequal, and raises for None.
_equal = PyTreeDef.__eq__


def _same_structure(self: Any, other: object) -> bool:
    if type(other) is PyTreeDef:
        return _equal(self, other)
    return False if hasattr(type(other), "__array__") else NotImplemented  # arrays would compare element by element


PyTreeDef.__eq__ = _same_structure
PyTreeDef.__ne__ = object.__ne__  # the opposite of __eq__

# The parts of a path, as flatten_with_path gives them.
DictKey = _jax.pytree.DictKey
SequenceKey = _jax.pytree.SequenceKey
GetAttrKey = _jax.pytree.GetAttrKey
FlattenedIndexKey = _jax.pytree.FlattenedIndexKey
registry = _jax.pytree.PyTreeRegistry(
    enable_none=True, enable_tuple=True, enable_namedtuple=True, enable_list=True, enable_dict=True
)

# By these, pickle and copy find it, and with it structures.
registry.__module__, registry.__name__ = __name__, "registry"

_call: Any = nesting.call  # its type states that it takes a function first, not another `call`
_those, _flatten = nesting.those, registry.flatten
# The C++ method itself.
flatten_one_level = registry.flatten_one_level  # (tree) -> (children, aux data), None for a leaf
register_node = registry.register_node  # (type, to_iterable, from_iterable[, to_iterable_with_keys])
register_dataclass_node = registry.register_dataclass_node  # (type, data_fields, meta_fields)
is_node = registry.is_node


def flatten_one_level_with_keys(tree: Any) -> Any:
    """Pairs of key and child, and the aux data; None for a leaf."""
    result = registry.flatten_one_level_with_keys(tree)
    fields = getattr(tree, "_fields", None) if isinstance(tree, tuple) else None
    # A class that was registered has keys and aux data of its own; for other named tuples the aux data is the class.
    if fields is not None and result is not None and result[1] is type(tree):
        # TRAP: C++ gives every child of a named tuple the key of the first.
        keys = [GetAttrKey(name) for name in fields]
        return [(key, child) for key, (_, child) in zip(keys, result[0], strict=True)], result[1]
    return result


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], Any]:
    """The leaves of a tree and its structure; 0.6 us for three leaves.

    Raises:
        TreeDepthError: for a tree that contains itself, or is nested too deep.
        TreeError: where the keys of a dict cannot be sorted.
    """
    try:
        return _call(*(*_those, _flatten, tree, is_leaf))
    except Exception as e:
        error = nesting.refused(e, flatten_one_level_with_keys, tree, is_leaf)
        if error is e:
            raise
        raise error from None


def flatten_with_path(tree: Any, is_leaf: Callable[..., bool] | None = None) -> tuple[list[tuple[Any, Any]], Any]:
    """Pairs of path and leaf, and the structure. `is_leaf` takes the path, too. Raises as `flatten` does."""
    try:
        return _call(*(*_those, registry.flatten_with_path, tree, is_leaf))
    except Exception as e:
        whole = None if is_leaf is None else lambda node: is_leaf((), node)
        error = nesting.refused(e, flatten_one_level_with_keys, tree, whole)
        if error is e:
            raise
        raise error from None


def refused(error: BaseException, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> BaseException:
    """Return the error to raise for one that C++ raised in a call of function `name`: itself, if it is clear enough."""
    result = nesting.refused(error, flatten_one_level_with_keys, (args, kwargs), names=("args", "kwargs"))
    return result.add_context(operation=name) if isinstance(result, TreeError) else result


def unflatten(treedef: Any, leaves: Any) -> Any:
    """The tree of this structure with these leaves."""
    return treedef.unflatten(leaves)


def structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The structure of `tree`, without its leaves."""
    return flatten(tree, is_leaf)[1]


leaf_structure = structure(0)


def structure_of(node: tuple[type, Any], children: Sequence[Any]) -> Any:
    """The structure of a node with these children; the node is what `node_data()` of a structure returns."""
    return type(leaf_structure).from_node_data_and_children(registry, node, children)


def _ordered(keys: tuple[Any, ...], values: Any) -> OrderedDict[Any, Any]:
    return OrderedDict(zip(keys, values, strict=True))


def _defaulted(aux: tuple[Any, tuple[Any, ...]], values: Any) -> defaultdict[Any, Any]:
    return defaultdict(aux[0], zip(aux[1], values, strict=True))


def _sorted_items(tree: defaultdict[Any, Any]) -> tuple[tuple[Any, ...], tuple[Any, tuple[Any, ...]]]:
    keys = tuple(sorted(tree))
    return tuple(tree[key] for key in keys), (tree.default_factory, keys)


def _items(tree: OrderedDict[Any, Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    return tuple(tree.values()), tuple(tree)


def _items_with_keys(tree: OrderedDict[Any, Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    return tuple((DictKey(key), value) for key, value in tree.items()), tuple(tree)


def _sorted_items_with_keys(tree: defaultdict[Any, Any]) -> tuple[Any, Any]:
    values, aux = _sorted_items(tree)
    return tuple((DictKey(key), value) for key, value in zip(aux[1], values, strict=True)), aux


register_node(OrderedDict, _items, _ordered, _items_with_keys)
register_node(defaultdict, _sorted_items, _defaulted, _sorted_items_with_keys)
