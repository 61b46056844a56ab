"""Pytrees: nested containers of arrays, and functions over their leaves.

Nodes are tuples, lists, dicts (in the order of sorted keys), None (no leaves), named tuples, OrderedDict,
defaultdict, and registered types. Other objects are leaves. C++ flattens them.

>>> flatten({"b": [1, 2], "a": (3, None)})
([3, 1, 2], PyTreeDef({'a': (*, None), 'b': [*, *]}))
"""

from __future__ import annotations

import builtins
import dataclasses
import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from functorch_like.backends.xla import pytree
from functorch_like.errors import ArgumentError, TreeError

if TYPE_CHECKING:
    from functorch_like.calling.type_variables import T
    from functorch_like.tree_util import KeyPath
    from functorch_like.typing import PyTree


__all__ = [
    "PyTreeDef", "all", "broadcast", "flatten", "flatten_up_to", "flatten_with_path", "keystr", "leaves",
    "leaves_with_path", "map", "map_with_path", "reduce", "reduce_associative", "register_dataclass", "register_node",
    "register_pytree_node", "register_pytree_node_class", "register_pytree_with_keys",
    "register_pytree_with_keys_class", "register_static", "static", "structure", "transpose", "unflatten",
]  # fmt: skip

C = TypeVar("C", bound=type)
IsLeaf = Callable[[Any], bool] | None

PyTreeDef = pytree.PyTreeDef
_registry = pytree.registry
#: Types of nodes: Python's and the registered ones. Named tuples, which are nodes, too, are not among them.
node_types: set[type] = {type(None), tuple, list, dict, OrderedDict, defaultdict}


class _LeftOut:
    """Default of parameters for which None is a value."""

    def __repr__(self) -> str:
        return "..."


LEFT_OUT: Any = _LeftOut()


class _Leaf:
    """Stand-in for a leaf of a structure in error messages."""

    def __repr__(self) -> str:
        return "*"


# ---------------------------------------------------------------------------------------------- flatten and unflatten
def flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """Return the leaves of a tree, and its structure.

    Args:
        tree: any tree.
        is_leaf: function that is called on each node first; a node for which it returns True counts as a leaf.

    Returns:
        A list of leaves and a `PyTreeDef`.

    Raises:
        TreeError: if the keys of a dict cannot be sorted, or if the tree contains itself or is nested too deep.

    >>> leaves, structure = flatten([1, (2, 3)])
    >>> leaves
    [1, 2, 3]
    """
    return pytree.flatten(tree, is_leaf)


def leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list[Any]:
    """Return the leaves of a tree, left to right; arguments as for `flatten`.

    >>> leaves({"b": 1, "a": [2, None]})
    [2, 1]
    """
    return flatten(tree, is_leaf)[0]


def structure(tree: PyTree, is_leaf: IsLeaf = None) -> PyTreeDef:
    """Return the structure of a tree, which `==` compares; arguments as for `flatten`.

    >>> structure([1, 2]) == structure([None, 2])
    False
    """
    return flatten(tree, is_leaf)[1]


def unflatten(treedef: PyTreeDef, leaves: Iterable[object]) -> Any:
    """Return a tree of a structure with the given leaves.

    Args:
        treedef: structure that `flatten` or `structure` returns.
        leaves: `treedef.num_leaves` objects.

    Raises:
        TreeError: for another number of leaves.

    >>> unflatten(structure({"a": 0, "b": (0, 0)}), "xyz")
    {'a': 'x', 'b': ('y', 'z')}
    """
    try:
        return treedef.unflatten(leaves)
    except ValueError as e:
        if not str(e).startswith("Too "):
            raise  # an error of a registered node's unflatten function
        raise TreeError(
            f"the structure {treedef} takes {treedef.num_leaves} leaves, and the number given differs",
            fix="give one for each *",
        ) from None


def flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """Return pairs of path and leaf, and the structure; `keystr` converts a path to text.

    Args:
        tree: any tree.
        is_leaf: function that is called on each node first; a node for which it returns True counts as a leaf.
        is_leaf_takes_path: True to call it as `is_leaf(path, node)`.

    >>> [(keystr(path), leaf) for path, leaf in flatten_with_path({"a": [1, 2]})[0]]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    predicate = is_leaf if is_leaf is None or is_leaf_takes_path else lambda *node: is_leaf(node[-1])
    pairs, treedef = pytree.flatten_with_path(tree, predicate)
    return [(tuple(path), leaf) for path, leaf in pairs], treedef


def leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """Return pairs of path and leaf; arguments as for `flatten_with_path`.

    >>> [keystr(path) for path, _ in leaves_with_path((1, [2]))]
    ['[0]', '[1][0]']
    """
    return flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def keystr(path: Sequence[object], *, simple: bool = False, separator: str = "") -> str:
    """Return a path as the text of Python code, such as "['layers'][0].weight".

    Args:
        path: path that `flatten_with_path` returns.
        simple: True for bare keys, without brackets and quotes.
        separator: text between keys.

    >>> path, _ = leaves_with_path({"layers": [0]})[0]
    >>> keystr(path), keystr(path, simple=True, separator=".")
    ("['layers'][0]", 'layers.0')
    """
    return separator.join(_bare(key) if simple else str(key) for key in path)


def _bare(key: Any) -> str:
    return str(next((getattr(key, name) for name in ("key", "idx", "name") if hasattr(key, name)), key))


def leaf_paths(treedef: Any) -> list[str]:
    """Return the path of each leaf of a structure, as text.

    Nodes that flatten in another way with other leaves, as those do that tell arrays from other attributes, are passed
    by their children's numbers.
    """
    try:
        paths = [keystr(path) for path, _ in leaves_with_path(treedef.unflatten([0] * treedef.num_leaves))]
    except Exception:  # of the user's node, which may check its children
        paths = []
    return paths if len(paths) == treedef.num_leaves else [keystr(path) for path in _numbered_paths(treedef)]


def _numbered_paths(treedef: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each leaf, with numbers for the children of nodes other than dicts."""
    node = treedef.node_data()
    if node is None:
        yield ()
        return
    children = treedef.children()
    for i, child in enumerate(children):
        key = pytree.DictKey(node[1][i]) if node[0] is dict else pytree.SequenceKey(i)
        for path in _numbered_paths(child):
            yield (key, *path)


# ---------------------------------------------------------------------------------------------------- over the leaves
def map(f: Callable[..., object], tree: PyTree, *rest: PyTree, is_leaf: IsLeaf = None) -> Any:
    """Apply a function to each leaf, or to corresponding leaves of several trees.

    Args:
        f: function of as many arguments as there are trees.
        tree: tree with the structure of the result.
        rest: more trees, of the same structure; they may have subtrees at the leaves of `tree`.
        is_leaf: as for `flatten`.

    Raises:
        TreeError: for a tree of another structure; it names the first path at which the structures differ.

    >>> map(lambda x, y: x + y, {"a": 1, "b": 2}, {"a": 10, "b": 20})
    {'a': 11, 'b': 22}
    """
    first, treedef = flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten([f(leaf) for leaf in first])
    others = [flatten_up_to(treedef, other, "tree.map", f"tree {i}") for i, other in enumerate(rest, 2)]
    return treedef.unflatten([f(*args) for args in zip(first, *others, strict=True)])


