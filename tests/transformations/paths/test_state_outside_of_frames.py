"""Functions that count in global variables, or in attributes of classes, functions and modules, on the way."""

import types

import numpy as np
import pytest
from support.python_paths import paths

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors, lax

COUNTS = {"n": 0}
NUMBER = 0
ITEMS = []
SPACE = types.SimpleNamespace(n=0)
CALLS = 0


class Meter:
    n = 0
    last = None

    @classmethod
    def halve(cls, x):
        cls.n += 1
        cls.last = x
        return x / 2


def in_a_dict(x):
    COUNTS["n"] = 0
    while x > 1:
        x = x / 2
        COUNTS["n"] += 1
    return x * COUNTS["n"]


def in_a_variable(x):
    global NUMBER
    NUMBER = 0
    while x > 1:
        x = x / 2
        NUMBER += 1
    return x * NUMBER


def in_a_list(x):
    ITEMS.clear()
    while x > 1:
        x = x / 2
        ITEMS.append(1)
    return x * len(ITEMS)


def in_an_object(x):
    SPACE.n = 0
    while x > 1:
        x = x / 2
        SPACE.n += 1
    return x * SPACE.n


def in_a_class(x):
    Meter.n, Meter.last = 0, x * 0
    while x > 1:
        x = Meter.halve(x)
    return x * Meter.n + Meter.last


def in_a_local_class(x):
    class Local:
        n = 0

    while x > 1:
        x = x / 2
        Local.n += 1
    return x * Local.n


def in_a_function(x):
    def halve(v):
        halve.n += 1
        return v / 2

    halve.n = 0
    while x > 1:
        x = halve(x)
    return x * halve.n


def by_a_helper(x):
    COUNTS["n"] = 0
    while x > 1:
        x = _halved(x)
    return x * COUNTS["n"]


def _halved(x):
    COUNTS["n"] += 1
    return x / 2


def on_a_branch(x):
    COUNTS["n"] = 1
    if x > 0:
        COUNTS["n"] = 2
    if x > 3:
        return x * COUNTS["n"]
    return x + COUNTS["n"]


LOOPS = [
    in_a_dict, in_a_variable, in_a_list, in_an_object, in_a_class, in_a_local_class, in_a_function, by_a_helper,
]  # fmt: skip
XS = [np.float32(x) for x in (5.0, 20.0, 0.5, 7.0)]


@pytest.mark.parametrize("f", [*LOOPS, on_a_branch], ids=lambda f: f.__name__)
def test_values_are_those_of_python(f):
    followed = paths(f)
    for _ in range(2):
        for x in XS:
            assert float(followed(x)) == pytest.approx(float(f(x)), rel=1e-6)
    np.testing.assert_allclose(ft.vmap(followed)(np.stack(XS)), [f(x) for x in XS], rtol=1e-6)


def test_branches_are_computed_where_values_are_unknown():
    mapped = paths(lambda xs: lax.map(on_a_branch, xs))
    np.testing.assert_allclose(mapped(np.stack(XS)), [on_a_branch(x) for x in XS], rtol=1e-6)


@pytest.mark.parametrize("f", LOOPS[:2], ids=lambda f: f.__name__)
def test_loops_on_unknown_values_are_refused(f):
    with pytest.raises(errors.ConcretizationError, match=r"more than 64 paths(.|\n)*count in an array"):
        paths(lambda xs: lax.map(f, xs))(np.stack(XS))


def test_what_changes_before_the_first_condition_joins_no_less():
    def f(x):
        global CALLS
        CALLS += 1
        y = x * 0
        for k in range(8):  # 256 paths, unless branches meet again
            y = y + fnp.sin(x) if x > k else y - x
        return y

    mapped = paths(ft.vmap(f))
    xs = np.array([0.5, 3.5, 9.0], np.float32)
    expected = [sum((np.sin(x) if x > k else -x) for k in range(8)) for x in xs]
    np.testing.assert_allclose(mapped(xs), expected, rtol=1e-5)
