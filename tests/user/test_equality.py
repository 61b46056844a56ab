"""Comparing dtypes, structures, avals and arrays with any other object gives a bool and raises no error."""

import itertools
import warnings

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import tree

OTHERS = [
    None, "any text", "f4, text", "a, b", "(", "", "\0", b"a", 0, 1.5, [1, 2], (1, 2), ("f4", "zz"), {1: 2}, {1}, ...,
    object(), slice(1), np.zeros(3), np.zeros(3, object), np.array(["a"]), np.zeros(2, "f4,f4"), fnp.zeros(3),
    fnp.zeros(()), np.ma.zeros(3), np.str_("x"), np.datetime64("2020"), np.floating, type, len,
]  # fmt: skip
THINGS = {
    "scalar type": fnp.float32,
    "aval": ft.typeof(fnp.ones(3)),
    "shape": ft.ShapeDtypeStruct((3,), "float32"),
    "structure": tree.structure([1, 2]),
    "function": ft.jit(lambda x: x),
    "device": ft.devices()[0],
}


@pytest.mark.parametrize("name", ["scalar type", "structure", "shape"])
def test_nothing_else_is_equal(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for other in OTHERS:
            assert (THINGS[name] == other) is False and (THINGS[name] != other) is True, repr(other)


@pytest.mark.parametrize("name", THINGS)
def test_text_and_nothing_are_unequal(name):
    for other in (None, "any text", "f4, text", object(), 3, (1, 2), {}):
        assert (THINGS[name] == other) is False and (other == THINGS[name]) is False
        assert (THINGS[name] != other) is True and (other != THINGS[name]) is True


def test_dtypes_are_equal_by_whatever_name():
    for name in ("float32", "float64", "int8", "bool", "bfloat16", "complex64"):
        ours, numpys = getattr(fnp, name if name != "bool" else "bool_"), fnp.dtype(name)
        for same in (numpys, name, numpys.type, fnp.zeros(1, name).dtype, getattr(fnp, ours.dtype.name, ours)):
            assert ours == same and same == ours and (ours != same) is False
        assert hash(ours) == hash(numpys) and {ours: 1}[numpys] == 1
        assert ours != fnp.int16 and fnp.int16 != ours
    assert fnp.float64 != None  # noqa: E711  (NumPy takes None for float64)


def test_structures_compare_with_each_other():
    one, two = tree.structure([1, 2]), tree.structure([1, 2])
    assert (one == two) is True and (one != two) is False and hash(one) == hash(two)
    assert (one == tree.structure(1)) is False and (one != tree.structure((1, 2))) is True


def test_arrays_compare_with_what_is_no_array():
    for x, other in itertools.product((fnp.ones(3), fnp.ones(())), (None, "any text", {}, object())):
        assert (x == other) is False and (x != other) is True and (other == x) is False