def map_with_path(
    f: Callable[..., object],
    tree: PyTree,
    *rest: PyTree,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """Apply a function as `map` does, with the path of the leaf as first argument.

    Args:
        f: function of a path and as many leaves as there are trees.
        tree: tree with the structure of the result.
        rest: as for `map`.
        is_leaf: as for `flatten_with_path`.
        is_leaf_takes_path: likewise.

    Raises:
        TreeError: as `map`.

    >>> map_with_path(lambda path, x: f"{keystr(path)}={x}", {"a": [1]})
    {'a': ["['a'][0]=1"]}
    """
    pairs, treedef = flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    others = [flatten_up_to(treedef, other, "tree.map_with_path", f"tree {i}") for i, other in enumerate(rest, 2)]
    return treedef.unflatten([f(*pair, *args) for pair, *args in zip(pairs, *others, strict=True)])


def reduce(f: Callable[[Any, Any], Any], tree: Any, initializer: Any = LEFT_OUT, is_leaf: IsLeaf = None) -> Any:
    """Combine the leaves from left to right with a function of two arguments.

    Args:
        f: function of the result so far and a leaf.
        tree: any tree.
        initializer: the first result; by default the first leaf.
        is_leaf: as for `flatten`.

    Raises:
        ArgumentError: for a tree without leaves and no initializer.

    >>> reduce(lambda a, b: a + b, {"a": 1, "b": (2, 3)}, 0)
    6
    """
    leaf_list = leaves(tree, is_leaf)
    if initializer is not LEFT_OUT:
        return functools.reduce(f, leaf_list, initializer)
    if not leaf_list:
        raise ArgumentError("tree.reduce got a tree without leaves and no initializer", fix="pass an initializer")
    return functools.reduce(f, leaf_list)


def reduce_associative(
    operation: Callable[[T, T], T], tree: PyTree, *, identity: T = LEFT_OUT, is_leaf: IsLeaf = None
) -> T:
    """Combine the leaves with an associative function, in pairs of neighbours: a balanced tree of depth log2(n).

    Args:
        operation: function of two leaves, or of its own results.
        tree: any tree.
        identity: result for a tree without leaves.
        is_leaf: as for `flatten`.

    Raises:
        ArgumentError: for a tree without leaves and no identity.

    >>> reduce_associative(lambda a, b: a + b, {"a": "x", "b": ("y", "z")})
    'xyz'
    """
    leaf_list = leaves(tree, is_leaf)
    if not leaf_list and identity is LEFT_OUT:
        raise ArgumentError("tree.reduce_associative got a tree without leaves and no identity", fix="pass an identity")
    if not leaf_list:
        return identity
    while len(leaf_list) > 1:
        pairs = zip(leaf_list[::2], leaf_list[1::2], strict=False)
        leaf_list = [operation(a, b) for a, b in pairs] + leaf_list[len(leaf_list) // 2 * 2 :]
    return leaf_list[0]


def static(**kwargs: Any) -> Any:
    """Return a dataclass field that `register_dataclass` makes a part of the structure instead of a child.

    Args:
        kwargs: as for `dataclasses.field`.

    >>> static(default="relu").metadata["static"]
    True
    """
    return dataclasses.field(**{**kwargs, "metadata": {**(kwargs.get("metadata") or {}), "static": True}})


def all(tree: PyTree, *, is_leaf: IsLeaf = None) -> bool:
    """Return True if every leaf is true; arguments as for `flatten`.

    >>> all([True, {"a": 1}]), all([True, {"a": 0}])
    (True, False)
    """
    return builtins.all(leaves(tree, is_leaf))


def transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef, pytree_to_transpose: PyTree) -> Any:
    """Turn a tree of trees inside out.

    Args:
        outer_treedef: the structure of the outer tree.
        inner_treedef: the structure of each inner tree; None takes that of the first.
        pytree_to_transpose: an outer tree with inner trees for leaves.

    Returns:
        An inner tree with outer trees for leaves.

    Raises:
        TreeError: if the tree or an inner tree has another structure.
        ArgumentError: if inner_treedef is None and there is no inner tree.

    >>> transpose(structure([0, 0]), structure({"x": 0}), [{"x": 1}, {"x": 2}])
    {'x': [1, 2]}
    """
    inner = flatten_up_to(outer_treedef, pytree_to_transpose, "tree.transpose", "the tree")
    if inner_treedef is None:
        if not inner:
            raise ArgumentError(
                "tree.transpose of a tree without inner trees needs their structure", fix="pass inner_treedef"
            )
        inner_treedef = structure(inner[0])
    columns = [flatten_up_to(inner_treedef, tree, "tree.transpose", f"inner tree {i}") for i, tree in enumerate(inner)]
    turned = zip(*columns, strict=True) if columns else [()] * inner_treedef.num_leaves
    return inner_treedef.unflatten([outer_treedef.unflatten(row) for row in turned])


def broadcast(prefix_tree: PyTree, full_tree: T, is_leaf: IsLeaf = None) -> T:
    """Return a tree of the structure of `full_tree`, with each leaf of a prefix repeated for the leaves below it.

    Args:
        prefix_tree: tree whose structure is the top of that of `full_tree`.
        full_tree: any tree.
        is_leaf: as for `flatten`, of `prefix_tree` alone.

    Raises:
        TreeError: if `prefix_tree` is not a prefix of `full_tree`.

    >>> broadcast((1, 2), ([0, 0], {"a": 0}))
    ([1, 1], {'a': 2})
    """
    result = _spread(prefix_tree, full_tree, "tree.broadcast", is_leaf)
    return structure(full_tree).unflatten(result)


def broadcast_prefix(prefix: Any, whole: Any, what: str) -> list[Any]:
    """Return the leaf of a prefix for each leaf of `whole`. None is a leaf of the prefix, as in `in_axes`."""
    return _spread(prefix, whole, what, lambda x: x is None)


def _spread(prefix: Any, whole: Any, what: str, is_leaf: IsLeaf) -> list[Any]:
    entries, treedef = flatten(prefix, is_leaf)
    parts = flatten_up_to(treedef, whole, what, "the tree it is spread over", prefix, is_leaf)
    result: list[Any] = []
    for entry, part in zip(entries, parts, strict=True):
        result += [entry] * len(flatten(part)[0])
    return result


# ----------------------------------------------------------------------------------------------------- registration
def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None = None,
) -> None:
    """Make instances of a type nodes rather than leaves.

    Args:
        nodetype: exactly this type; subclasses stay leaves.
        flatten_func: `(node) -> (children, data)`, with hashable data that is part of the structure.
        unflatten_func: `(data, children) -> node`. Children may be any objects, so it must not check them.
        flatten_with_keys_func: as `flatten_func`, with pairs of key and child, for paths.

    Raises:
        ArgumentError: if the type is registered already.

    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda _, children: Pair(*children))
    >>> leaves([Pair(1, 2), 3])
    [1, 2, 3]
    """

    def with_keys(node: Any) -> tuple[list[Any], Any]:
        pairs, data = flatten_with_keys_func(node)  # type: ignore[misc]
        return [tuple(pair) for pair in pairs], data

    keyed = None if flatten_with_keys_func is None else with_keys
    try:
        _registry.register_node(nodetype, flatten_func, unflatten_func, keyed)
    except ValueError as e:
        raise ArgumentError(f"{nodetype.__name__} is registered as a pytree already", fix="register it once") from e
    node_types.add(nodetype)


