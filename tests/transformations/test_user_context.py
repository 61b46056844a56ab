"""make_user_context: values that traced functions read."""

import threading

import numpy as np
import pytest

import functorch_like as ft
from functorch_like.compiler.fingerprint import fingerprint
from functorch_like.experimental.xla_metadata import set_xla_metadata


def counted(context):
    traces = []

    @ft.jit
    def f(x):
        traces.append(context.value)
        return x * context.value

    return f, traces


def test_each_value_is_traced_once():
    scale = ft.make_user_context(5)
    f, traces = counted(scale)
    for value in (2, 3, 2):
        with scale(value):
            assert f(7.0) == 7 * value
    assert f(7.0) == 35 and traces == [2, 3, 5]
    with scale(2.0), scale(-0.0):  # equal values of other types, and signs of zero, are other values
        assert np.signbit(f(7.0))
    with scale(0.0):
        assert not np.signbit(f(7.0))


def test_blocks_nest_and_belong_to_a_thread():
    one, two = ft.make_user_context(1), ft.make_user_context()
    seen = []
    with one(10), two("a"):
        thread = threading.Thread(target=lambda: seen.append((one.value, two.value)))
        thread.start()
        thread.join()
        with one(20):
            assert (one.value, two.value) == (20, "a")
        assert one.value == 10
    assert (one.value, two.value) == (1, None) and seen == [(1, None)]

    @one(4)
    def f():
        return one.value

    assert f() == 4 and one.value == 1


def test_loops_and_derivatives_see_the_value():
    power = ft.make_user_context(1)
    f = lambda x: ft.lax.fori_loop(0, 2, lambda i, x: x**power.value, x)
    with power(2):
        np.testing.assert_allclose(ft.jit(ft.grad(f))(1.5), 4 * 1.5**3, rtol=1e-6)
    with power(3):
        np.testing.assert_allclose(ft.jit(ft.grad(f))(1.5), 9 * 1.5**8, rtol=1e-6)


def test_programs_are_found_on_disk_under_every_value():
    context, f = ft.make_user_context(), lambda x: x * 2
    plain = fingerprint(ft.make_jaxpr(f)(1.0))
    with context(object()):
        assert plain is not None and fingerprint(ft.make_jaxpr(f)(1.0)) == plain
    with set_xla_metadata(a="1"):
        assert fingerprint(ft.make_jaxpr(f)(1.0)) not in (None, plain)


def test_values_are_hashable():
    with pytest.raises(ft.errors.ArgumentError, match="not hashable"):
        ft.make_user_context()([1])
