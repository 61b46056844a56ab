"""Trees that contain themselves, are nested too deep, or have keys without an order; and the state after errors."""

from __future__ import annotations

import functools
from collections import OrderedDict
from typing import Any

import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax, tree
from functorch_like.errors import TreeDepthError, TreeError


class Node:
    """A module with a reference to its parent."""

    def __init__(self, value: Any, parent: Any = None) -> None:
        self.value, self.parent = value, parent


tree.register_pytree_node(Node, lambda n: ((n.value, n.parent), None), lambda _, children: Node(*children))


class Failing:
    """A node that cannot be flattened."""


class Layer:
    """A class with a jitted method."""

    @functools.partial(ft.jit, static_argnums=0)
    def forward(self, t: Any) -> Any:
        return t


def _fail(node: Any) -> Any:
    raise KeyError("missing")


tree.register_pytree_node(Failing, _fail, lambda _, children: Failing())


def nested(depth: int, innermost: Any = 1.0) -> Any:
    found = innermost
    for _ in range(depth):
        found = [found]
    return found


def cyclic_list() -> Any:
    found: list[Any] = [1.0]
    found.append(found)
    return found


def cyclic_dict() -> Any:
    found: dict[str, Any] = {"a": 1.0}
    found["b"] = {"c": found, "d": 2.0}
    return found


def cyclic_node() -> Any:
    parent = Node(1.0)
    parent.parent = (Node(2.0, parent),)
    return parent


def cyclic_ordered() -> Any:
    found: OrderedDict[str, Any] = OrderedDict(a=1.0)
    found["b"] = found
    return found


#: A function that makes a tree, the path at which the tree repeats, and the path of the repeated subtree.
CYCLES = {
    "list": (cyclic_list, "[1]", "the root"),
    "dict": (cyclic_dict, "['b']['c']", "the root"),
    "node": (cyclic_node, "[<flat index 1>][0][<flat index 1>]", "the root"),
    "ordered": (cyclic_ordered, "['b']", "the root"),
    "below": (lambda: {"x": 1.0, "y": cyclic_list()}, "['y'][1]", "['y']"),
}

USES = {
    "leaves": tree.leaves,
    "structure": tree.structure,
    "leaves_with_path": tree.leaves_with_path,
    "map": lambda t: tree.map(lambda x: x, t),
    "is_leaf": lambda t: tree.leaves(t, is_leaf=lambda x: x is None),
    "grad": lambda t: ft.grad(lambda t: 1.0)(t),
    "vmap": lambda t: ft.vmap(lambda t: 1.0)(t),
    "jvp": lambda t: ft.jvp(lambda t: t, (t,), (t,)),
    "scan": lambda t: lax.scan(lambda c, x: (c, x), t, None, length=2),
    "cond": lambda t: lax.cond(True, lambda t: t, lambda t: t, t),
    "result of jit": lambda t: ft.jit(lambda x: t)(1.0),
    "device_put": ft.device_put,
    "eval_shape": lambda t: ft.eval_shape(lambda t: t, t),
    "lower": lambda t: ft.jit(lambda t: t).lower(t),
    "jit": lambda t: ft.jit(lambda t: t)(t),
    "static": lambda t: ft.jit(lambda n, t: t, static_argnums=0)(1, t),
    "donated": lambda t: ft.jit(lambda x, t: t, donate_argnums=0)(1.0, t),
    "keyword": lambda t: ft.jit(lambda x, t: t)(1.0, t=t),
    "method": lambda t: Layer().forward(t),
}


def levels() -> int:
    """Return the number of calls left in this thread."""

    def deeper(n: int) -> int:
        try:
            return deeper(n + 1)
        except RecursionError:
            return n

    return deeper(0)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", CYCLES)
def test_a_tree_that_contains_itself(kind: str, use: str) -> None:
    make, path, first = CYCLES[kind]
    before = levels()
    with pytest.raises(
        TreeDepthError, match=r"contains itself(.|\n)*test_nesting.py(.|\n)*what to do: leave the"
    ) as caught:
        USES[use](make())
    told = str(caught.value).split("\n", maxsplit=1)[0]
    assert path in told
    assert first == "the root" or first in told.partition(" is what is at ")[2]
    assert isinstance(caught.value, (RecursionError, ValueError))
    assert levels() > before - 150  # the thread has its calls back
    assert tree.leaves({"a": [1, {"b": 2, "c": 3}]}) == [1, 2, 3]


@pytest.mark.parametrize("use", USES)
def test_a_tree_that_is_nested_too_deep(use: str) -> None:
    with pytest.raises(TreeDepthError, match=r"nested 2000\d levels deep(.|\n)*test_nesting.py(.|\n)*flat list"):
        USES[use](nested(20_000))


@pytest.mark.parametrize("make", [cyclic_list, lambda: (cyclic_list(),), lambda: nested(20_000)])
def test_arguments_of_jit_are_named(make: Any) -> None:
    f = ft.jit(lambda x, t: 1.0)
    with pytest.raises(
        TreeDepthError, match=r"(args\[1\].* is what is at args\[1\]|levels deep)(.|\n)*test_nesting.py"
    ):
        f(1.0, make())
    assert float(f(1.0, [2.0])) == 1  # the function still works


@pytest.mark.parametrize("make", [cyclic_dict, lambda: {1: 1.0, "a": 2.0}])
def test_functions_that_were_called_before_name_themselves_and_go_on(make: Any) -> None:
    def loss(t: Any) -> Any:
        return fnp.asarray(tree.leaves(t)[0])

    f = ft.jit(loss)
    assert float(f({"a": 1.0, "b": 2.0})) == 1
    for _ in range(3):
        with pytest.raises(TreeError, match=r"loss: (.|\n)*test_nesting.py(.|\n)*what to do: "):
            f(make())
        assert float(f({"a": 1.0, "b": 2.0})) == 1
    assert float(ft.vmap(f)({"a": fnp.ones(1)})[0]) == 1


def test_deep_trees_within_the_limit() -> None:
    assert tree.leaves(nested(300)) == [1.0]
    assert float(ft.grad(lambda t: tree.leaves(t)[0] ** 2)(nested(300, 3.0))[0] is not None)
    assert float(tree.leaves(ft.jit(lambda t: tree.map(lambda x: 2 * x, t))(nested(300, fnp.ones(()))))[0]) == 2


@pytest.mark.parametrize("use", [tree.leaves, ft.jit(lambda t: 1.0)])
@pytest.mark.parametrize("leaf", [{1: 1.0, "a": 2.0}, Failing()])
def test_errors_leave_no_levels_of_recursion_behind(leaf: Any, use: Any) -> None:
    before = levels()
    for _ in range(200):
        with pytest.raises((TreeError, KeyError)):
            use(nested(50, leaf))
    assert levels() > before - 150


def test_a_user_function_that_fails_keeps_its_error() -> None:
    with pytest.raises(KeyError, match="missing"):
        tree.leaves([Failing()])
    with pytest.raises(ZeroDivisionError):
        tree.leaves([1, 2], is_leaf=lambda x: 1 / 0)
