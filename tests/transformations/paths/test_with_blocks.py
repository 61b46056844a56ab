"""Branches that meet again, and loops, inside of `with` blocks."""

import contextlib

import numpy as np
import pytest

import functorch_like as ft

VALUES = [np.float32(v) for v in (3, 4, 5, 0, -3, 2, 1, -1, 10, 1.5)]


def agree(fun):
    """Check calls against plain Python, and return the report of the paths."""
    followed = ft.jit(fun, control_flow="paths")
    for v in VALUES:
        assert float(followed(v)) == float(fun(v))
    return followed.paths()


def test_a_block_entered_before_the_first_condition():
    def f(x):
        with ft.named_scope("scope"):
            y = x * 2 if x > 0 else -x
            if y > 3:  # noqa: SIM108  (a statement, whose branches meet)
                y = y + 1
            else:
                y = y - 1
            while y > 5:
                y = y / 2
        return y

    report = agree(f)
    assert report.total
    assert len(str(report).split("->")) - 1 <= 4


@contextlib.contextmanager
def counting(totals):
    calls = []
    yield calls.append
    totals.append(len(calls))


def test_what_a_block_hides_may_change():
    def f(x):
        totals = []
        with counting(totals) as count:
            while x > 1:
                x = x / 2
                count(1)
        return x + totals[0]

    agree(f)


class Scale:
    def __init__(self, by):
        self.by, self.result = by, None

    def __enter__(self):
        return None

    def __exit__(self, *_):
        SEEN.append(self.by)


SEEN = []


@pytest.mark.parametrize("looped", [False, True])
def test_blocks_entered_after_a_condition_may_differ(looped):
    def f(x):
        SEEN.clear()
        k = 1 if x > 0 else 2
        for j in range(2 if looped else 1):
            with Scale(k + j):
                k = 0
                if x > 2:
                    x = x + 1
        return x * SEEN[0] + sum(SEEN)

    agree(f)


def test_blocks_in_a_loop_may_differ():
    def f(x):
        SEEN.clear()
        k = 0
        while k < 3:
            with Scale(k * k):
                k += 1
                if x > 2:
                    x = x - 1
        return x + sum(SEEN)

    agree(f)


def test_exceptions_inside_of_blocks():
    def f(x):
        with contextlib.suppress(ValueError):
            if x > 0:
                x = x + 1
            if x > 3:
                raise ValueError
            x = x * 2
        return x if x > 5 else -x

    agree(f)
