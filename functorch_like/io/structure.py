"""The structure of a pytree as JSON, from which containers of Python's own are made again.

Other nodes (dataclasses, named tuples, classes of a user) are named, and never imported: a tree that has them is
restored into an example, `load(path, like=)`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from functorch_like import tree_util
from functorch_like.errors import CheckpointError
from functorch_like.random.typed_keys import IMPLEMENTATIONS, KeyArray

LEAF = "*"
#: The greatest depth of nodes in a tree. Reading takes several nested calls for each level, and must not fail where
#: writing succeeded.
DEEPEST = 100
_SEQUENCES: dict[str, type] = {"list": list, "tuple": tuple}
_MAPPINGS: dict[str, type] = {"dict": dict, "ordered": OrderedDict}
_NAMES: dict[type, str] = {kind: name for name, kind in (*_SEQUENCES.items(), *_MAPPINGS.items())}
#: Types of keys of dicts, with their names.
_KEY_NAMES: dict[type, str] = {str: "str", int: "int", bool: "bool"}


def encode(node: Any, depth: int = 0) -> Any:
    """Return the structure of a pytree as JSON data; leaves are in the order of `tree.flatten`.

    Raises:
        CheckpointError: for a tree that is too deep.
    """
    if depth > DEEPEST:
        raise too_deep()
    if node is None:
        return None
    if not tree_util.is_tree_node(node):
        return LEAF
    children, _ = tree_util.flatten_one_level_with_keys(node)
    name = _NAMES.get(type(node))
    if name in _SEQUENCES:
        return {name: [encode(child, depth + 1) for _, child in children]}
    if name is not None and all(type(key.key) in _KEY_NAMES for key, _ in children):
        return {name: [[_KEY_NAMES[type(key.key)], key.key, encode(child, depth + 1)] for key, child in children]}
    if type(node) is KeyArray:
        return {"keys": node.dtype.impl}
    kind = type(node)
    return {
        "node": f"{kind.__module__}.{kind.__qualname__}",
        "children": [encode(child, depth + 1) for _, child in children],
    }


def decode(spec: Any, leaves: Iterator[Any]) -> Any:
    """Return the pytree of a structure.

    Raises:
        CheckpointError: for nodes that are not Python's own containers, and for data that is not a structure.
    """
    if spec == LEAF:
        return next(leaves)
    if spec is None:
        return None
    if not isinstance(spec, dict):
        raise malformed("the structure has a node that is not an object")
    if "node" in spec:
        raise CheckpointError(
            f"the tree has a node of type {spec['node']!r:.100}, which is not imported when a file is read",
            fix="pass an example of the tree: load(path, like=tree)",
        )
    if spec.get("keys") in IMPLEMENTATIONS:
        return KeyArray(next(leaves), spec["keys"])
    ((kind, items),) = spec.items() if len(spec) == 1 else ((None, None),)
    if not isinstance(items, list):
        raise malformed("the structure has an unknown node")
    if kind in _SEQUENCES:
        return _SEQUENCES[kind](decode(item, leaves) for item in items)
    if kind in _MAPPINGS:
        return _MAPPINGS[kind]((_key(item), decode(item[2], leaves)) for item in items)
    raise malformed("the structure has an unknown node")


def _key(item: Any) -> Any:
    if isinstance(item, list) and len(item) == 3 and _KEY_NAMES.get(type(item[1])) == item[0]:
        return item[1]
    raise malformed("a dict of the structure has an entry that is none")


def count_leaves(spec: Any) -> int:
    """The number of leaves of a structure."""
    if spec == LEAF or (isinstance(spec, dict) and "keys" in spec):
        return 1
    if isinstance(spec, dict):
        return sum(map(count_leaves, (child for part in spec.values() if isinstance(part, list) for child in part)))
    if isinstance(spec, list) and len(spec) == 3:  # an entry of a dict
        return count_leaves(spec[2])
    return 0


def malformed(what: str) -> CheckpointError:
    """The error for a file with something else than `save` writes."""
    return CheckpointError(f"the file is damaged or was not written by save: {what}", fix="restore from another copy")


def too_deep() -> CheckpointError:
    """The error for trees that are nested too deeply."""
    return CheckpointError(f"the tree has more than {DEEPEST} nodes within nodes", fix="save a flatter tree")
