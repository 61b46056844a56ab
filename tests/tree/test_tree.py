import dataclasses
from collections import OrderedDict, defaultdict, namedtuple
from typing import NamedTuple

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import tree
from functorch_like.errors import ArgumentError, TreeError

Point = namedtuple("Point", "x y")
NESTED = {"b": [1, (2, None)], "a": Point(3, OrderedDict(q=4, p=5)), "c": defaultdict(list, z=6)}


def test_leaves_in_the_order_of_sorted_keys():
    assert tree.leaves(NESTED) == [3, 4, 5, 1, 2, 6]
    leaves, structure = tree.flatten(NESTED)
    assert tree.unflatten(structure, leaves) == NESTED
    assert structure == tree.structure(NESTED)
    assert structure.num_leaves == 6


def test_map():
    assert tree.map(lambda x: -x, NESTED)["a"] == Point(-3, OrderedDict(q=-4, p=-5))
    assert tree.map(lambda x, y: x + y, (1, {"k": 2}), (10, {"k": 20})) == (11, {"k": 22})
    assert tree.map(lambda x, y: (x, y), [1, 2], [[3], (4, 5)]) == [(1, [3]), (2, (4, 5))]
    assert tree.map(lambda x: x or 0, [None, 1], is_leaf=lambda x: x is None) == [0, 1]
    assert tree.map(lambda x: x, None) is None


def test_paths():
    assert [tree.keystr(p) for p, _ in tree.leaves_with_path(NESTED)] == [
        "['a'].x",
        "['a'].y['q']",
        "['a'].y['p']",
        "['b'][0]",
        "['b'][1][0]",
        "['c']['z']",
    ]
    assert tree.map_with_path(
        lambda p, x, y: (tree.keystr(p, simple=True, separator="/"), x + y), {"a": [1]}, {"a": [2]}
    ) == {"a": [("a/0", 3)]}
    assert tree.flatten_with_path((1, [2]), is_leaf=lambda x: isinstance(x, list))[0][1][1] == [2]


def test_folds():
    assert tree.reduce(lambda a, b: a + b, NESTED) == 21
    assert tree.reduce(lambda a, b: a + b, [], 7) == 7
    assert tree.all([1, {"a": True}])
    assert not tree.all([1, {"a": 0}])
    with pytest.raises(ArgumentError, match="initializer"):
        tree.reduce(max, ())


def test_transpose():
    outer, inner = tree.structure([0, 0]), tree.structure({"x": 0, "y": 0})
    turned = {"x": [1, 3], "y": [2, 4]}
    assert tree.transpose(outer, inner, [{"x": 1, "y": 2}, {"x": 3, "y": 4}]) == turned
    assert tree.transpose(outer, None, [{"x": 1, "y": 2}, {"x": 3, "y": 4}]) == turned
    assert tree.broadcast((1, 2), ([0, 0], {"a": 0})) == ([1, 1], {"a": 2})
    assert tree.broadcast(1, [(0, 0)], is_leaf=lambda x: isinstance(x, tuple)) == [(1, 1)]  # for the prefix only


PARTINGS = [
    ({"w": [1, (2, 3)]}, {"w": [1, (2,)]}, "['w'][1]", "a tuple of 2", "a tuple of 1"),
    ({"w": [1]}, {"w": (1,)}, "['w']", "a list of 1", "a tuple of 1"),
    ({"w": 1}, {"v": 1}, "the root", "keys ['w']", "keys ['v']"),
    ([1, None], [1, 2], "[1]", "None", "a leaf of type int"),
    ({"a": {"b": [1, 2]}}, {"a": {"b": 5}}, "['a']['b']", "a list of 2", "a leaf of type int"),
]


@pytest.mark.parametrize(("first", "second", "path", "ours", "theirs"), PARTINGS)
def test_where_structures_part(first, second, path, ours, theirs):
    with pytest.raises(TreeError) as caught:
        tree.map(lambda x, y: x, first, second)
    for part in (f"part at {path}:", ours, theirs):
        assert part in str(caught.value)


def test_other_refusals():
    with pytest.raises(TreeError, match="takes 2 leaves"):
        tree.unflatten(tree.structure([0, 0]), [1])
    with pytest.raises(TreeError, match="sorted"):
        tree.leaves({1: 0, "a": 0})


