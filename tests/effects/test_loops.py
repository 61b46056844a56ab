"""Effects in loops and branches: once each time the program reaches them, and in order if they are ordered."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.backends import xla

WRAPS = [pytest.param(lambda f: f, id="eager"), pytest.param(ft.jit, id="jit")]


def say(*values):
    ft.debug.print("-".join(["{}"] * len(values)), *values, ordered=True)


def steps(n):
    """Run a scan whose body has a call, a branch and a while loop."""
    inner = ft.jit(lambda i: say("call", i))

    def step(c, i):
        say("step", i)
        inner(i)
        lax.cond(i % 2 == 0, lambda i: say("even", i), lambda i: None, i)
        lax.while_loop(lambda k: k < i, lambda k: (say("while", k), k + 1)[1], 0)
        say("end", i)
        return c + i, i

    return lax.scan(step, 0, fnp.arange(n))[0]


def expected(n):
    for i in range(n):
        yield f"step-{i}"
        yield f"call-{i}"
        if i % 2 == 0:
            yield f"even-{i}"
        for k in range(i):
            yield f"while-{k}"
        yield f"end-{i}"


@pytest.mark.parametrize("wrap", WRAPS)
def test_order_is_that_of_the_program(wrap, capsys):
    def f(n):
        say("begin")
        total = steps(3)
        say("total", total)
        return total * n

    g = wrap(f)
    for _ in range(2):
        assert int(g(2)) == 6
        assert capsys.readouterr().out.split() == ["begin", *expected(3), "total-3"]


def test_order_under_derivatives(capsys):
    def f(x):
        def step(c, i):
            say(i)
            return lax.cond(i > 0, lambda c: (say("pos"), c * x)[1], lambda c: (say("neg"), c)[1], c), None

        say("begin")
        y = lax.scan(step, x, fnp.arange(3))[0]
        say("end")
        return y

    for g in (ft.grad(ft.jit(f)), ft.jit(ft.grad(f)), ft.grad(f), lambda x: ft.jvp(f, (x,), (1.0,))[1]):
        np.testing.assert_allclose(g(2.0), 12.0)
        assert capsys.readouterr().out.split() == ["begin", "0", "neg", "1", "pos", "2", "pos", "end"]


@pytest.mark.parametrize("wrap", WRAPS)
def test_unordered_effects_are_kept_though_nothing_else_is(wrap):
    seen = []
    note = lambda v: seen.append(int(v))

    def f(n):
        lax.scan(lambda c, i: (c, ft.debug.callback(note, i)), None, fnp.arange(3))
        lax.fori_loop(0, n, lambda i, c: (ft.debug.callback(note, i + 10), c)[1], 0)
        lax.switch(n, [lambda: None, lambda: ft.debug.callback(note, 20), lambda: ft.debug.callback(note, 30)])

    wrap(f)(2)
    assert sorted(seen) == [0, 1, 2, 10, 11, 30]


@pytest.mark.parametrize("wrap", WRAPS)
def test_pure_and_io_callbacks_in_loops(wrap):
    seen = []
    scalar = ft.ShapeDtypeStruct((), "float32")

    def f(xs):
        def step(c, x):
            y = ft.pure_callback(lambda v: v * 2, scalar, x)
            z = ft.io_callback(lambda v: (seen.append(float(v)), v + 1)[1], scalar, y, ordered=True)
            return c + z, z

        return lax.scan(step, 0.0, xs)

    total, zs = wrap(f)(fnp.asarray([1.0, 2.0]))
    assert float(total) == 8.0 and zs.tolist() == [3.0, 5.0] and seen == [2.0, 4.0]


@pytest.mark.parametrize("wrap", WRAPS)
def test_vmap_of_loops(wrap):
    seen = []
    note = lambda k, v: seen.append((int(k), float(v)))

    def f(n, x):
        def step(k, x):
            ft.debug.callback(note, k, x)
            return x * 2

        return lax.fori_loop(0, n, step, x)

    wrap(ft.vmap(f, (None, 0)))(2, fnp.asarray([1.0, 5.0]))
    assert seen == [(0, 1.0), (0, 5.0), (1, 2.0), (1, 10.0)]


def test_lax_map_is_the_way_to_order_elements(capsys):
    ft.jit(ft.vmap(lambda x: (say("a", x), say("b", x), x)[2]))(fnp.arange(2))
    assert capsys.readouterr().out.split() == ["a-0", "a-1", "b-0", "b-1"]  # each line runs for all elements first
    ft.jit(lambda xs: lax.map(lambda x: (say("a", x), say("b", x), x)[2], xs))(fnp.arange(2))
    assert capsys.readouterr().out.split() == ["a-0", "b-0", "a-1", "b-1"]


def test_errors_in_loops():
    def failing(v):
        if v == 2:
            raise KeyError("the second")
        return v

    f = ft.jit(lambda xs: lax.scan(
        lambda c, x: (c + ft.pure_callback(failing, ft.ShapeDtypeStruct((), "int32"), x), None), 0, xs
    )[0])  # fmt: skip
    for _ in range(2):
        with pytest.raises(KeyError, match="the second"):
            f(fnp.arange(4))
        assert int(f(fnp.arange(2))) == 1


def test_loops_with_effects_are_made_once():
    def step(c, x):
        ft.debug.callback(lambda v: None, x)
        return c + x, c

    f = ft.jit(lambda xs: lax.scan(step, 0.0, xs)[0])
    run = lambda: (f(fnp.ones(3)), ft.grad(f)(fnp.ones(3)), lax.scan(step, 0.0, fnp.ones(3)))
    run()
    before = xla.counters.snapshot()
    run()
    assert not {"traces", "modules", "compiles", "cache_hits"} & set(xla.counters.since(before))
