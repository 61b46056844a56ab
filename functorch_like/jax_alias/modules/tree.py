"""`jax.tree`: functions of trees, for which an array of typed keys is a leaf, and a value of a hi type is one, too.

To transformations they are nodes that hold words, and parts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from functorch_like import tree
from functorch_like.jax_alias.modules import hi_types
from functorch_like.random import typed_keys
from functorch_like.tree import static, unflatten

__all__ = ["static", "unflatten"]


def _keys_are_leaves(fun: Callable[..., Any], position: int | None = None) -> Callable[..., Any]:
    """Make typed keys and values of hi types leaves for a function of trees; `position` is that of `is_leaf`."""

    @functools.wraps(fun)
    def of_trees(*args: Any, **kwargs: Any) -> Any:
        if typed_keys.made or hi_types.TYPES:
            if position is not None and len(args) > position:
                kwargs["is_leaf"] = args[position]
                args = (*args[:position], *args[position + 1 :])
            kwargs["is_leaf"] = _or_keys(kwargs.get("is_leaf"))
        return fun(*args, **kwargs)

    return of_trees


def _or_keys(is_leaf: Callable[..., bool] | None) -> Callable[..., bool]:
    if is_leaf is None:
        return lambda *node: is_whole(node[-1])
    return lambda *node: is_whole(node[-1]) or is_leaf(*node)


def is_whole(x: Any) -> bool:
    """Return True for a leaf of JAX's that is a node here: typed keys, and values of hi types."""
    return type(x) is typed_keys.KeyArray or type(x) in hi_types.TYPES


map = _keys_are_leaves(tree.map)
map_with_path = _keys_are_leaves(tree.map_with_path)
flatten = _keys_are_leaves(tree.flatten, 1)
leaves = _keys_are_leaves(tree.leaves, 1)
structure = _keys_are_leaves(tree.structure, 1)
flatten_with_path = _keys_are_leaves(tree.flatten_with_path, 1)
leaves_with_path = _keys_are_leaves(tree.leaves_with_path, 1)
all = _keys_are_leaves(tree.all)
reduce = _keys_are_leaves(tree.reduce, 3)
reduce_associative = _keys_are_leaves(tree.reduce_associative)
broadcast = _keys_are_leaves(tree.broadcast, 2)
transpose = tree.transpose
