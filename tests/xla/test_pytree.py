from collections import OrderedDict, defaultdict, namedtuple

import pytest

from functorch_like.backends import xla

Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("tree", "leaves"),
    [
        (1, [1]),
        (None, []),
        ((1, [2, (3,)], None), [1, 2, 3]),
        ({"b": 1, "a": {"c": 2}}, [2, 1]),
        (OrderedDict([("b", 1), ("a", 2)]), [1, 2]),
        (defaultdict(list, {"b": 1, "a": 2}), [2, 1]),
        (Point(1, (2, 3)), [1, 2, 3]),
    ],
)
def test_there_and_back(tree, leaves):
    found, treedef = xla.flatten(tree)
    assert found == leaves and treedef.num_leaves == len(leaves) and xla.structure(tree) == treedef
    back = xla.unflatten(treedef, leaves)
    assert back == tree and type(back) is type(tree) and hash(treedef) == hash(xla.structure(back))
    if isinstance(tree, defaultdict):
        assert back.default_factory is list


def test_paths():
    tree = {"a": [1, OrderedDict(k=2)], "b": defaultdict(int, z=3)}
    paths = [tuple(map(str, path)) for path, _ in xla.flatten_with_path(tree)[0]]
    assert paths == [("['a']", "[0]"), ("['a']", "[1]", "['k']"), ("['b']", "['z']")]


def test_leaves_by_predicate():
    assert xla.flatten([1, None, (2,)], lambda x: x is None)[0] == [1, None, 2]
    assert xla.structure((1, 2), lambda x: isinstance(x, tuple)) == xla.leaf_structure


def test_registered_types():
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    xla.register_node(Pair, lambda p: ((p.a,), p.b), lambda aux, children: Pair(*children, aux))
    leaves, treedef = xla.flatten([Pair(1, "static")])
    assert leaves == [1] and treedef.unflatten([5])[0].b == "static" and xla.is_node(Pair) and not xla.is_node(int)
    with pytest.raises(ValueError, match=r"[Dd]uplicate"):
        xla.register_node(Pair, lambda p: ((), None), lambda aux, children: None)