register_node = register_pytree_node


def register_pytree_with_keys(
    nodetype: type, flatten_with_keys: Any, unflatten_func: Any, flatten_func: Any = None
) -> None:
    """Register a type as `register_pytree_node` does, with the keyed function first.

    Args:
        nodetype: exactly this type.
        flatten_with_keys: `(node) -> (pairs of key and child, data)`.
        unflatten_func: `(data, children) -> node`.
        flatten_func: `(node) -> (children, data)`; made from `flatten_with_keys` if None.

    Raises:
        ArgumentError: if the type is registered already.

    >>> class Box:
    ...     def __init__(self, x):
    ...         self.x = x
    >>> register_pytree_with_keys(Box, lambda b: ([("x", b.x)], None), lambda _, children: Box(*children))
    >>> leaves(Box(5))
    [5]
    """

    def plain(node: Any) -> tuple[list[Any], Any]:
        pairs, data = flatten_with_keys(node)
        return [child for _, child in pairs], data

    register_pytree_node(nodetype, flatten_func or plain, unflatten_func, flatten_with_keys)


def register_pytree_node_class(cls: C) -> C:
    """Register a class by its methods `tree_flatten(self)` and `tree_unflatten(data, children)`; a class decorator.

    Raises:
        ArgumentError: if the class is registered already, or lacks one of the methods.

    >>> @register_pytree_node_class
    ... class Scaled:
    ...     def __init__(self, x, unit):
    ...         self.x, self.unit = x, unit
    ...     def tree_flatten(self):
    ...         return (self.x,), self.unit
    ...     @classmethod
    ...     def tree_unflatten(cls, unit, children):
    ...         return cls(*children, unit)
    >>> map(lambda x: 2 * x, Scaled(3, "m")).x
    6
    """
    _check_methods(cls, "tree_flatten", "tree_unflatten")
    register_pytree_node(cls, lambda node: node.tree_flatten(), cls.tree_unflatten)  # type: ignore[attr-defined]
    return cls


