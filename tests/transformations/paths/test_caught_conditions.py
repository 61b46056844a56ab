"""Conditions on unknown values inside of code that catches all exceptions, or raises and returns in `finally`."""

import contextlib

import numpy as np
import pytest
from support.python_paths import paths

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax

XS = np.array([1.0, -2.0, 3.0], np.float32)


def bare_except(x):
    try:
        y = x * 1.0 if x > 0 else x * 2
    except:  # noqa: E722
        y = x * 33
    return y


def finally_returns(x):
    y = x * 7
    try:
        if x > 2:
            y = x * 2
        elif x < 0:
            y = x * 3
    finally:
        return y  # noqa: B012


def finally_raises(x):
    try:
        if x < 0:
            raise ValueError
        y = x * 2
    except ValueError:
        y = x * x
    finally:
        y = y + 1
    return y


def suppressed(x):
    y = x * 7
    with contextlib.suppress(BaseException):
        if x > 2:
            y = x * 2
    return y


def met_again(x):
    total = x * 0
    for _ in range(3):
        try:
            total = total - 2 if total > x else total + 3
            y = total * 1
        finally:
            total = y + 1
    return total


FUNCTIONS = [bare_except, finally_returns, finally_raises, suppressed, met_again]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    "over",
    [
        lambda f: paths(ft.vmap(f)),
        lambda f: ft.vmap(paths(f)),
        lambda f: paths(lambda xs: lax.map(f, xs)),
        lambda f: paths(lambda xs: lax.scan(lambda c, x: (c, f(x)), 0, xs)[1]),
    ],
    ids=["inner vmap", "outer vmap", "map", "scan"],
)
def test_both_sides_are_computed(f, over):
    expected = np.stack([f(x) for x in XS])
    np.testing.assert_allclose(over(f)(XS), expected, rtol=1e-6)


def test_derivatives_of_both_sides():
    slopes = paths(ft.vmap(ft.grad(finally_raises)))(XS)
    np.testing.assert_allclose(slopes, np.where(XS < 0, 2 * XS, 2), rtol=1e-6)


def test_other_exceptions_come_out():
    def f(x):
        try:
            return x[7]
        finally:
            fnp.sum(x)

    with pytest.raises(ft.errors.BoundsError, match="out of bounds"):
        paths(lambda xs: lax.map(f, xs))(np.ones((2, 3), np.float32))
