"""Tracebacks of errors that a user's code raises: the user's lines alone, whatever transforms the function."""

import traceback

import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax

X = fnp.ones(3)


def inner(x):
    return x if x is None else 1 / 0


def f(x):
    return inner(x)


WORK = {
    "jit": lambda: ft.jit(f)(X),
    "grad": lambda: ft.grad(f)(1.0),
    "vmap": lambda: ft.vmap(f)(X),
    "jit of grad": lambda: ft.jit(ft.grad(f))(1.0),
    "jit of vmap of jit": lambda: ft.jit(lambda x: ft.vmap(ft.jit(f))(x))(X),
    "scan": lambda: lax.scan(lambda c, v: (f(c), v), 0.0, X),
    "cond": lambda: lax.cond(True, f, f, 1.0),
    "paths": lambda: ft.jit(f, control_flow="paths")(X),
    "callback": lambda: ft.jit(lambda x: ft.pure_callback(f, x, x))(X),
    "tree": lambda: ft.tree.map(f, [X]),
    "hessian": lambda: ft.hessian(f)(X),
    "checkpoint": lambda: ft.grad(ft.checkpoint(f))(1.0),
    "lower": lambda: ft.jit(f).lower(X),
}


def files(error):
    return [frame.filename for frame in traceback.extract_tb(error.__traceback__)]


@pytest.mark.parametrize("name", WORK)
def test_only_lines_of_the_user(name):
    with pytest.raises(ZeroDivisionError) as e:
        WORK[name]()
    assert files(e.value)[-2:] == [__file__, __file__] and set(files(e.value)[1:]) == {__file__}


def test_all_lines_on_demand(monkeypatch):
    monkeypatch.setenv("FT_TRACEBACK", "full")
    with pytest.raises(ZeroDivisionError) as e:
        ft.jit(f)(X)
    assert any("functorch_like" in file and "tests" not in file for file in files(e.value))


def test_wrong_calls_and_other_libraries():
    with pytest.raises(TypeError, match="missing 1 required") as e:
        ft.jit(lambda x, y: x)(X)
    assert set(files(e.value)) == {__file__}
    with pytest.raises(ValueError, match="Expecting value") as e:
        ft.jit(lambda x: __import__("json").loads("x"))(X)
    assert files(e.value)[-1].endswith("decoder.py") and not any("functorch_like/calling" in f for f in files(e.value))