def _check_methods(cls: type, *names: str) -> None:
    absent = [name for name in names if not hasattr(cls, name)]
    if absent:
        raise ArgumentError(
            f"{cls.__name__} has no method {' and no method '.join(absent)}",
            fix="define it, tree_unflatten as a classmethod; or register a dataclass: ft.tree.register_dataclass",
        )


def register_pytree_with_keys_class(cls: C) -> C:
    """Register a class as `register_pytree_node_class` does, by `tree_flatten_with_keys(self)`; a class decorator.

    Raises:
        ArgumentError: if the class is registered already, or lacks one of the methods.

    >>> @register_pytree_with_keys_class
    ... class Named:
    ...     def __init__(self, x):
    ...         self.x = x
    ...     def tree_flatten_with_keys(self):
    ...         return ((".x", self.x),), None
    ...     @classmethod
    ...     def tree_unflatten(cls, _, children):
    ...         return cls(*children)
    >>> keystr(leaves_with_path(Named(3))[0][0])
    '.x'
    """
    _check_methods(cls, "tree_flatten_with_keys", "tree_unflatten")
    plain = (lambda node: node.tree_flatten()) if hasattr(cls, "tree_flatten") else None
    with_keys = lambda node: node.tree_flatten_with_keys()
    register_pytree_with_keys(cls, with_keys, cls.tree_unflatten, plain)  # type: ignore[attr-defined]
    return cls


def register_static(cls: C) -> C:
    """Register a class whose instances have no leaves and are part of the structure; a class decorator.

    Instances must be hashable.

    Raises:
        ArgumentError: if the class is registered already.

    >>> @register_static
    ... class Mode(str):
    ...     pass
    >>> leaves((Mode("train"), 1))
    [1]
    """
    register_pytree_node(cls, lambda node: ((), node), lambda node, _: node)
    return cls


