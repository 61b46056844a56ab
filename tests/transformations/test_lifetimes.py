"""Lifetimes of functions, tracers and NumPy memory, and the state of a thread after an error."""

import gc
import weakref

import numpy as np
import pytest
from support import lifetimes

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import core

X = np.linspace(0.1, 0.9, 3, dtype=np.float32)

TRANSFORMS = {
    "jit": ft.jit,
    "grad": ft.grad,
    "vmap": ft.vmap,
    "jvp": lambda f: lambda x: ft.jvp(f, (x,), (x,)),
    "linearize": lambda f: lambda x: ft.linearize(f, x)[1](x),
    "grad of jit": lambda f: ft.grad(ft.jit(f)),
    "vmap of jit": lambda f: ft.vmap(ft.jit(f)),
    "jit of vmap": lambda f: ft.jit(ft.vmap(f)),
    "make_jaxpr": ft.make_jaxpr,
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_function_dies_with_its_transformed_form(name):
    def fun(x):
        return fnp.sum(x * 2.0)

    transformed = TRANSFORMS[name](fun)
    transformed(X)
    gone = weakref.ref(fun)
    del fun, transformed
    lifetimes.collect()
    assert gone() is None


@pytest.mark.parametrize("name", TRANSFORMS)
def test_tracers_die_with_their_trace(name):
    seen = []

    def fun(x):
        y = x * 2.0
        seen.extend([weakref.ref(x), weakref.ref(y)])
        return fnp.sum(y)

    transformed = TRANSFORMS[name](fun)
    transformed(X)
    lifetimes.collect()
    assert seen and all(ref() is None for ref in seen)


@pytest.mark.parametrize("size", [3, 100])
def test_numpy_memory_closed_over_is_read_once(size):
    """A trace keeps the values that it closed over, whatever the memory holds when the trace is used again."""
    host = np.ones(size, np.float32)
    x = np.full(size, 2.0, np.float32)
    f = ft.jit(lambda x: fnp.sum(x * host))
    assert float(f(x)) == 2 * size
    jaxpr = ft.make_jaxpr(lambda x: x * host)(x)
    lowered = ft.jit(lambda x: x * host).lower(x)
    _, pull = ft.vjp(lambda x: x * host, x)
    _, push = ft.linearize(lambda x: x * host, x)
    host[:] = -5
    assert float(f(x)) == 2 * size
    np.testing.assert_array_equal(ft.vmap(f)(x[None]), [2 * size])
    np.testing.assert_array_equal(ft.grad(f)(x), np.ones(size))
    np.testing.assert_array_equal(lowered.compile()(x), x)
    assert "-5" not in str(jaxpr)
    np.testing.assert_array_equal(pull(x)[0], x)
    np.testing.assert_array_equal(push(x), x)


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("kind", ["ours", "the user's"])
def test_an_error_leaves_no_trace_behind(name, kind):
    def fun(x):
        if kind == "ours":
            return fnp.sum(x) + fnp.zeros(2) + fnp.zeros(3)
        fnp.sin(x)
        raise KeyError("mine")

    with pytest.raises(ft.FtError if kind == "ours" else KeyError):
        TRANSFORMS[name](fun)(X)
    assert core.state.trace is core.EVALUATE
    assert core.state.axes == () and core.state.source is None
    assert float(ft.jit(lambda x: x + 1.0)(1.0)) == 2


def test_an_error_in_a_nested_axis_unbinds_its_name():
    def inner(x):
        raise KeyError("mine")

    with pytest.raises(KeyError):
        ft.vmap(ft.vmap(inner, axis_name="b"), axis_name="a")(np.ones((2, 2)))
    assert core.state.axes == ()


def test_pullbacks_outlive_the_arrays_they_came_from():
    def make():
        return ft.vjp(lambda x, y: fnp.sin(x) * y, fnp.asarray(X), fnp.asarray(X) + 1)[1]

    pull = make()
    gc.collect()
    np.testing.assert_allclose(pull(X)[0], np.cos(X) * (X + 1) * X, rtol=1e-6)
