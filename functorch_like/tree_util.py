"""Pytrees under JAX's names, and helpers that few programs need: `Partial`, keys of paths, children."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from functorch_like import tree as _tree
from functorch_like.backends.xla import pytree as _pytree
from functorch_like.errors import TreeError
from functorch_like.tree import PyTreeDef as PyTreeDef
from functorch_like.tree import all as tree_all
from functorch_like.tree import broadcast as tree_broadcast
from functorch_like.tree import flatten as tree_flatten
from functorch_like.tree import flatten_with_path as tree_flatten_with_path
from functorch_like.tree import keystr as keystr
from functorch_like.tree import leaves as tree_leaves
from functorch_like.tree import leaves_with_path as tree_leaves_with_path
from functorch_like.tree import map as tree_map
from functorch_like.tree import map_with_path as tree_map_with_path
from functorch_like.tree import reduce as tree_reduce
from functorch_like.tree import reduce_associative as tree_reduce_associative
from functorch_like.tree import register_dataclass as register_dataclass
from functorch_like.tree import register_pytree_node as register_pytree_node
from functorch_like.tree import register_pytree_node_class as register_pytree_node_class
from functorch_like.tree import register_pytree_with_keys as register_pytree_with_keys
from functorch_like.tree import register_pytree_with_keys_class as register_pytree_with_keys_class
from functorch_like.tree import register_static as register_static
from functorch_like.tree import structure as tree_structure
from functorch_like.tree import transpose as tree_transpose
from functorch_like.tree import unflatten as tree_unflatten

__all__ = (
    "DictKey", "FlattenedIndexKey", "GetAttrKey", "KeyEntry", "KeyPath", "Partial", "PyTreeDef", "SequenceKey",
    "all_leaves", "flatten_one_level", "flatten_one_level_with_keys", "is_tree_node", "keystr", "register_dataclass",
    "register_pytree_node", "register_pytree_node_class", "register_pytree_with_keys",
    "register_pytree_with_keys_class", "register_static", "tree_all", "tree_broadcast",
    "tree_flatten", "tree_flatten_with_path", "tree_leaves", "tree_leaves_with_path",
    "tree_map", "tree_map_with_path", "tree_reduce", "tree_reduce_associative", "tree_structure", "tree_transpose",
    "tree_unflatten", "treedef_children", "treedef_is_leaf", "treedef_tuple",
)  # fmt: skip

# The keys of a path: d["key"], s[idx], node.name, and the position of a child in a node without keys.
DictKey, SequenceKey = _pytree.DictKey, _pytree.SequenceKey
GetAttrKey, FlattenedIndexKey = _pytree.GetAttrKey, _pytree.FlattenedIndexKey
KeyEntry = Any
KeyPath = tuple[Any, ...]


class Partial(functools.partial):
    """`functools.partial` as a pytree: its arguments are children, its function is part of the structure.

    So a function with arrays in it can be an argument or a result of transformed functions.

    Args:
        func: any function.
        args: its first arguments, pytrees.
        kwargs: keyword arguments, pytrees.

    >>> double = ft.tree_util.Partial(lambda scale, x: scale * x, 2.0)
    >>> ft.jit(lambda f, x: f(x))(double, 3.0).item()
    6.0
    """

    def __new__(cls, func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        # functools.partial would merge with a plain partial, whose arguments are not to become leaves.
        is_plain = isinstance(func, functools.partial) and not isinstance(func, Partial)
        return super().__new__(cls, functools.partial.__call__.__get__(func) if is_plain else func, *args, **kwargs)


def _partial_children(node: Partial) -> tuple[tuple[Any, ...], Any]:
    return (node.args, node.keywords), node.func


_tree.register_pytree_node(
    Partial,
    _partial_children,
    lambda func, children: Partial(func, *children[0], **children[1]),
    lambda node: (((GetAttrKey("args"), node.args), (GetAttrKey("keywords"), node.keywords)), node.func),
)


def all_leaves(iterable: Iterable[Any], is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Return True if all objects of an iterable are leaves.

    >>> ft.tree_util.all_leaves([1, "a"]), ft.tree_util.all_leaves([1, (2,)])
    (True, False)
    """
    return all(not is_tree_node(x) or (is_leaf is not None and is_leaf(x)) for x in iterable)


def is_tree_node(x: object) -> bool:
    """Return True if an object is a node, also one without children, rather than a leaf.

    >>> ft.tree_util.is_tree_node(()), ft.tree_util.is_tree_node(1.0)
    (True, False)
    """
    return _pytree.flatten_one_level(x) is not None


def flatten_one_level(tree: Any) -> tuple[list[Any], Any]:
    """Return the children of a node, and the data that its type's unflatten function takes with them.

    Raises:
        TreeError: for a leaf.

    >>> ft.tree_util.flatten_one_level({"a": (1, 2)})
    ([(1, 2)], ('a',))
    """
    return _one_level(_pytree.flatten_one_level, tree)


def flatten_one_level_with_keys(tree: Any) -> tuple[list[Any], Any]:
    """Return pairs of key and child of a node, and its data, as `flatten_one_level`.

    Raises:
        TreeError: for a leaf.

    >>> ft.tree_util.flatten_one_level_with_keys(["x"])[0]
    [(SequenceKey(idx=0), 'x')]
    """
    return _one_level(_pytree.flatten_one_level_with_keys, tree)


def _one_level(flatten: Callable[[Any], Any], tree: Any) -> tuple[list[Any], Any]:
    flattened = flatten(tree)
    if flattened is None:
        raise TreeError(f"{tree!r:.60} is a leaf, which has no children", fix="test is_tree_node(x) first")
    children, data = flattened
    return list(children), data


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """Return the structures of the children of a structure.

    >>> ft.tree_util.treedef_children(ft.tree.structure((1, [2])))
    [PyTreeDef(*), PyTreeDef([*])]
    """
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Return True if a structure is that of a leaf.

    >>> ft.tree_util.treedef_is_leaf(ft.tree.structure(1.0))
    True
    """
    return treedef.num_nodes == 1 and treedef.num_leaves == 1


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """Return the structure of a tuple whose elements have the given structures.

    >>> ft.tree_util.treedef_tuple([ft.tree.structure(1), ft.tree.structure([2])])
    PyTreeDef((*, [*]))
    """
    return _pytree.structure_of((tuple, None), list(treedefs))