def test_registered_classes():
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    tree.register_node(Pair, lambda p: ((p.a, p.b), None), lambda _, c: Pair(*c))
    assert tree.leaves(Pair(1, [2])) == [1, 2]
    assert ft.jit(lambda p: Pair(p.b, p.a))(Pair(1.0, 2.0)).a == 2.0
    with pytest.raises(ArgumentError, match="already"):
        tree.register_node(Pair, lambda p: ((p.a, p.b), None), lambda _, c: Pair(*c))

    @tree.register_pytree_node_class
    class Box:
        def __init__(self, value, name):
            self.value, self.name = value, name

        def tree_flatten(self):
            return (self.value,), self.name

        @classmethod
        def tree_unflatten(cls, name, children):
            return cls(*children, name)

    doubled = tree.map(lambda x: 2 * x, Box(3, "n"))
    assert (doubled.value, doubled.name) == (6, "n")

    @tree.register_pytree_with_keys_class
    class Keyed(Box):
        def tree_flatten_with_keys(self):
            return (("value", self.value),), self.name

    assert tree.leaves(Keyed(1, "n")) == [1]

    @tree.register_static
    @dataclasses.dataclass(frozen=True)
    class Config:
        size: int

    assert tree.leaves([Config(3), 1]) == [1]


def test_dataclasses():
    @tree.register_dataclass
    @dataclasses.dataclass
    class Layer:
        weight: object
        bias: object
        name: str = dataclasses.field(default="", metadata={"static": True})

    layer = Layer(fnp.ones(2), 1.0, "first")
    slope = ft.grad(lambda l: (l.weight * l.bias).sum())(layer)
    assert (slope.weight.tolist(), float(slope.bias), slope.name) == ([1, 1], 2.0, "first")
    assert [tree.keystr(p) for p, _ in tree.leaves_with_path(layer)] == [".weight", ".bias"]

    @dataclasses.dataclass
    class Bad:
        a: int
        b: int

    with pytest.raises(ArgumentError, match="fields"):
        tree.register_dataclass(Bad, ["a"], ["c"])
    with pytest.raises(ArgumentError, match="both"):
        tree.register_dataclass(Bad, ["a"])


def test_a_named_tuple_that_is_registered_keeps_its_keys():
    class Pair(NamedTuple):
        value: object
        label: object

    ft.tree_util.register_pytree_with_keys(
        Pair, lambda p: (((ft.tree_util.DictKey("only"), p.value),), p.label), lambda label, c: Pair(c[0], label)
    )
    from functorch_like.backends.xla import pytree

    keyed, label = pytree.flatten_one_level_with_keys(Pair(1, "a"))
    assert list(keyed) == [(ft.tree_util.DictKey("only"), 1)] and label == "a"
    keyed, _ = pytree.flatten_one_level_with_keys(Point(1, 2))
    assert [str(key) for key, _ in keyed] == [".x", ".y"]


class Attributes:
    """A node whose children are those attributes that are arrays, as distrax's distributions are."""

    def __init__(self, **values):
        self.__dict__.update(values)


def _flat(node):
    arrays = {k: v for k, v in node.__dict__.items() if isinstance(v, (ft.Array, np.ndarray))}
    rest = tuple((k, v) for k, v in node.__dict__.items() if k not in arrays)
    return list(arrays.values()), (tuple(arrays), rest)


ft.tree.register_pytree_node(
    Attributes, _flat, lambda names, values: Attributes(**dict(zip(names[0], values, strict=True)), **dict(names[1]))
)


def test_nodes_that_tell_arrays_from_other_attributes():
    node = Attributes(a=fnp.ones(2), b=np.ones(2, np.float32), n=3)
    assert ft.jit(lambda x, d: (x * d.b).sum() + d.a.sum() * d.n)(1.0, node).item() == 8
    assert ft.tree.leaf_paths(ft.tree.structure({"z": (1, node)})) == ["['z'][0]", "['z'][1][0]", "['z'][1][1]"]
    together = ft.tree_util.treedef_tuple([ft.tree.structure(node), ft.tree.structure({"k": 1})])
    assert together == ft.tree.structure((node, {"k": 2})) and together.num_leaves == 3
    with pytest.raises(ft.errors.ShapeError, match=r"args\[0\]\[1\]"):
        ft.vmap(lambda d: d.a.sum() + d.b.sum())(Attributes(a=fnp.ones(2), b=np.ones(3), n=3))


@pytest.mark.parametrize("register", [tree.register_pytree_node_class, tree.register_pytree_with_keys_class])
def test_classes_lack_methods(register):
    class Bare:
        pass

    with pytest.raises(ArgumentError, match=r"tree_flatten.* and no method tree_unflatten"):
        register(Bare)