def register_dataclass(
    nodetype: Any = None,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Any:
    """Make a dataclass a node: data fields are children, meta fields part of the structure.

    Args:
        nodetype: the dataclass; without it, the result is a decorator.
        data_fields: by default all fields without `dataclasses.field(metadata={"static": True})`.
        meta_fields: by default all fields with it; their values must be hashable and must not change. They are compared
            by ==, so that 1, 1.0 and True, or 0.0 and -0.0, are one structure, and share the programs of `jit`.
        drop_fields: fields with a default that are in neither.

    Returns:
        The class, so that it serves as a decorator.

    Raises:
        ArgumentError: for an unknown or missing field, or a class that is registered already.

    >>> @register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     weight: object
    ...     name: str = dataclasses.field(default="", metadata={"static": True})
    >>> map(lambda x: 2 * x, Layer(3, "first"))
    Layer(weight=6, name='first')
    """
    if nodetype is None:
        return functools.partial(
            register_dataclass, data_fields=data_fields, meta_fields=meta_fields, drop_fields=drop_fields
        )
    fields = [f for f in dataclasses.fields(nodetype) if f.init] if hasattr(nodetype, "__dataclass_fields__") else None
    if data_fields is None and meta_fields is None and fields is not None:
        data_fields = [f.name for f in fields if not f.metadata.get("static") and f.name not in drop_fields]
        meta_fields = [f.name for f in fields if f.metadata.get("static") and f.name not in drop_fields]
    if data_fields is None or meta_fields is None:
        raise ArgumentError(
            f"register_dataclass({nodetype.__name__}) lacks data_fields or meta_fields",
            fix="pass both data_fields and meta_fields; only a dataclass may leave both out",
        )
    if fields is not None:
        named, have = {*data_fields, *meta_fields, *drop_fields}, {f.name for f in fields}
        if named != have:
            raise ArgumentError(
                f"register_dataclass({nodetype.__name__}): the fields are {sorted(have)}, named were {sorted(named)}",
                fix="name each field once, in data_fields, meta_fields or drop_fields",
            )
    try:
        _registry.register_dataclass_node(nodetype, builtins.list(data_fields), builtins.list(meta_fields))
    except ValueError as e:
        raise ArgumentError(f"{nodetype.__name__} is registered as a pytree already", fix="register it once") from e
    node_types.add(nodetype)
    return nodetype


# ------------------------------------------------------------------------------------------------------- mismatches
def flatten_up_to(
    treedef: PyTreeDef, tree: PyTree, what: str, name: str, example: PyTree = LEFT_OUT, is_leaf: IsLeaf = None
) -> list[Any]:
    """Return the subtrees of `tree` at the leaves of a structure.

    Args:
        treedef: the structure.
        tree: a tree that goes at least as deep.
        what: name of the operation in errors.
        name: name of `tree` in errors.
        example: a tree of the structure, for errors.
        is_leaf: predicate by which `example` was flattened.

    Raises:
        TreeError: if `tree` differs from the structure above a leaf. It names the path and the nodes on both sides.
    """
    try:
        return treedef.flatten_up_to(tree)
    except (ValueError, TypeError):
        expected = treedef.unflatten([_Leaf()] * treedef.num_leaves) if example is LEFT_OUT else example
        path, left, right = _first_difference(expected, tree, is_leaf) or ("", f"{treedef}", f"{structure(tree)}")
        raise TreeError(
            f"{what}: the structures part at {path or 'the root'}: {left} is expected there, {name} has {right}",
            fix="make the two trees alike down to the leaves of the first",
        ) from None


def _first_difference(expected: Any, tree: Any, is_leaf: IsLeaf, path: str = "") -> tuple[str, str, str] | None:
    """Return the first path at which `tree` differs in structure from `expected`, and descriptions of both nodes."""
    children = None if isinstance(expected, _Leaf) or (is_leaf and is_leaf(expected)) else _children(expected)
    if children is None:
        return None
    other_children = _children(tree)
    if other_children is None or type(expected) is not type(tree) or len(children) != len(other_children):
        return path, _describe(expected), _describe(tree)
    if [str(key) for key, _ in children] != [str(key) for key, _ in other_children]:
        return path, _describe(expected), _describe(tree)
    for (key, child), (_, other_child) in zip(children, other_children, strict=True):
        result = _first_difference(child, other_child, is_leaf, path + str(key))
        if result:
            return result
    if structure(expected) != structure(tree) and not children and expected is not None:
        return path, _describe(expected), _describe(tree)
    return None


def _children(tree: Any) -> list[tuple[Any, Any]] | None:
    """Return keys and children of a node, or None for a leaf."""
    children = pytree.flatten_one_level_with_keys(tree)
    return None if children is None else builtins.list(children[0])


def _describe(node: Any) -> str:
    children = _children(node)
    if node is None:
        return "None"
    if children is None:
        return f"a leaf of type {type(node).__name__}" if not isinstance(node, _Leaf) else "a leaf"
    kind = type(node).__name__
    if isinstance(node, dict):
        return f"a {kind} with keys {sorted(node)}"
    return f"a {kind} of {len(children)}"
