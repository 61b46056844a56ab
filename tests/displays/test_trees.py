"""Displays of pytrees."""

import time
from collections import namedtuple

import numpy as np
import pytest
from support.markup import fits, page

import functorch_like as ft
import functorch_like.numpy as fnp

Pair = namedtuple("Pair", "mean spread")


class Hostile:
    def __repr__(self):
        raise ValueError("no")


def test_shapes_and_bytes():
    params = {"dense": {"w": fnp.ones((128, 64)), "b": np.zeros(64)}, "step": 3, "pair": Pair(fnp.ones(2), None)}
    text = str(ft.inspect.tree(params))
    lines = [line.split() for line in text.split("\n")]
    assert lines[0] == ["dict", "of", "3", "4", "leaves,", "32.5", "KiB"]
    assert ["'w':", "f32[128,64]", "32", "KiB"] in lines and ["'b':", "f64[64]", "ndarray", "512", "bytes"] in lines
    assert ["'step':", "3"] in lines
    assert ["mean:", "f32[2]", "8", "bytes"] in lines and ["spread:", "None"] in lines
    found = page(ft.inspect.tree(params))
    assert found.tags.count("details") == 3 and "f32[128,64]" in found.text


def test_no_value_is_read_and_an_array_counts_once(monkeypatch):
    from functorch_like.backends import xla

    monkeypatch.setattr(xla, "to_numpy", lambda x: pytest.fail("read"))
    x = fnp.ones(1000)
    assert str(ft.inspect.tree([x, x])).split("\n")[0].split() == ["list", "of", "2", "2", "leaves,", "3.91", "KiB"]


def test_odd_leaves():
    gone = fnp.ones(3)
    gone.delete()
    tree = {
        "<script>alert(1)</script>": "<b>", "hostile": Hostile(), "gone": gone, "empty": {}, "none": None,
        "long": "x" * 1000, "struct": ft.ShapeDtypeStruct((2,), "bfloat16"), "typed": ft.random.key(1),
    }  # fmt: skip
    shown = ft.inspect.tree(tree)
    text = str(shown)
    assert fits(text) and "f32[3] deleted" in text and "bf16[2] without values" in text and "Hostile" in text
    assert "<script>" in page(shown).text and "<script>" not in shown._repr_html_()
    ft.jit(lambda x: (page(ft.inspect.tree({"x": x})), x)[1])(fnp.ones(3))
    for leaf in (3, None, "text", fnp.ones(2), ft.typeof(fnp.ones(3))):
        assert fits(str(ft.inspect.tree(leaf))) and page(ft.inspect.tree(leaf))


def test_many_leaves_are_cut():
    x = fnp.ones(8)
    tree = {f"layer{k:06}": {"w": x} for k in range(100_000)}
    started = time.process_time()
    shown = ft.inspect.tree(tree)
    assert "... 99960 more with 99960 leaves, 32 bytes" in str(shown)
    assert len(shown._repr_html_()) < 40_000
    assert time.process_time() - started < 60  # a loose bound: it takes about one


def test_deep_trees_and_trees_that_contain_themselves():
    deep = fnp.ones(2)
    for _ in range(600):
        deep = [deep]
    text = str(ft.inspect.tree(deep))
    assert fits(text) and "... 1 more with 1 leaf" in text and page(ft.inspect.tree(deep))
    cyclic = []
    cyclic.append(cyclic)
    assert "contains itself" in str(ft.inspect.tree(cyclic))
    assert "cannot be sorted" in str(ft.inspect.tree({1: fnp.ones(2), "a": 3}))


def test_fields_of_named_tuples_have_their_own_names():
    """C++ names each child of a named tuple after the first; the package corrects this."""
    from functorch_like.backends.xla import pytree

    keys = [str(key) for key, _ in pytree.flatten_one_level_with_keys(Pair(1, 2))[0]]
    assert keys == [".mean", ".spread"]
    with pytest.raises(ft.FtError, match="spread"):
        ft.tree.map(lambda x, y: x, Pair(1, (2, 3)), Pair(1, (2, 3, 4)))
