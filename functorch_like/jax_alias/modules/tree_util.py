"""`jax.tree_util`: functions of trees under their longer names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from functorch_like import tree_util
from functorch_like.backends.xla import pytree
from functorch_like.errors import TreeError
from functorch_like.jax_alias.modules import tree
from functorch_like.jax_alias.modules.tree import is_whole
from functorch_like.tree import node_types

tree_map, tree_map_with_path = tree.map, tree.map_with_path
tree_flatten, tree_leaves, tree_structure = tree.flatten, tree.leaves, tree.structure
tree_flatten_with_path, tree_leaves_with_path = tree.flatten_with_path, tree.leaves_with_path
tree_all, tree_reduce, tree_reduce_associative = tree.all, tree.reduce, tree.reduce_associative
tree_broadcast, tree_transpose = tree.broadcast, tree.transpose
default_registry = pytree.registry


class RegistryEntry(NamedTuple):
    """Functions of a type of nodes.

    Attributes:
        to_iter: `(node) -> (children, data)`; the data is the structure of the node alone.
        from_iter: `(data, children) -> node`.
    """

    to_iter: Callable[[Any], tuple[list[Any], Any]]
    from_iter: Callable[[Any, Any], Any]


class Registry(Mapping[type, RegistryEntry]):
    """Types of nodes, each with its functions, as libraries read them."""

    def __getitem__(self, kind: type) -> RegistryEntry:
        if kind not in node_types:
            raise KeyError(kind)
        return RegistryEntry(lambda node: tree.flatten(node, lambda x: x is not node), tree.unflatten)

    def __iter__(self) -> Iterator[type]:
        return iter(node_types)

    def __len__(self) -> int:
        return len(node_types)


_registry = Registry()


class HashablePartial:
    """A partial function, equal to another one of an equal function and equal arguments."""

    def __init__(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        self.f, self.args, self.kwargs = f, args, kwargs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self.f(*self.args, *args, **self.kwargs, **kwargs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HashablePartial) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> Any:
        return self.f, self.args, tuple(sorted(self.kwargs.items()))


def flatten_one_level(tree: Any) -> tuple[list[Any], Any]:
    """Call `ft.tree_util.flatten_one_level`.

    Raises:
        TreeError: for a leaf, as typed keys and values of hi types are.
    """
    if is_whole(tree):
        raise TreeError(f"a {type(tree).__name__} is a leaf, which has no children", fix="test with all_leaves first")
    return tree_util.flatten_one_level(tree)


def all_leaves(iterable: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Return True if none of the objects is a node; typed keys are leaves."""
    return tree_util.all_leaves(iterable, tree._or_keys(is_leaf))
