"""Notices of functions compiled repeatedly or closing over large arrays: logged once, with line and remedy."""

import functools

import numpy as np
import pytest
from support.messages import says

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.transforms import compile_notices


@pytest.fixture
def notes(monkeypatch, caplog):
    ft.clear_caches()
    monkeypatch.setattr(compile_notices, "PROGRAMS", 3)
    monkeypatch.setattr(compile_notices, "SECONDS", 0.0)
    monkeypatch.setattr(compile_notices, "BYTES", 2**10)
    return lambda: [r.getMessage() for r in caplog.records if r.name == "functorch_like"]


def test_shapes_that_change(notes):
    def total(x):
        return fnp.sum(x)

    f = ft.jit(total)
    for n in range(1, 7):
        f(fnp.ones(n))
    (note,) = notes()
    says(
        note,
        "total was compiled 3 times",
        "test_compile_notices.py",
        "shape (2,) before, (3,) now",
        "buckets=",
        "explain",
    )


def test_static_values_that_change(notes):
    f = ft.jit(lambda x, n: x * n, static_argnames="n")
    for n in range(6):
        f(1.0, n=n)
    (note,) = notes()
    says(note, "static argument 'n': 1 before, 2 now", "as arrays")


def test_functions_made_anew(notes):
    for _ in range(6):
        ft.jit(lambda x: x + 1)(1.0)
    (note,) = notes()
    says(note, "<lambda> was compiled 3 times", "another function object", "outside of the loop", "caching.md")


def test_what_takes_no_time_is_not_reported(notes, monkeypatch):
    monkeypatch.setattr(compile_notices, "SECONDS", 1e6)
    for n in range(1, 6):
        ft.jit(fnp.sum)(fnp.ones(n))
    assert notes() == []


def test_functions_that_are_different_do_not_add_up(notes):
    for f in (lambda x: x + 1, lambda x: x + 2, lambda x: x + 3, functools.partial(fnp.add, 1.0)):
        ft.jit(f)(1.0)
    assert notes() == []


def test_functions_of_one_wrapper_do_not_add_up(notes):
    """A library's wrapper passes its user's function as a static argument, in a tuple of its parts."""

    def wrapped(parts, x):
        return parts[0][0](x)

    call = ft.jit(wrapped, static_argnums=0)
    for f in (fnp.sin, fnp.cos, fnp.tan, lambda x: x + 1, lambda x: x + 2, lambda x: x + 3):
        call(((f,), "options"), 1.0)
    assert notes() == []
    for n in range(4):
        call(((lambda x: x - 1,), "options", n, "long " * 200), 1.0)
    (note,) = notes()
    says(note, "wrapped was compiled 3 times", "static argument", " ...")
    assert len(note) < 700


@pytest.mark.parametrize("array", [np.ones((20, 30), "float32"), fnp.ones((20, 30))], ids=["numpy", "here"])
def test_large_arrays_that_a_function_closes_over(notes, array):
    def predict(x):
        return x @ array

    for n in (20, 20, 40):
        ft.jit(predict)(fnp.ones((n, 20)))
    (note,) = notes()
    says(note, "predict, called at", "test_compile_notices.py", "2.34 KiB", "f32[20,30]", "as arguments")


def test_small_arrays_and_arguments_are_not_reported(notes):
    small = fnp.ones(3)
    ft.jit(lambda x, big: x * small + big[:3])(fnp.ones(3), fnp.ones(10_000))
    ft.grad(lambda big: ft.jit(lambda x: fnp.sum(x * big))(2.0))(fnp.ones(10_000))  # values of an outer trace
    assert notes() == []
